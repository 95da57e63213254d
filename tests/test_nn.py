"""What blasx.nn promises beyond gradients: errors, optimisers, training, checkpoints, sequences."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blasx
from blasx import nn
from blasx._types import TYPES
from blasx.nn import checkpoint, optim
from blasx.nn._arrays import channel_sums, column_sums, product


def normal(seed, *shape, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# -- errors


@pytest.mark.parametrize("layer, x, error, words", [
    (nn.Dense(4, 3), normal(0, 2, 5), ValueError, ["Dense(4, 3)", "(..., 4)", "(2, 5)"]),
    (nn.Dense(4, 3), normal(0, 2, 4, dtype="f8"), TypeError, ["Dense(4, 3)", "float32", "float64"]),
    (nn.Dense(4, 3), [[1.0] * 4], TypeError, ["Dense(4, 3)", "an array", "list"]),
    (nn.Conv2d(3, 2, 3), normal(0, 1, 2, 5, 5), ValueError,
     ["Conv2d(3, 2, (3, 3))", "(any, 3, any, any)", "(1, 2, 5, 5)"]),
    (nn.Conv2d(3, 2, 3, layout="NHWC"), normal(0, 1, 3, 5, 5), ValueError, ["(1, 3, 5, 5)"]),
    (nn.Conv2d(3, 2, 7), normal(0, 1, 3, 5, 5), ValueError, ["Conv2d", "(7, 7)", "(5, 5)"]),
    (nn.LSTM(3, 2), normal(0, 1, 5, 4), ValueError,
     ["LSTM(3, 2, 1)", "(any, any, 3)", "(1, 5, 4)"]),
    (nn.LayerNorm(3), normal(0, 4), ValueError, ["LayerNorm(3)", "(..., 3)", "(4,)"]),
    (nn.BatchNorm(3), normal(0, 2, 4), ValueError, ["BatchNorm(3)", "3 channels", "(2, 4)"]),
    (nn.BatchNorm(3), normal(0, 1, 3), ValueError, ["BatchNorm(3)", "two", "(1, 3)"]),
    (nn.Embedding(5, 2), np.array([1, 5]), ValueError, ["Embedding(5, 2)", "0 to 4", "5"]),
    (nn.Embedding(5, 2), normal(0, 2), TypeError, ["Embedding(5, 2)", "integers", "float32"]),
    (nn.MultiHeadAttention(4, 2), normal(0, 1, 3, 6), ValueError, ["MultiHead", "(1, 3, 6)"]),
    (nn.Positions(4, 2), normal(0, 1, 5, 2), ValueError, ["Positions(4, 2)", "(1, 5, 2)"]),
    (nn.ReLU(), np.array([1, 2]), TypeError, ["ReLU()", "float32, float64", "int64"]),
    (nn.GlobalMaxPool(), normal(0, 2, 3), ValueError, ["GlobalMaxPool()", "(2, 3)"]),
    (nn.Residual(nn.Dense(3, 4)), normal(0, 2, 3), ValueError, ["Residual", "(2, 3)", "(2, 4)"]),
    (nn.GELU(), None, TypeError, ["GELU()", "NoneType"]),
    (nn.Flatten(), [1.0], TypeError, ["Flatten()", "list"]),
    (nn.Flatten(), normal(0), TypeError, ["Flatten()", "()"]),
    (nn.LocalResponseNorm(3), normal(0, 3), ValueError, ["LocalResponseNorm(3)", "axis 1", "(3,)"]),
    (nn.Softmax(), normal(0), ValueError, ["Softmax()", "axis -1", "()"]),
    (nn.GlobalMaxPool(), normal(0, 2, 3, 0), ValueError, ["GlobalMaxPool()", "(2, 3, 0)"]),
    (nn.GlobalAveragePool(), normal(0, 2, 3, 0), ValueError, ["GlobalAverage", "(2, 3, 0)"]),
])
def test_wrong_input_names_the_layer_and_both(layer, x, error, words):
    with pytest.raises(error) as raised:
        layer.forward(x)
    assert all(word in str(raised.value) for word in words), raised.value


def test_wrong_gradients_and_targets():
    layer = nn.Dense(4, 3)
    with pytest.raises(ValueError, match="backward before forward"):
        layer.backward(normal(0, 2, 3))
    layer.forward(normal(0, 2, 4))
    with pytest.raises(ValueError, match=r"dy must be of shape \(2, 3\), got \(2, 4\)"):
        layer.backward(normal(0, 2, 4))
    with pytest.raises(ValueError, match=r"\(2,\).*\(2, 3\).*\(3,\)"):
        nn.CrossEntropy().forward(normal(0, 2, 3), np.zeros(3, int))
    with pytest.raises(TypeError, match="target must be an array of integers, got list"):
        nn.CrossEntropy().forward(normal(0, 2, 3), [0, 1])
    with pytest.raises(ValueError, match="target must be from 0 to 2"):
        nn.CrossEntropy().forward(normal(0, 2, 3), np.array([0, 3]))
    with pytest.raises(ValueError, match="mask must be broadcast"):
        nn.DotProductAttention().forward(*[normal(0, 1, 3, 2)] * 3, mask=np.ones((2, 3), bool))
    with pytest.raises(TypeError, match="mask must be an array of bool, got int64"):
        nn.DotProductAttention().forward(*[normal(0, 1, 3, 2)] * 3, mask=np.ones((3, 3), int))
    with pytest.raises(ValueError, match="mask must be bool of shape"):
        nn.GRU(3, 2).forward(normal(0, 2, 4, 3), mask=np.ones((2, 3), bool))
    gru, x = nn.GRU(3, 2), normal(0, 2, 4, 3)
    with pytest.raises(ValueError, match=r"mask must be bool of shape \(2, 4\), got list"):
        gru.forward(x, mask=[[True] * 4] * 2)
    for wrong in ([None, None], normal(0, 2, 2), (normal(0, 2, 2),), 3):
        with pytest.raises(ValueError, match="GRU.* state must be a list with a tuple for each"):
            gru.forward(x, wrong)
        gru.forward(x)
        with pytest.raises(ValueError, match="GRU.* dstate must be a list with a tuple for each"):
            gru.backward(normal(0, 2, 4, 2), wrong)
    for start, words in ((-1, "at least 0, got -1"), (0.5, "an integer, got 0.5")):
        with pytest.raises((ValueError, TypeError), match=rf"Positions\(4, 2\): start .* {words}"):
            nn.Positions(4, 2).forward(normal(0, 1, 2, 2), start)
    with pytest.raises(ValueError, match=r"DotProductAttention\(\): q must have a width.*\(3, 0\)"):
        nn.DotProductAttention().forward(*[normal(0, 3, 0)] * 3)
    for layer in nn.DotProductAttention(), nn.AdditiveAttention(2, 2, 2):
        with pytest.raises(TypeError, match="Attention.*: q must be an array, got int"):
            layer.forward(1, 2, *[3] * isinstance(layer, nn.DotProductAttention))
    with pytest.raises(TypeError, match="CrossEntropy.*: y must be an array, got int"):
        nn.CrossEntropy().forward(1, 2)
    gru.forward(x)
    with pytest.raises(ValueError, match=r"GRUCell.*: dstate must be of .*\(2, 2\), got \(2, 3\)"):
        gru.backward(normal(0, 2, 4, 2), [(normal(0, 2, 3),)])
    with pytest.raises(TypeError, match="DecoderBlock.* z must be an array, got NoneType"):
        nn.DecoderBlock(4, 2).forward(normal(0, 1, 3, 4), None)
    with pytest.raises(ValueError, match="target must be from 0 to 1, got nan"):
        nn.BinaryCrossEntropy().forward(normal(0, 2), np.array([0, np.nan], "f4"))
    for loss in (nn.MeanSquare(), nn.BinaryCrossEntropy()):
        with pytest.raises(ValueError, match=r"y must have elements.* got \(0, 3\)"):
            loss.forward(*[np.zeros((0, 3), "f4")] * 2)


def test_a_cache_of_something_else_is_refused():
    layer, x = nn.MultiHeadAttention(4, 2, causal=True, rng=0), normal(0, 2, 3, 4)
    cache = []
    layer.forward(x, cache=cache)
    kept = [a.copy() for a in cache]
    with pytest.raises(ValueError, match=r"cache must be of shape \(1, 2, any, 2\), got \(2, 2,"):
        layer.forward(x[:1], cache=cache)
    assert all((a == b).all() for a, b in zip(cache, kept, strict=True))
    for wrong in ((), {}, [normal(0, 2, 2, 1, 2)] * 3, "ab"):
        with pytest.raises(TypeError, match=r"MultiHeadAttention\(4, 2\): cache must be a list"):
            layer.forward(x, cache=wrong)
    with pytest.raises(TypeError, match="mask must be an array of bool, got list"):
        layer.forward(x, mask=[[True] * 3] * 2, cache=cache)
    assert all((a == b).all() for a, b in zip(cache, kept, strict=True))


@pytest.mark.parametrize("wrong", [
    lambda: nn.Conv2d(3, 4, 3, groups=2), lambda: nn.Conv2d(3, 4, (3, 0)),
    lambda: nn.Conv2d(3, 4, 3, padding=-1), lambda: nn.Conv2d(3, 4, 3, layout="CHWN"),
    lambda: nn.MaxPool(2, padding=2), lambda: nn.Dropout(1.0), lambda: nn.CrossEntropy(1.0),
    lambda: nn.MultiHeadAttention(5, 2), lambda: nn.LocalResponseNorm(4),
    lambda: nn.RNN(2, 3, function="sine"), lambda: nn.LSTM(2, 3, clip=0),
    lambda: nn.GRU(2, 3, truncate=0), lambda: nn.SGD(nn.Dense(1, 1), 0.1, nesterov=True),
    lambda: nn.Dropout("x"), lambda: nn.LSTM(2, 3, clip="x"), lambda: nn.Dense(2, 3, dtype="i4"),
    lambda: nn.Adam(nn.Dense(1, 1), betas=(2, 3)), lambda: nn.Adam(nn.Dense(1, 1), betas=0.9),
    lambda: nn.Adam(3), lambda: nn.Sequential(3), lambda: nn.GRU(2, 3, truncate=1.5),
    lambda: nn.BatchNorm(3, momentum=2), lambda: nn.BatchNorm(3, eps=-1), lambda: nn.ELU("x"),
    lambda: nn.LayerNorm(3, np.nan), lambda: nn.RMSNorm(3, -1), lambda: nn.Swish(np.nan),
    lambda: nn.LocalResponseNorm(3, alpha="x"), lambda: nn.CrossEntropy(ignore=0.5),
    lambda: nn.EncoderBlock(4, 2, 0), lambda: nn.DecoderBlock(4, 2, 0),
    lambda: nn.Adam(nn.Dense(1, 1), -1), lambda: nn.Adam(nn.Dense(1, 1), np.nan),
    lambda: nn.Adam(nn.Dense(1, 1), eps="x"), lambda: nn.AdamW(nn.Dense(1, 1), decay=-1),
    lambda: nn.SGD(nn.Dense(1, 1), 0.1, 1.5), lambda: nn.SGD(nn.Dense(1, 1), 0.1, decay=np.inf),
    lambda: nn.LossScale("x"), lambda: nn.LossScale(np.inf), lambda: optim.steps(1, 0),
    lambda: optim.inverse_sqrt(1, 0), lambda: optim.clip_norm(nn.Dense(1, 1), -1),
    lambda: optim.clip_value(nn.Dense(1, 1), np.nan), lambda: nn.Dense(1, 1).to("cupy"),
    lambda: nn.Dense(1, 1).load(None), lambda: nn.Dense(1, 1).load({"weight": [1], "bias": [0]}),
    lambda: nn.Dropout(0.1, -1), lambda: nn.Dropout(0.1, None), lambda: nn.Dropout(0.1, 1.5),
    lambda: nn.Softmax((0, 1)), lambda: nn.LogSoftmax("a"), lambda: nn.BatchNorm(3, "a"),
    lambda: nn.LocalResponseNorm(3, axis=None), lambda: nn.Conv2d(1, 1, 1, layout=["NCHW"]),
    lambda: nn.GlobalMaxPool(["NCHW"]), lambda: nn.Embedding(3, 2, "a"),
    lambda: nn.MaxPool(2, dims=0), lambda: nn.Conv2d(1, 1, True),
    lambda: nn.LossScale(every=2.5), lambda: nn.LossScale().load({}),
    lambda: nn.LossScale().load({"value": np.array(np.nan), "good": np.array(0)}),
    lambda: nn.SGD(nn.Dense(1, 1), 0.1).load([]),
    lambda: nn.SGD(nn.Dense(1, 1), 0.1).load({"steps": 3}),
    lambda: nn.SGD(nn.Dense(1, 1), 0.1).load({"steps": np.array(-5)}),
    lambda: nn.SGD(nn.Dense(1, 1), 0.1).load({"steps": np.array(2.7)})])
def test_layers_that_cannot_be(wrong):
    with pytest.raises((ValueError, TypeError), match=r"^\w+(\(.*\))?: "):
        wrong()


@pytest.mark.parametrize(("layer", "extents"), [
    (nn.Dense, (2, 3)), (nn.LSTM, (2, 3)), (nn.GRU, (2, 3, 1)), (nn.RNN, (2, 3)),
    (nn.LayerNorm, (3,)), (nn.RMSNorm, (3,)), (nn.BatchNorm, (3,)), (nn.LocalResponseNorm, (3,)),
    (nn.Embedding, (3, 2)), (nn.Positions, (3, 2)), (nn.MultiHeadAttention, (4, 2)),
    (nn.AdditiveAttention, (2, 3, 4)), (nn.Conv1d, (2, 3, 3)), (nn.Conv2d, (2, 3, 3))],
    ids=lambda x: getattr(x, "__name__", ""))
def test_extents_are_whole_numbers_of_at_least_1(layer, extents):
    layer(*map(np.int64, extents))
    for i in range(len(extents)):
        for wrong in (0, -1, 2.5, "a", None):
            with pytest.raises((ValueError, TypeError), match=rf"^{layer.__name__}: \w+ must be"):
                layer(*extents[:i], wrong, *extents[i + 1:])


def test_float32_stays_float32():
    """Every layer answers in the type it was given, gradients too."""
    image, rows, series = normal(0, 2, 4, 6, 6), normal(1, 3, 4), normal(2, 2, 5, 4)
    cases = [(nn.Dense(4, 3), rows), (nn.Conv2d(4, 3, 3, padding="same"), image),
             (nn.MaxPool(2), image), (nn.AveragePool(3, 1, "same"), image),
             (nn.GlobalAveragePool(), image), (nn.GlobalMaxPool(), image),
             (nn.BatchNorm(4), image), (nn.LayerNorm(4), rows), (nn.RMSNorm(4), rows),
             (nn.LocalResponseNorm(), image), (nn.Dropout(0.5), rows), (nn.Positions(9, 4), series),
             (nn.RNN(4, 3), series), (nn.GRU(4, 3), series), (nn.LSTM(4, 3, clip=2.0), series),
             (nn.EncoderBlock(4, 2, causal=True), series), (nn.Softmax(), rows),
             (nn.LogSoftmax(), rows)]
    cases += [(f(), rows) for f in (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.GELU, nn.Softplus,
                                    nn.Swish)]
    for layer, x in cases:
        y = layer.forward(x)
        dx = layer.backward(y)
        assert y.dtype == dx.dtype == np.float32 and dx.shape == x.shape, layer
        for path, p in layer.parameters().items():
            assert p.grad.dtype == np.float32, (layer, path)
        nn.Adam(layer).step()
        assert all(p.value.dtype == np.float32 for p in layer.parameters().values())
    for loss in (nn.MeanSquare(), nn.BinaryCrossEntropy()):
        assert loss.forward(rows, rows**2 / (1 + rows**2)).dtype == np.float32
        assert loss.backward().dtype == np.float32
    loss = nn.CrossEntropy(0.1)
    assert loss.forward(rows, np.zeros(3, int)).dtype == loss.backward().dtype == np.float32


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_numpy_arrays_are_gemms(dtype):
    """Of views, transposes, one line: what trace() has recorded is the same to the bit."""
    a, b = normal(0, 40, 37, dtype=dtype), normal(1, 37, 90, dtype=dtype)
    pairs = [(a, b), (a[:, ::2], b[::2]), (a[3:9, 5:], b[5:, :7]), (b.T, a.T), (a[:, :1], b[:1]),
             (a[:1], b[:, :1]), (a[::-1], b), (a[:0], b), (a[:, :0], b[:0])]
    for x, y in pairs:
        found = product(x, y)
        with blasx.trace() as calls:
            same = product(x, y)
        assert calls.calls[0].name == {"f4": "sgemm", "f8": "dgemm"}[dtype]
        assert found.dtype == same.dtype and found.tobytes() == same.tobytes()
        wanted = x.astype("f8") @ y.astype("f8")
        bound = np.abs(x).astype("f8") @ np.abs(y) * 40 * np.finfo(dtype).eps
        assert (np.abs(found - wanted) <= bound).all()
        sums = np.abs(column_sums(x) - x.astype("f8").sum(0))
        assert (sums <= np.abs(x).astype("f8").sum(0) * 40 * np.finfo(dtype).eps).all()


@pytest.mark.parametrize("shapes", [((1, 1), (1, 5)), ((5, 1), (1, 1)), ((1, 1), (1, 1)),
                                    ((3, 1), (1, 4)), ((1, 4), (4, 1)), ((3, 4), (4, 5))])
def test_zero_times_nan_is_nan(shapes):
    """NumPy's `dot` leaves out a number that is zero."""
    a, b = (np.zeros(s, "f4") for s in shapes)
    b[0, 0] = np.nan
    for found in (product(a, b), blasx.sgemm(1, a, b)):
        assert np.isnan(found[:, 0]).all() and not found[:, 1:].any()


def test_sums_of_channels():
    """With channels first and last, and of what lies neither way."""
    x = normal(0, 3, 4, 5, 6)
    for a in (x, x.transpose(0, 3, 1, 2), x[:, ::2, 1:], x[:0]):
        np.testing.assert_allclose(channel_sums(a), a.astype("f8").sum((0, 2, 3)), 1e-5, 1e-5)


def test_nothing_at_all():
    """Batches of none, sequences of none."""
    def empty(*shape):
        return np.zeros(shape, "f4")

    for layer, x in ((nn.Dense(4, 3), empty(0, 4)), (nn.Conv2d(2, 3, 3), empty(0, 2, 5, 5)),
                     (nn.LSTM(3, 2, 2, True), empty(0, 4, 3)), (nn.GRU(3, 2), empty(2, 0, 3)),
                     (nn.MultiHeadAttention(4, 2), empty(0, 3, 4)), (nn.LayerNorm(3), empty(0, 3)),
                     (nn.MaxPool(2), empty(0, 2, 4, 4)), (nn.AveragePool(2), empty(0, 2, 4, 4)),
                     (nn.Flatten(), empty(0, 2, 3)), (nn.Softmax(), empty(2, 0)),
                     (nn.LogSoftmax(), empty(0, 2)), (nn.MultiHeadAttention(4, 2), empty(3, 0, 4)),
                     (nn.GlobalAveragePool(), empty(0, 3, 4)), (nn.GlobalMaxPool(), empty(0, 3, 4)),
                     (nn.Positions(6, 3, learned=True), empty(0, 4, 3)),
                     (nn.Conv2d(2, 3, 3, 2, "same"), empty(2, 2, 0, 5)),
                     (nn.Conv1d(2, 3, 4, padding="same", layout="NHWC"), empty(2, 0, 2)),
                     (nn.MaxPool(3, padding="same"), empty(2, 2, 0, 5))):
        y = layer.forward(x)
        assert y.size == 0 and layer.backward(y).shape == x.shape
        assert all(not p.grad.any() for p in layer.parameters().values())
    loss = nn.CrossEntropy()
    assert loss.forward(empty(0, 2, 3), np.zeros((0, 2), int)) == 0
    assert loss.backward().shape == (0, 2, 3)


@pytest.mark.parametrize("layers", [
    lambda a: (a, nn.Tanh(), a), lambda a: (nn.Tanh(), a, nn.Residual(a)),
    lambda a: (nn.Sequential(a), nn.Sequential(nn.Tanh(), a))])
def test_a_layer_has_one_place(layers):
    """It would answer for its last forward at both."""
    with pytest.raises(ValueError, match=r"Sequential: .* got Dense\(2, 2\) at [01] and [12]$"):
        nn.Sequential(*layers(nn.Dense(2, 2)))


def test_a_state_stays_as_it_was():
    model = nn.Dense(2, 2, rng=0).to(dtype="f2")
    adam, states = nn.Adam(model), []
    for _ in range(2):
        model.backward(model.forward(np.ones((3, 2), "f2")))
        adam.step()
        states.append((model.state(), adam.state()))
    for first, second in zip(*states):
        assert first.keys() == second.keys() and all((first[k] != second[k]).any() for k in first)


def test_extreme_scores_do_not_overflow():
    x = np.array([[1e4, 0, -1e4]], "f4")
    with np.errstate(all="raise", under="ignore"):
        for layer in (nn.Sigmoid(), nn.Softplus(), nn.Softmax(), nn.LogSoftmax(), nn.ELU(),
                      nn.Swish()):
            assert np.isfinite(layer.forward(x)).all()
        assert nn.CrossEntropy().forward(x, np.array([2])) == 2e4
        assert nn.BinaryCrossEntropy().forward(x, np.array([[1, 0, 0]], "f4")) < 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_scores_that_do_not_count(smoothing):
    """-inf at another class (unless the target is smooth), and anything where no label counts."""
    y, labels = normal(0, 3, 4), np.array([1, 0, 2])
    y[0, 2] = -np.inf
    loss, bare = nn.CrossEntropy(smoothing, ignore=2), nn.CrossEntropy(smoothing)
    for rest in (np.zeros(4, "f4"), np.array([np.nan, np.inf, -np.inf, 0], "f4")):
        y[2] = rest
        value, dy = loss.forward(y, labels), loss.backward()
        assert value == bare.forward(y[:2], labels[:2]) and np.isinf(value) == bool(smoothing)
        assert (dy[:2] == bare.backward()).all() and np.isfinite(dy).all() and not dy[2].any()


@pytest.mark.parametrize("padding", [0, 1])
def test_where_the_gradient_of_a_maximum_goes(padding):
    """Not to padding, for -inf; to nan; nowhere else, for inf."""
    pool, x = nn.MaxPool(2, padding=padding), np.full((1, 1, 4, 4), -np.inf, "f4")
    x[0, 0, 1, 3], x[0, 0, 3] = np.nan, [1, 2, 2, 1]
    dy = np.arange(1, pool.forward(x).size + 1, dtype="f4").reshape(1, 1, 2 + padding, 2 + padding)
    dy[0, 0, -1, 0] = np.inf
    dx = pool.backward(dy)
    assert dx[dx < np.inf].sum() == dy[dy < np.inf].sum() and (dx == np.inf).sum() == 1
    assert dx[0, 0, 1, 3] == dy[0, 0, padding and 1, -1] and not np.isnan(dx).any()
    every, x = nn.GlobalMaxPool(), x[:, :, 3:] + [[[[0, 0, np.nan, 0]]]]
    every.forward(x.astype("f4"))
    assert (every.backward(np.full((1, 1), np.inf, "f4")) == [0, 0, np.inf, 0]).all()


def test_backward_without_dx():
    """The parameters' gradients are the same, and layers before the first that learns are left."""
    model = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Tanh(), nn.Dense(4, 3)), nn.ReLU(),
                          nn.Dense(3, 2))
    y = model.forward(normal(0, 5, 2, 2))
    assert model.backward(y).shape == (5, 2, 2)
    grads = {path: p.grad for path, p in model.parameters().items()}
    for p in model.parameters().values():
        p.grad = None
    assert model.backward(y, dx=False) is None
    assert all((p.grad == grads[path]).all() for path, p in model.parameters().items())
    conv, x = nn.Conv2d(2, 3, 3), normal(0, 2, 2, 5, 5)
    assert conv.backward(conv.forward(x), dx=False) is None and conv.weight.grad.any()
    assert nn.Sequential(nn.ReLU()).backward(y, dx=False) is None


# -- optimisers, by hand


def trajectory(make, gradient, steps=4, start=2.0):
    layer = nn.Dense(1, 1, bias=False, dtype="f8")
    layer.weight.value[...] = start
    optimiser, w = make(layer), []
    for _ in range(steps):
        layer.weight.add(gradient(layer.weight.value))
        optimiser.step()
        w.append(layer.weight.value.item())
    return w


def test_sgd_momentum_nesterov():
    plain, m, n, w, u, v, vn = 2.0, 2.0, 2.0, [], [], 0.0, 0.0
    for _ in range(4):
        plain -= 0.1 * (plain + 0.5 * plain)
        v = 0.9 * v + m
        m -= 0.1 * v
        vn = 0.9 * vn + n
        n -= 0.1 * (n + 0.9 * vn)
        w.append(plain), u.append((m, n))
    assert trajectory(lambda x: nn.SGD(x, 0.1, decay=0.5), lambda w: w) == pytest.approx(w)
    assert trajectory(lambda x: nn.SGD(x, 0.1, 0.9), lambda w: w) == pytest.approx(
        [a for a, _ in u])
    assert trajectory(lambda x: nn.SGD(x, 0.1, 0.9, nesterov=True), lambda w: w) == pytest.approx(
        [b for _, b in u])


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(decoupled):
    w, m, v, wanted, decay, rate = 2.0, 0.0, 0.0, [], 0.1, 0.05
    for t in range(1, 5):
        g = 3 * w**2 + (0 if decoupled else decay * w)
        w -= rate * decay * w if decoupled else 0
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        w -= rate * (m / (1 - 0.8**t)) / (math.sqrt(v / (1 - 0.9**t)) + 1e-6)
        wanted.append(w)
    kind = nn.AdamW if decoupled else nn.Adam
    assert trajectory(lambda x: kind(x, rate, (0.8, 0.9), 1e-6, decay),
                      lambda w: 3 * w**2) == pytest.approx(wanted, rel=1e-12)


def test_schedules():
    assert [optim.steps(1.0, 2, 0.5)(t) for t in range(5)] == [1, 1, 0.5, 0.5, 0.25]
    assert optim.exponential(2.0, 0.5)(3) == 0.25
    c = optim.cosine(1.0, 10, warmup=2, last=0.1)
    assert [c(0), c(1), c(2)] == [0.5, 1.0, 1.0]
    assert c(6) == pytest.approx(0.55) and c(10) == c(99) == pytest.approx(0.1)
    s = optim.inverse_sqrt(1.0, 4)
    assert [s(0), s(3), s(15)] == [0.25, 1.0, 0.5]
    assert trajectory(lambda x: nn.SGD(x, optim.steps(1.0, 1, 0.5)), lambda w: w * 0 + 1,
                      3) == [1, 0.5, 0.25]


def test_clipping():
    layer = nn.Dense(2, 1, bias=False)
    layer.weight.add(np.array([[3.0], [-4.0]], "f4"))
    assert optim.clip_norm(layer, 10) == 5 and abs(layer.weight.grad[1, 0]) == 4
    assert optim.clip_norm(layer, 1) == 5
    np.testing.assert_allclose(layer.weight.grad.ravel(), [0.6, -0.8], rtol=1e-6)
    optim.clip_value(layer, 0.7)
    np.testing.assert_allclose(layer.weight.grad.ravel(), [0.6, -0.7], rtol=1e-6)
    for size in (1e30, 1e-30):  # whose squares are out of range
        layer.weight.grad = np.array([[3 * size], [4 * size]], "f4")
        assert optim.clip_norm(layer, np.float64(size)) == pytest.approx(5 * size)
        np.testing.assert_allclose(layer.weight.grad.ravel() / size, [0.6, 0.8], rtol=1e-6)
        optim.clip_value(layer, np.float64(size / 2))
        assert layer.weight.grad.dtype == "f4" and layer.weight.grad[1, 0] == np.float32(size / 2)


@pytest.mark.parametrize("first, second", ["fd", "df", "ed", "de"])
def test_what_is_remembered_follows_its_parameter(first, second):
    """Of a model that is cast, and from a state of another precision."""
    model = nn.Dense(2, 2, rng=0).to(dtype=first)
    adam = nn.Adam(model)

    def step():
        dtype = model.weight.value.dtype
        model.backward(model.forward(np.ones((3, 2), dtype)))
        adam.step()
        assert {x.dtype for m in adam.memory.values() for x in m} == {model.weight.master.dtype}

    step()
    before = adam.memory["weight"][1].copy()
    state = adam.state()
    model.to(dtype=second)
    step()
    assert (adam.memory["weight"][1] > before).all()
    adam.load({k: x for k, x in state.items() if k[:6] != "master"})
    assert adam.memory["weight"][1].dtype == model.weight.master.dtype
    assert np.allclose(adam.memory["weight"][1], before, rtol=1e-6)
    step()
    for wrong in (before.astype("c8"), before.astype("i8"), before.tolist()):
        with pytest.raises(ValueError, match="Adam: load: must be .* got square.weight"):
            adam.load(state | {"square.weight": wrong})


# -- training


def two_moons(n=96):
    rng = np.random.default_rng(0)
    t, label = rng.uniform(0, np.pi, n), np.arange(n) % 2
    x = np.stack([np.cos(t) * (1 - 2 * label) + label, np.sin(t) * (1 - 2 * label)], 1)
    return (x + 0.05 * rng.standard_normal((n, 2))).astype("f4"), label


def classifier(seed=0):
    rng = np.random.default_rng(seed)
    return nn.Sequential(nn.Dense(2, 16, rng=rng), nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.1),
                         nn.Dense(16, 2, rng=rng))


def trained(model, epochs, **options):
    x, y = two_moons()
    optimiser = nn.Adam(model, optim.cosine(0.03, 30))
    return nn.fit(model, nn.CrossEntropy(), optimiser, x, y, epochs=epochs, batch=16,
                  **{"progress": False, "clip": 5.0} | options)


def test_fit_learns_and_repeats_bit_for_bit(tmp_path, capsys):
    x, y = two_moons()
    first = trained(classifier(), 8, validation=(x, y), progress=True)
    assert first.epochs[-1]["validation_accuracy"] > 0.9 and not first.stopped
    assert "epoch 8/8  loss" in capsys.readouterr().err
    assert trained(classifier(), 8).losses == first.losses
    assert trained(classifier(), 8, seed=1).losses != first.losses
    first.plot(tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes()[:4] == b"\x89PNG"


def test_a_resumed_training_is_the_same_one(tmp_path):
    whole, path = trained(classifier(), 6), tmp_path / "c.safetensors"
    trained(classifier(), 2, checkpoint=path)
    again = trained(classifier(7), 6, checkpoint=path, resume=True)
    assert again.losses == whole.losses and len(again.epochs) == 6


def test_a_part_of_a_model_is_trained():
    """By its own gradients: those of the rest do not count for clipping, and do not add up."""
    x, y = two_moons()
    curves = []
    for size in (1, 100):
        model = nn.Sequential(nn.Dense(2, 4, rng=0), nn.Tanh(), nn.Dense(4, 2, rng=1))
        model.layers[0].weight.value /= size  # the same answers, and another gradient in it
        last = model.layers[2]
        curves.append(nn.fit(model, nn.CrossEntropy(), nn.SGD(last, 0.5), size * x, y, epochs=2,
                             clip=0.1, progress=False).losses)
        assert all(p.grad is None for p in model.parameters().values())
    np.testing.assert_allclose(*curves, rtol=1e-4)


def test_means_are_of_the_labels_that_count():
    """Whatever the batches."""
    x, y = normal(0, 10, 6, 2), np.arange(60).reshape(10, 6) % 3
    y[:4, 1:], y[9] = -1, -1
    model, loss = nn.Dense(2, 3, rng=0), nn.CrossEntropy(ignore=-1)
    answer = model.forward(x)
    wanted = {"loss": loss.forward(answer, y), "accuracy": loss.accuracy(answer, y)}
    for batch in (1, 3, 10):
        assert nn.evaluate(model, loss, x, y, batch) == pytest.approx(wanted)
        history = nn.fit(model, loss, nn.SGD(model, 0.0), x, y, epochs=1, batch=batch,
                         progress=False)
        assert history.epochs == [pytest.approx({"epoch": 1} | wanted)]
    assert nn.evaluate(model, loss, x[9:], y[9:]) == {"loss": 0, "accuracy": 0}


def test_resume_refuses_what_is_not_of_this_training(tmp_path):
    path, (x, y) = tmp_path / "c", two_moons()
    trained(classifier(), 2, checkpoint=path)
    arrays, metadata = checkpoint.load(path)
    bare = {k: v for k, v in arrays.items() if not k.startswith("optimiser.")}
    turned = arrays | {"optimiser.mean.0.weight": arrays["optimiser.mean.0.weight"].T}
    unknown = arrays | {"optimiser.mean.9.weight": arrays["optimiser.mean.0.weight"]}

    def refused(words, kind=nn.Adam, arrays=arrays, metadata=metadata):
        model = classifier(7)
        before = {k: v.copy() for k, v in model.state().items()}
        checkpoint.save(path, arrays, metadata)
        optimiser = kind(model)
        with pytest.raises(ValueError, match=words):
            nn.fit(model, nn.CrossEntropy(), optimiser, x, y, epochs=3, checkpoint=path,
                   resume=True, progress=False)
        assert all((before[k] == v).all() for k, v in model.state().items())
        assert not optimiser.steps and not optimiser.memory

    refused("SGD: load: must be steps and nothing", lambda model: nn.SGD(model, 0.1))
    refused("SGD: load: must be steps and velocity", lambda model: nn.SGD(model, 0.1, 0.9))
    refused("Adam: load: must be steps and mean and square.* got nothing", arrays=bare)
    refused("Adam: load.* got steps", arrays=bare | {"optimiser.steps": np.array(6)})
    refused(r"Adam: load.* mean.0.weight \(16, 2\)", arrays=turned)
    refused("Adam: load.* mean.9.weight", arrays=unknown)
    for history in ("{", '{"other": 1}', "3"):
        refused("checkpoint must be one that fit wrote", metadata={"history": history})
    refused("checkpoint must be one that fit wrote", metadata={})
    checkpoint.save(path, arrays, metadata)
    path.write_bytes(path.read_bytes().replace(b'"crc32"', b'"crc33"'))
    assert checkpoint.load(path)  # a whole file of somebody's
    with pytest.raises(ValueError, match="checkpoint must be one that fit wrote"):
        trained(classifier(), 3, checkpoint=path, resume=True)


def test_nan_in_data_is_refused():
    x, y = two_moons()
    x[[5, 7], 1] = np.nan
    model = classifier()
    before = {k: v.copy() for k, v in model.state().items()}
    with pytest.raises(ValueError, match="x must be finite.* 2 samples, the first 5"):
        nn.fit(model, nn.CrossEntropy(), nn.Adam(model), x, y, epochs=1)
    if TYPES["b"].is_known:
        with pytest.raises(ValueError, match="x must be finite.* 2 samples, the first 5"):
            nn.fit(model, nn.CrossEntropy(), nn.Adam(model), x.astype(TYPES["b"].dtype), y,
                   epochs=1)
    assert all((before[k] == v).all() for k, v in model.state().items())


@pytest.mark.parametrize("wrong, error, words", [
    ({"x": [[1.0, 2.0]]}, TypeError, "x must be an array of samples, got list"),
    ({"y": np.zeros(5, int)}, ValueError, r"as many samples.*\[5, 96\]"),
    ({"x": np.zeros((0, 2), "f4"), "y": np.zeros(0, int)}, ValueError, "at least one"),
    ({"y": np.arange(96) // 95 * 2, "batch": 8}, ValueError, "target must be from 0 to 1, got"),
    ({"validation": (np.zeros((3, 2), "f4"), np.full(3, 2))}, ValueError, "target must be from 0"),
    ({"batch": 0}, ValueError, "epochs and batch must be at least"),
    ({"validation": (np.zeros((3, 2), "f4"), np.zeros(2, int))}, ValueError, "validation x and"),
    ({"x": np.zeros((96, 2))}, TypeError, "Dense.*float64"),
    ({"epochs": 1.5}, TypeError, "epochs, batch and seed must be integers, got 1.5"),
    ({"batch": "x"}, TypeError, "epochs, batch and seed must be integers.* 'x'"),
    ({"seed": -1}, ValueError, "must be at least .* seed 0, got 1, 32, -1"),
    *(({"clip": x}, ValueError, f"fit: clip must be positive and finite, got {x}")
      for x in (-1, 0.0, np.nan)),
    ({"augment": 3}, TypeError, "fit: augment must be a function of x and rng, got 3"),
    ({"checkpoint": "tests"}, ValueError, "fit: checkpoint must be a file in a folder"),
    ({"validation": (np.zeros((3, 5), "f4"), np.zeros(3, int))}, ValueError,
     r"fit: validation must be as x and y are: .*\(3, 5\)"),
    ({"loss": nn.BinaryCrossEntropy(), "batch": 4, "y": np.eye(96, 2, dtype="f4") * 2}, ValueError,
     "target must be from 0 to 1, got 0.0 to 2.0"),
    ({"validation": 3}, TypeError, "validation must be .*x, y.*, got int"),
    ({"resume": True}, ValueError, "resume must have a checkpoint"),
    ({"checkpoint": "no/such/folder/c"}, ValueError, "in a folder that is there, got no/such"),
    ({"loss": "mean"}, TypeError, "loss must be a Loss, got str"),
    ({"optimiser": 3}, TypeError, "optimiser must be a Optimiser, got int"),
    ({"optimiser": nn.Adam(nn.Dense(1, 1))}, ValueError, "optimiser must be of this model")])
def test_wrong_calls_of_fit(wrong, error, words):
    (x, y), model = two_moons(), classifier()
    before = model.layers[0].weight.value.copy()
    with pytest.raises(error, match=words):
        nn.fit(**{"model": model, "loss": nn.CrossEntropy(), "optimiser": nn.Adam(model), "x": x,
                  "y": y, "epochs": 1, "progress": False} | wrong)
    assert (model.layers[0].weight.value == before).all()


@pytest.mark.parametrize("wrong, words", [
    ({"batch": 0}, "batch must be at least 1, got 0"),
    ({"batch": -1}, "batch must be at least 1, got -1"),
    ({"batch": 2.5}, "batch must be an integer, got 2.5"),
    ({"x": np.zeros((0, 2), "f4"), "y": np.zeros(0, int)}, r"at least one, got \[0\]"),
    ({"y": np.zeros(5, int)}, r"as many samples.*\[5, 96\]")])
def test_wrong_calls_of_evaluate(wrong, words):
    x, y = two_moons()
    with pytest.raises((ValueError, TypeError), match=f"evaluate: .*{words}"):
        nn.evaluate(**{"model": classifier(), "loss": nn.CrossEntropy(), "x": x, "y": y} | wrong)


def test_gradients_from_before_are_not_of_the_first_step():
    first, model = trained(classifier(), 1), classifier()
    for p in model.parameters().values():
        p.grad = np.full_like(p.value, np.nan)
    assert trained(model, 1).losses == first.losses


def test_training_stops_at_nan_and_names_the_layer():
    model = classifier()
    model.layers[4].weight.value[3, 1] = np.nan
    history = trained(model, 3)
    assert "layer 4 Dense(16, 2)" in history.stopped and "weight" in history.stopped
    assert not history.losses and not history.epochs

    class Root(nn.Layer):
        def forward(self, x):
            return self.keep(np.sqrt(np.maximum(x, 0)), x)

        def backward(self, dy):
            (x,) = self.kept(dy)
            return dy * 0.5 / np.sqrt(np.maximum(x, 0))  # inf at 0, nan where dy is 0

    model = nn.Sequential(nn.Dense(2, 4, rng=0), Root(), nn.Dense(4, 2, rng=0))
    before = model.layers[0].weight.value.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = trained(model, 3)
    assert "gradient of bias of layer 0 Dense(2, 4)" in history.stopped
    assert (model.layers[0].weight.value == before).all()


def test_the_layer_is_named_whose_own_weight_is_nan():
    """Not what is inside it; nor does a layer in two places confuse the search."""
    class Twice(nn.Layer):
        def __init__(self, layer):
            self.first = self.second = layer

        def forward(self, x):
            return self.second.forward(self.first.forward(x))

    model = nn.Sequential(Twice(nn.Tanh()), nn.MultiHeadAttention(2, 1, rng=0), nn.Flatten())
    model.layers[1].weight.value[0, 0] = np.nan
    history = nn.fit(model, nn.MeanSquare(), nn.SGD(model, 0.1), normal(0, 4, 3, 2),
                     normal(1, 4, 6), epochs=1, progress=False)
    assert "layer 1 MultiHeadAttention(2, 1), whose weight hold some" in history.stopped


def test_training_stops_where_squares_of_gradients_overflow():
    model = nn.Dense(2, 1, rng=0, dtype="f8")
    x, y = np.full((4, 2), 1e80), np.full((4, 1), 1e150)
    with np.errstate(over="ignore"):
        history = nn.fit(model, nn.MeanSquare(), nn.SGD(model, 1e-3), x, y, epochs=1,
                         progress=False)
    assert history.stopped == "the norm of the gradients is inf"


def test_dropout_is_a_function_of_seed_and_count():
    x, a, b = np.ones((200, 50), "f4"), nn.Dropout(0.3, seed=1), nn.Dropout(0.3, seed=1)
    first, second = a.forward(x), a.forward(x)
    assert (b.forward(x) == first).all() and (first != second).any()
    assert abs((first == 0).mean() - 0.3) < 0.02 and abs(first.mean() - 1) < 0.03
    assert (nn.Dropout(0.3, seed=2).forward(x) != first).any()
    a.train(False)
    assert a.forward(x) is x


def test_batch_norm_runs_towards_the_statistics():
    layer, rng = nn.BatchNorm(2, momentum=0.5), np.random.default_rng(0)
    for _ in range(40):
        layer.forward((3 + 2 * rng.standard_normal((4000, 2))).astype("f4"))
    np.testing.assert_allclose(layer.mean.value, 3, atol=0.15)
    np.testing.assert_allclose(layer.variance.value, 4, rtol=0.1)
    y = layer.train(False).forward(np.full((1, 2), 3, "f4"))
    assert abs(y).max() < 0.1


# -- checkpoints


names = st.text(min_size=1, max_size=8).filter(lambda n: n != "__metadata__")
arrays = st.dictionaries(names, st.tuples(
    st.sampled_from(["f4", "f8", "f2", "i8", "u1", "bool"]),
    st.lists(st.integers(0, 3), max_size=3).map(tuple)), max_size=4)


@settings(max_examples=20)
@given(arrays, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2))
def test_files_come_back(tmp_path_factory, shapes, metadata):
    path = tmp_path_factory.mktemp("c") / "x.safetensors"
    given = {n: np.random.default_rng(0).integers(0, 2, s).astype(d) for n, (d, s) in
             shapes.items()}
    metadata.pop("crc32", None)
    checkpoint.save(path, given, metadata)
    found, said = checkpoint.load(path)
    assert list(found) == list(given) and said.items() >= metadata.items()
    for name, x in given.items():
        assert found[name].dtype == x.dtype and found[name].shape == x.shape
        assert (found[name] == x).all()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_damaged_file_is_refused(tmp_path):
    """Cut anywhere, or with any byte changed, it is not taken for a checkpoint."""
    path = tmp_path / "x.safetensors"
    given = {"a": normal(0, 2, 3), "b": np.arange(4)}
    checkpoint.save(path, given)
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(nn.CorruptFile, match="x.safetensors: not a whole"):
            checkpoint.load(path)
        changed = bytearray(data)
        changed[n] ^= 1 + n % 255
        path.write_bytes(changed)
        try:
            found, _ = checkpoint.load(path)
        except nn.CorruptFile:
            continue
        # white space for white space, or a checksum that is not called one any more
        assert n < 8 + int.from_bytes(data[:8], "little")
        assert all((found[name] == x).all() for name, x in given.items())
    for header in (b"[]", b"5", b'{"__metadata__": 5}', b'{"a": 1}',
                   b"[" * 100_000, b'{"a": {}, "a": {}}',
                   b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}',
                   b'{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}',
                   b'{"a": {"dtype": "F32", "shape": [1e9], "data_offsets": [0, 4]}}',
                   b'{"a": {"dtype": "F32", "shape": [0], "data_offsets": [0]}}',
                   b'{"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0, 0]}}',
                   b'{"a": {"dtype": "U8", "shape": [0, %d], "data_offsets": [0, 0]}}' % 2**70,
                   b'{"a": {"dtype": "U8", "shape": [0%s], "data_offsets": [0, 0]}}'
                   % (64 * b", 1")):
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(nn.CorruptFile):
            checkpoint.load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(nn.CorruptFile, match="1 bytes behind"):
        checkpoint.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    checkpoint.save(path, {"a": normal(0, 3)})
    old = path.read_bytes()
    with pytest.raises(TypeError, match="b must be an array of numbers"):
        checkpoint.save(path, {"b": np.array(["text"])})

    def full(handle):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(path, {"a": normal(1, 3)})
    assert path.read_bytes() == old and len(list(tmp_path.iterdir())) == 1


def test_the_format_is_the_public_one(tmp_path):
    """Eight bytes of length, JSON, data: read here by hand."""
    path = tmp_path / "x.safetensors"
    checkpoint.save(path, {"w": np.array([[1, 2]], "f4")}, {"made": "here"})
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    assert header["w"] == {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    assert header["__metadata__"]["made"] == "here" and n % 8 == 0
    assert data[8 + n:] == np.array([1, 2], "<f4").tobytes()
    text = json.dumps({"h": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes([0x80, 0x3f, 0x20, 0xc0]))
    read = checkpoint.load(path)[0]["h"]
    assert read.dtype == (TYPES["b"].dtype if TYPES["b"].is_known else "f4")
    np.testing.assert_array_equal(read.astype("f4"), np.array([1, -2.5], "f4"))


def test_what_is_no_array_is_not_saved_or_taken(tmp_path):
    with pytest.raises(TypeError, match="save: w must be an array, got list"):
        checkpoint.save(tmp_path / "w", {"w": [1.0]})
    assert not list(tmp_path.iterdir())
    for wrong in ("a.safetensors", {"weight": [1.0], "bias": [0.0]}):
        with pytest.raises(TypeError, match="load_torch: arrays must be {name: array}"):
            nn.load_torch(nn.Dense(1, 1), wrong)
    state = {f"{name}_l0": np.zeros(shape, "f4") for name, shape in (
        ("weight_ih", (7, 3)), ("weight_hh", (8, 2)), ("bias_ih", 8), ("bias_hh", 8))}
    with pytest.raises(ValueError, match=r"weight_ih_l0 must have 8 rows for LSTM.* got \(7, 3\)"):
        nn.load_torch(nn.LSTM(3, 2), state)


def test_load_refuses_another_model():
    model = nn.Sequential(nn.Dense(2, 3), nn.Dense(3, 1))
    state = model.state()
    with pytest.raises(ValueError, match=r"missing \['1.bias'\], unknown \['x'\]"):
        model.load({**{k: v for k, v in state.items() if k != "1.bias"}, "x": state["1.bias"]})
    with pytest.raises(ValueError, match=r"1.weight is float32 \(1, 3\).*\(3, 1\)"):
        model.load(state | {"1.weight": state["1.weight"].T})
    cast = model.to(dtype="f8")
    assert cast.layers[0].weight.value.dtype == np.float64


# -- torch's layouts, by the formulas of its documentation


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def torch_lstm(x, w, layer):
    """torch.nn.LSTM, batch_first and bidirectional, one layer of it."""
    outs = []
    for end in ("", "_reverse"):
        w_ih, w_hh, b_ih, b_hh = (w[f"{n}_l{layer}{end}"] for n in (
            "weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h = c = np.zeros((len(x), w_hh.shape[1]))
        out = np.zeros((*x.shape[:2], w_hh.shape[1]))
        for t in range(x.shape[1])[::-1 if end else 1]:
            i, f, g, o = np.split(x[:, t] @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = out[:, t] = sigmoid(o) * np.tanh(c)
        outs.append(out)
    return np.concatenate(outs, -1)


def test_torch_lstm_and_dense(tmp_path):
    rng, w = np.random.default_rng(0), {}
    for layer, n_in in ((0, 3), (1, 8)):
        for end in ("", "_reverse"):
            for name, shape in (("weight_ih", (16, n_in)), ("weight_hh", (16, 4)),
                                ("bias_ih", 16), ("bias_hh", 16)):
                w[f"{name}_l{layer}{end}"] = rng.standard_normal(shape)
    dense = {"weight": rng.standard_normal((5, 8)), "bias": rng.standard_normal(5)}
    path = tmp_path / "torch.safetensors"
    checkpoint.save(path, {f"0.{n}": x for n, x in w.items()}
                    | {f"1.{n}": x for n, x in dense.items()})
    model = nn.Sequential(nn.LSTM(3, 4, 2, True, dtype="f8"), nn.Dense(8, 5, dtype="f8"))
    nn.load_torch(model, checkpoint.load(path)[0])
    x = rng.standard_normal((2, 6, 3))
    wanted = torch_lstm(torch_lstm(x, w, 0), w, 1) @ dense["weight"].T + dense["bias"]
    np.testing.assert_allclose(model.forward(x), wanted, rtol=1e-12, atol=1e-12)


def test_torch_attention_conv_norm():
    rng = np.random.default_rng(0)
    w = {"in_proj_weight": rng.standard_normal((12, 4)), "in_proj_bias": rng.standard_normal(12),
         "out_proj.weight": rng.standard_normal((4, 4)), "out_proj.bias": rng.standard_normal(4)}
    layer, x = nn.MultiHeadAttention(4, 2, dtype="f8"), rng.standard_normal((2, 3, 4))
    nn.load_torch(layer, w)
    q, k, v = np.split(x @ w["in_proj_weight"].T + w["in_proj_bias"], 3, -1)
    heads = []
    for cut in (slice(0, 2), slice(2, 4)):
        e = np.exp(q[..., cut] @ k[..., cut].swapaxes(1, 2) / np.sqrt(2))
        heads.append(e / e.sum(-1, keepdims=True) @ v[..., cut])
    wanted = np.concatenate(heads, -1) @ w["out_proj.weight"].T + w["out_proj.bias"]
    np.testing.assert_allclose(layer.forward(x), wanted, rtol=1e-12)

    conv, norm = nn.Conv2d(2, 3, 1, dtype="f8"), nn.LayerNorm(3, dtype="f8")
    model = nn.Sequential(conv, nn.ReLU(), norm)
    w = {"0.weight": rng.standard_normal((3, 2, 1, 1)), "0.bias": rng.standard_normal(3),
         "2.weight": rng.standard_normal(3), "2.bias": rng.standard_normal(3)}
    nn.load_torch(model, w)
    assert (conv.weight.value == w["0.weight"]).all() and (norm.bias.value == w["2.bias"]).all()
    with pytest.raises(ValueError, match="2.bias is missing"):
        nn.load_torch(model, {n: x for n, x in w.items() if n != "2.bias"})
    with pytest.raises(ValueError, match=r"unknown to the model: \['3.bias'\]"):
        nn.load_torch(model, w | {"3.bias": w["2.bias"]})
    with pytest.raises(ValueError, match="no rule for cells.0, a GRU"):
        nn.load_torch(nn.Sequential(nn.GRU(2, 3)).layers[0], {})


def test_beside_torch():
    """The layers that take torch's weights, beside torch's own."""
    torch = pytest.importorskip("torch")
    t = torch.nn
    x = normal(0, 2, 5, 4, dtype="f8")
    image = normal(1, 2, 4, 7, 6, dtype="f8")
    pairs = [(t.Linear(4, 3), nn.Dense(4, 3, dtype="f8"), x),
             (t.LayerNorm(4), nn.LayerNorm(4, dtype="f8"), x),
             (t.Conv2d(4, 6, 3, 2, 1, 2, 2), nn.Conv2d(4, 6, 3, 2, 1, 2, 2, dtype="f8"), image),
             (t.LSTM(4, 3, 2, batch_first=True, bidirectional=True),
              nn.LSTM(4, 3, 2, True, dtype="f8"), x),
             (t.MultiheadAttention(4, 2, batch_first=True),
              nn.MultiHeadAttention(4, 2, dtype="f8"), x)]
    for theirs, ours, x in pairs:
        theirs = theirs.double()
        nn.load_torch(ours, {n: w.numpy() for n, w in theirs.state_dict().items()})
        there = torch.tensor(x, requires_grad=True)
        wanted = theirs(*(there,) * (3 if isinstance(theirs, t.MultiheadAttention) else 1))
        wanted = wanted[0] if isinstance(wanted, tuple) else wanted
        y = ours.forward(x)
        np.testing.assert_allclose(y, wanted.detach().numpy(), rtol=1e-10, atol=1e-10)
        dy = normal(3, *y.shape, dtype="f8")
        wanted.backward(torch.tensor(dy))
        np.testing.assert_allclose(ours.backward(dy), there.grad.numpy(), rtol=1e-10, atol=1e-10)


# -- sequences


KINDS = [nn.RNN, nn.GRU, nn.LSTM]


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_a_sequence(kind):
    """With the state handed on, pieces answer as the whole; a truncated backward is that of the
    pieces."""
    x, dy = normal(0, 2, 7, 3, dtype="f8"), normal(1, 2, 7, 4, dtype="f8")
    whole, pieces = (kind(3, 4, 2, dtype="f8", rng=5, truncate=3) for _ in range(2))
    y, dx = whole.forward(x), whole.backward(dy)
    state, cuts = None, [slice(0, 3), slice(3, 6), slice(6, 7)]
    for cut in cuts:
        np.testing.assert_allclose(pieces.forward(x[:, cut], state), y[:, cut], atol=1e-14)
        state = pieces.last
        np.testing.assert_allclose(pieces.backward(dy[:, cut]), dx[:, cut], atol=1e-14)
    for path, p in whole.parameters().items():
        np.testing.assert_allclose(pieces.parameters()[path].grad, p.grad, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    """A sequence answers the same alone and padded among longer ones, in both directions."""
    layer = kind(3, 4, 2, True, dtype="f8", rng=2)
    x, lengths = normal(0, 3, 6, 3, dtype="f8"), np.array([6, 2, 4])
    mask = np.arange(6) < lengths[:, None]
    y = layer.forward(x, mask=mask)
    ends = layer.last
    for i, n in enumerate(lengths):
        np.testing.assert_allclose(layer.forward(x[i:i + 1, :n])[0], y[i, :n], atol=1e-14)
        assert (y[i, n:] == 0).all()
        for end, alone in zip(ends, layer.last):
            np.testing.assert_allclose(end[0][i], alone[0][0], atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_mask_hides_changes_nothing(kind):
    """nan and inf there, in x and in dy."""
    layer, mask = kind(3, 4, 2, True, rng=2), np.arange(6) < np.array([[6], [2], [4]])
    x, dy, runs = normal(0, 3, 6, 3), normal(1, 3, 6, 8), []
    for _ in "12":
        runs.append([layer.forward(x, mask=mask), layer.backward(dy),
                     *(p.grad for p in layer.parameters().values())])
        for p in layer.parameters().values():
            p.grad = None
        x[~mask], dy[~mask] = np.nan, np.inf
    for a, b in zip(*runs, strict=True):
        assert np.isfinite(a).all() and a.tobytes() == b.tobytes()


def test_clipped_cells():
    layer = nn.LSTM(2, 3, clip=0.2, rng=0)
    layer.forward(10 * normal(0, 4, 9, 2))
    assert abs(layer.last[0][1]).max() == np.float32(0.2)


def test_a_cache_generates_what_the_whole_answers():
    """One token at a time with cached keys and values, and all at once."""
    encoder = nn.EncoderBlock(6, 2, causal=True, dtype="f8", rng=0)
    decoder = nn.DecoderBlock(6, 3, dtype="f8", rng=1)
    x, z = normal(0, 2, 5, 6, dtype="f8"), normal(1, 2, 4, 6, dtype="f8")
    whole, both = encoder.forward(x), decoder.forward(x, z)
    cache, other = [], []
    for cut in (slice(0, 2), slice(2, 3), slice(3, 5)):
        np.testing.assert_allclose(encoder.forward(x[:, cut], cache=cache), whole[:, cut],
                                   atol=1e-13)
        np.testing.assert_allclose(decoder.forward(x[:, cut], z, cache=other), both[:, cut],
                                   atol=1e-13)
    assert cache[0].shape == (2, 2, 5, 3)
    with pytest.raises(ValueError, match="MultiHeadAttention.*backward before forward"):
        encoder.backward(whole[:, 3:5])


def test_who_may_look_nowhere_gets_nothing():
    layer, mask = nn.DotProductAttention(), np.array([[[1, 0], [0, 0]]], bool)
    q, k, v = (normal(s, 1, 2, 3) for s in range(3))
    y = layer.forward(q, k, v, mask)
    np.testing.assert_allclose(y[0, 0], v[0, 0], rtol=1e-6)
    assert (y[0, 1] == 0).all() and all(np.isfinite(d).all() for d in layer.backward(y))


def test_tied_weights_are_one_parameter():
    first, second = nn.Dense(3, 3), nn.Dense(3, 3)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    assert list(model.parameters()) == ["0.weight", "0.bias", "1.bias"]
    model.backward(model.forward(normal(0, 2, 3)))
    both = first.weight.grad.copy()
    assert both.shape == (3, 3) and abs(both).max() > 0
