"""blasx.nn on arrays that are not NumPy's: everything comes from the array's own module, and the
answers are the same."""

from copy import deepcopy

import numpy as np
import pytest

from blasx import _tuned, nn
from blasx.nn import optim
from tests import device_arrays


@pytest.fixture(params=["simulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def xp(request, monkeypatch):
    """Arrays that NumPy cannot touch; on a machine with a GPU CuPy's, too."""
    if request.param == "gpu":
        return pytest.importorskip("cupy")
    return device_arrays.install(monkeypatch)


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


image, rows, series = normal(2, 4, 6, 6), normal(3, 4), normal(2, 5, 4)
LAYERS = [
    (nn.Dense(4, 3, rng=0), rows), (nn.Conv2d(4, 6, 3, 2, "same", groups=2, rng=0), image),
    (nn.Conv2d(6, 3, (2, 3), dilation=2, layout="NHWC", rng=0), image),
    (nn.Conv1d(5, 3, 2, rng=0), series), (nn.MaxPool(2, 1, "same"), image),
    (nn.AveragePool(3, 2, 1), image), (nn.GlobalMaxPool(), image),
    (nn.GlobalAveragePool("NHWC"), image), (nn.BatchNorm(4), image), (nn.LayerNorm(4), rows),
    (nn.RMSNorm(4), rows), (nn.LocalResponseNorm(3), image), (nn.Dropout(0.4), rows),
    (nn.Positions(9, 4, learned=True, rng=0), series), (nn.RNN(4, 3, rng=0), series),
    (nn.GRU(4, 3, 2, True, rng=0), series), (nn.LSTM(4, 3, clip=0.3, truncate=2, rng=0), series),
    (nn.RNN(4, 4, truncate=2, rng=0), series), (nn.GRU(4, 4, 2, True, rng=0), series),
    (nn.LSTM(4, 4, 2, True, clip=0.3, rng=0), series), (nn.LSTM(4, 36, rng=0), series),
    (nn.GRU(4, 36, 1, True, truncate=3, rng=0), series),
    (nn.EncoderBlock(4, 2, causal=True, dropout=0.2, rng=0), series),
    (nn.Embedding(7, 3, rng=0), np.array([[1, 6], [0, 1]])), (nn.Softmax(), rows),
    (nn.Softmax(), normal(3, 20003)), (nn.LogSoftmax(), normal(2, 9000)),
    (nn.LogSoftmax(), normal(2, 40000)), (nn.LogSoftmax(), rows),
    (nn.Residual(nn.Flatten(), nn.GELU(True)), rows),
    *((f(), rows) for f in (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.GELU, nn.Softplus, nn.Swish))]


def same(found, wanted):
    np.testing.assert_allclose(found.get(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer, x", LAYERS, ids=lambda v: repr(v)[:30])
def test_layers(layer, x, xp):
    there = deepcopy(layer).to(xp)
    y, found = layer.forward(x), there.forward(xp.asarray(x))
    same(found, y)
    dy = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    dx, below = layer.backward(dy), there.backward(xp.asarray(dy))
    if dx is not None:
        same(below, dx)
    for path, p in layer.parameters().items():
        same(there.parameters()[path].grad, p.grad)
    for f in (nn.AdamW, lambda m: nn.SGD(m, 0.1, 0.9, nesterov=True, decay=0.1)):
        f(there).step()


@pytest.mark.parametrize("kind", (nn.RNN, nn.GRU, nn.LSTM))
def test_recurrences_without_clusters(kind, xp):
    """As wider ones are."""
    with _tuned.using("s", recurrent_unsteps_cluster=None):
        test_layers(kind(4, 36, truncate=3, rng=0), series, xp)


def ended(layer):
    """The state that a recurrent layer ends in."""
    layer.forward(series)
    return layer.last


def test_masks_states_and_two_inputs(xp):
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5], bool)
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        layer = kind(4, 3, rng=0)
        there = deepcopy(layer).to(xp)
        y = layer.forward(series, ended(layer), mask)
        there.forward(xp.asarray(series))
        same(there.forward(xp.asarray(series), there.last, xp.asarray(mask)), y)
        same(there.backward(xp.asarray(y)), layer.backward(y))
    z = normal(2, 3, 4)
    for layer, q in ((nn.AdditiveAttention(4, 4, 5, rng=0), z), (nn.MultiHeadAttention(4, 2), z),
                     (nn.DecoderBlock(4, 2, rng=0), z)):
        there = deepcopy(layer).to(xp)
        y = layer.forward(q, series)
        same(there.forward(xp.asarray(q), xp.asarray(series)), y)
        for found, wanted in zip(there.backward(xp.asarray(y)), layer.backward(y)):
            same(found, wanted)
    block = nn.EncoderBlock(4, 2, causal=True, rng=0)
    there, cache = deepcopy(block).to(xp), []
    y = block.forward(series, mask)
    same(there.forward(xp.asarray(series), xp.asarray(mask)), y)
    parts = [there.forward(xp.asarray(series[:, k:k + 1]), cache=cache) for k in range(5)]
    same(xp.concatenate(parts, 1), block.forward(series))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layer, slope", [(nn.Sigmoid(), False), (nn.Softplus(), True)], ids=repr)
def test_small_probabilities_are_accurate(layer, slope, dtype, xp):
    """Of e^-80 as of 1, a few units; nan is nan, and nothing overflows."""
    x = np.append(np.linspace(-80, 80, 801), [-1e4, 1e4, -np.inf, np.inf, np.nan]).astype(dtype)
    with np.errstate(all="raise", under="ignore"):
        y = layer.forward(xp.asarray(x))
        y = (layer.backward(xp.asarray(np.ones_like(x))) if slope else y).get()
    assert np.isnan(y[-1]) and (y[-5:-1] == [0, 1, 0, 1]).all()
    right = 1 / (1 + np.exp(-x[:-5].astype("g")))
    assert (abs(y[:-5] / right - 1) <= 4 * np.finfo(dtype).eps).all()


def test_an_optimiser_follows_its_model(xp):
    """To another device after some steps, and from a state made elsewhere."""
    models = [nn.Dense(4, 3, rng=0) for _ in "123"]
    adams = [nn.Adam(model) for model in models]

    def step(of, to=lambda a: a):
        for i in of:
            models[i].backward(models[i].forward(to(rows)))
            adams[i].step()

    step((0, 1, 2))
    models[1].to(xp), models[2].to(xp)
    adams[2].load(adams[1].state())
    step([0])
    step((1, 2), xp.asarray)
    for model, adam in zip(models[1:], adams[1:]):
        same(model.weight.value, models[0].weight.value)
        assert all(type(x) is type(model.weight.value) for m in adam.memory.values() for x in m)
    adams[0].load(adams[1].state())
    same(adams[1].memory["weight"][0], adams[0].memory["weight"][0])


def test_masked_elements_hold_anything(xp):
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5], bool)
    x = xp.asarray(np.where(mask[..., None], series, np.nan))
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        layer = kind(4, 3, rng=0)
        there, y = deepcopy(layer).to(xp), layer.forward(series, mask=mask)
        same(there.forward(x, mask=xp.asarray(mask)), y)
        same(there.backward(xp.asarray(y)), layer.backward(y))


@pytest.mark.parametrize("loss, target", [
    (nn.CrossEntropy(0.1, ignore=2), np.array([0, 2, 1])), (nn.MeanSquare(), rows + 1),
    (nn.BinaryCrossEntropy(), (rows > 0).astype("f4"))], ids=repr)
def test_losses(loss, target, xp):
    value, dy = loss.forward(rows, target), loss.backward()
    there = loss.forward(xp.asarray(rows), xp.asarray(target))
    assert float(there) == pytest.approx(float(value), rel=1e-6)
    same(loss.backward(), dy)
    if loss.accuracy:
        assert loss.accuracy(xp.asarray(rows), xp.asarray(target)) == loss.accuracy(rows, target)


@pytest.mark.parametrize("n", [9001, 30000, 50257])
def test_losses_of_long_rows(n, xp):
    """Which the blocks of a cluster share on a GPU; a label in each of their parts."""
    scores, target = normal(8, n), np.arange(8) * n // 8 + 1
    loss = nn.CrossEntropy(0.1, ignore=1)
    value, dy = loss.forward(scores, target), loss.backward()
    there = loss.forward(xp.asarray(scores), xp.asarray(target))
    assert float(there) == pytest.approx(float(value), rel=1e-6)
    same(loss.backward(), dy)


def test_training(xp, tmp_path):
    """The same curve, whichever arrays; checkpoints go from one to the other."""
    x, y = normal(48, 6), np.arange(48) % 3
    curves = []
    for to in (lambda a: a, xp.asarray):
        model = nn.Sequential(nn.Dense(6, 8, rng=0), nn.BatchNorm(8), nn.Tanh(), nn.Dropout(0.1),
                              nn.Dense(8, 3, rng=1))
        model.to(xp) if curves else None
        history = nn.fit(model, nn.CrossEntropy(), nn.Adam(model, optim.cosine(0.01, 30)), to(x),
                         to(y), epochs=4, clip=1.0, progress=False, validation=(to(x), to(y)),
                         checkpoint=tmp_path / "c", resume=True)
        curves.append(history.losses)
        (tmp_path / "c").rename(tmp_path / f"c{len(curves)}")
    np.testing.assert_allclose(*curves, rtol=1e-5)
    model.to(np)
    (tmp_path / "c2").rename(tmp_path / "c")
    history = nn.fit(model, nn.CrossEntropy(), nn.Adam(model), x, y, epochs=5, progress=False,
                     checkpoint=tmp_path / "c", resume=True)
    assert len(history.epochs) == 5 and not history.stopped


def test_devices_do_not_mix(xp):
    layer = nn.Dense(4, 3, rng=0)
    with pytest.raises(TypeError,
                       match=rf"Dense\(4, 3\): x must be an array of numpy.*{xp.__name__}"):
        layer.forward(xp.asarray(rows))
    with pytest.raises(TypeError, match=rf"an array of {xp.__name__}.* got one of numpy"):
        layer.to(xp).forward(rows)
    with pytest.raises(TypeError, match=f"dy must be an array of {xp.__name__}"):
        layer.forward(xp.asarray(rows))
        layer.backward(normal(3, 3))


def test_bad_numbers_are_named(xp):
    x, y = xp.asarray(normal(8, 4)), xp.asarray(np.arange(8) % 2)
    model = nn.Sequential(nn.Dense(4, 3, rng=0), nn.Tanh(), nn.Dense(3, 2, rng=0)).to(xp)
    model.layers[2].weight.value[1, 1] = float("nan")
    history = nn.fit(model, nn.CrossEntropy(), nn.Adam(model), x, y, epochs=1, progress=False)
    assert "layer 2 Dense(3, 2), whose weight" in history.stopped
    x[3, 0] = float("inf")
    with pytest.raises(ValueError, match="1 samples, the first 3"):
        nn.fit(model, nn.CrossEntropy(), nn.Adam(model), x, y, epochs=1, progress=False)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [64, 104])
@pytest.mark.parametrize("dtype, bound", [("f4", 1e-6), ("f2", 2e-3), ("bfloat16", 1.6e-2)])
def test_fused_attention(dtype, bound, width, monkeypatch):
    """Each kernel of it, by the rows that ship and by others, beside the layer on the CPU in double
    precision; blocks of so few places that each has several pieces."""
    cupy = pytest.importorskip("cupy")
    pytest.importorskip("ml_dtypes")
    from blasx.nn import _gpu
    monkeypatch.setattr(_gpu, "multiprocessors", lambda device: 2)
    heads = normal(2, 3, 4, 150, width)
    looks = np.random.default_rng(1).random((3, 1, 150, 150)) < 0.7
    letter, by_wgmma = {"f4": "s", "f2": "h"}.get(dtype, "b"), {}
    if letter != "s":
        tile = {"GROUPS": 2, "LINES": 64, "STAGES": 2, "BLOCKS": 1,
                "WIDTH": -(-width // 64) * 64}
        by_wgmma = {"attention_wgmma": tile | {"AHEAD": 0}, "attention_wgmma_queries": tile,
                    "attention_wgmma_keys": tile}
    for kernels in [{}] + [by_wgmma, dict.fromkeys(by_wgmma)] * bool(by_wgmma):
        with _tuned.using(letter, **kernels):
            for causal, mask in ((True, None), (False, looks)):
                q, v = heads.astype(dtype)
                there = nn.DotProductAttention(causal, fused=True)
                here = nn.DotProductAttention(causal)
                on_gpu = None if mask is None else cupy.asarray(mask)
                found = [there.forward(*map(cupy.asarray, (q, v, q)), on_gpu),
                         *there.backward(cupy.asarray(v))]
                q, v = q.astype("f8"), v.astype("f8")
                wanted = [here.forward(q, v, q, mask), *here.backward(v)]
                for a, b in zip(found, wanted, strict=True):
                    error = np.linalg.norm(a.get().astype("f8") - b) / np.linalg.norm(b)
                    assert error < bound, (kernels, causal, error)


GRAPHED = [(layer, x) for layer, x in LAYERS if layer.parameters() and not any(
    isinstance(part, nn.Dropout) and part.p for _, part in layer.walk())]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f4", "bfloat16"])
@pytest.mark.parametrize("layer, x", GRAPHED, ids=lambda v: repr(v)[:30])
def test_a_graph_is_the_same_to_the_bit(layer, x, dtype):
    """Loss, gradients and what is remembered without one, in calls on other data, of other shapes,
    and added up."""
    cupy = pytest.importorskip("cupy")
    pytest.importorskip("ml_dtypes")
    plain, graphed = (deepcopy(layer).to(cupy, dtype) for _ in "12")
    losses = [nn.MeanSquare() for _ in "12"]
    graph = nn.Graph(graphed, losses[1])
    for seed, turn in enumerate((x, x[::-1], x[:2], x)):
        given = cupy.array(turn if x.dtype.kind == "i" else turn.astype(dtype), order="C")
        y = plain.forward(given)
        target = cupy.random.RandomState(seed).standard_normal(y.shape).astype(dtype)
        value = losses[0].forward(y, target)
        plain.backward(losses[0].backward())
        found = graph(given, target)
        assert float(found) == float(value)
        for path, p in plain.parameters().items():
            assert p.grad.tobytes() == graphed.parameters()[path].grad.tobytes(), (path, seed)
        for name, a in plain.state().items():
            assert (a == graphed.state()[name]).all(), name
    assert len(graph._graphs) == len({turn.shape for turn in (x, x[:2])})


@pytest.mark.gpu
def test_training_by_graphs():
    """The same losses, where norms remember, gradients are clipped and scales overflow."""
    cupy = pytest.importorskip("cupy")
    x, y = cupy.asarray(normal(50, 6)), cupy.asarray(np.arange(50) % 3)
    for dtype, scale in (("f4", None), ("f2", 2.0**40)):
        curves, states = [], []
        for graph in (False, True):
            model = nn.Sequential(nn.Dense(6, 8, rng=0), nn.BatchNorm(8), nn.Tanh(),
                                  nn.Dense(8, 3, rng=1)).to(cupy, dtype)
            history = nn.fit(model, nn.CrossEntropy(), nn.Adam(model, optim.cosine(0.01, 30)),
                             x.astype(dtype), y, epochs=4, batch=16, clip=1.0, progress=False,
                             scale=scale and nn.LossScale(scale), graph=graph)
            curves.append((history.losses, history.skipped, history.epochs))
            states.append(model.state())
        assert curves[0] == curves[1] and (curves[0][1] > 0) == bool(scale)
        assert all((a == b).all() for a, b in zip(*(s.values() for s in states)))


@pytest.mark.gpu
def test_what_a_graph_refuses():
    cupy = pytest.importorskip("cupy")
    model = nn.Sequential(nn.Dense(4, 3, rng=0), nn.Dropout(0.5)).to(cupy)
    graph, x = nn.Graph(model, nn.MeanSquare()), cupy.asarray(rows)
    with pytest.raises(ValueError, match=r"layer 1 Dropout\(0.5\) changes drawn on the host"):
        graph(x, cupy.zeros((3, 3), "f4"))
    assert int(model.layers[1].drawn.value) == 0 and model.layers[0].weight.grad is None
    model.train(False)
    graph(x, cupy.zeros((3, 3), "f4"))
    with pytest.raises(TypeError, match="x and y must be arrays of cupy, got ndarray"):
        graph(rows, x)
    with pytest.raises(ValueError, match=r"x must be of shape \(..., 4\), got \(3, 3\)"):
        graph(x[:, :3], x)
    kept = model.layers[0].weight.value
    model.load({k: v.get() if hasattr(v, "get") else v for k, v in model.state().items()})
    assert model.layers[0].weight.value is not kept
    value = graph(x, cupy.zeros((3, 3), "f4"))
    assert value == nn.MeanSquare().forward(model.forward(x), cupy.zeros((3, 3), "f4"))


def test_a_graph_wants_a_gpu(xp):
    for model, message in ((nn.Dense(4, 3, rng=0), "arrays of numpy"),
                           (nn.ReLU(), "has no parameters")):
        with pytest.raises(TypeError, match=f"Graph: model must be on the GPU, .* {message}"):
            nn.Graph(model, nn.MeanSquare())
    model = nn.Dense(4, 3, rng=0)
    with pytest.raises(TypeError, match="model must be on the GPU"):
        nn.fit(model, nn.MeanSquare(), nn.SGD(model, 0.1), rows, rows[:, :3], epochs=1, graph=True)


@pytest.mark.gpu
@pytest.mark.parametrize("rows, width", [(None, 0), (1, 104), (1, 128), (2, 64), (2, 200)])
@pytest.mark.parametrize("make, shape", [
    (lambda: nn.Conv2d(64, 80, 3, padding=1, rng=0), (5, 64, 14, 14)),
    (lambda: nn.Conv2d(70, 66, (2, 3), dilation=(2, 1), padding=(1, 2), rng=0), (3, 70, 13, 9)),
    (lambda: nn.Conv2d(130, 200, 3, layout="NHWC", bias=False, rng=0), (2, 13, 17, 130)),
    (lambda: nn.Conv1d(300, 140, 4, padding=3, rng=0), (3, 300, 70))])
def test_convolution_by_boxes(make, shape, rows, width):
    """The rows that ship and others, beside the layer on the CPU in double precision; the same bits
    in two calls; what is not finite is found where it goes."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.Device().compute_capability != "90":
        pytest.skip("convolve_wgmma is Hopper's")
    here, x = make(), normal(*shape)
    there, right = deepcopy(here).to(cupy), deepcopy(here).to(dtype=np.dtype("f8"))
    dy = normal(*right.forward(x.astype("f8")).shape)
    wanted = [right.forward(x.astype("f8")), right.backward(dy.astype("f8")),
              *(p.grad for p in right.parameters().values())]
    of = {"ROWS": rows, "BN": width, "STAGES": 2}
    weights = of | {"BN": 64 if width % 64 else width}
    kernels = {} if rows is None else {"convolve_wgmma": of, "convolve_wgmma_weights": weights}
    runs = []
    with _tuned.using("s", **kernels):
        for _ in range(2):
            y = there.forward(cupy.asarray(x))
            assert type(there._kept[1][0]).__name__ == "Boxes"
            runs.append([y, there.backward(cupy.asarray(dy))])
            for p in there.parameters().values():
                runs[-1].append(p.grad)
                p.grad = None
        for a, b, c in zip(*runs, wanted, strict=True):
            assert a.tobytes() == b.tobytes()
            assert abs(a.get() - c).max() <= 1e-6 * abs(c).max()
        x[1, 2, 3] = np.inf
        with np.errstate(invalid="ignore"):
            bad = ~np.isfinite(here.forward(x))
        assert (~np.isfinite(there.forward(cupy.asarray(x)).get()) == bad).all() and bad.any()
