"""Every layer of blasx.nn and every option of it: gradients in double precision against central
differences, on shapes and options that Hypothesis draws."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blasx import nn
from tests import gradients

FEW = settings(max_examples=12)
seeds = st.integers(0, 2**32 - 1)
small = st.integers(1, 4)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


class Wrong(nn.Tanh):
    """Off by one part in 10,000, in one element of twelve."""

    def backward(self, dy):
        dx = super().backward(dy)
        dx[1, 2] *= 1 + 1e-4
        return dx


def test_the_check_sees_a_wrong_gradient():
    with pytest.raises(AssertionError, match="input 0"):
        gradients.check(Wrong(), normal(0, 3, 4))


@FEW
@given(seeds, small, small, small, st.booleans(), st.booleans())
def test_dense(seed, n_in, n_out, batch, bias, deep):
    layer = nn.Dense(n_in, n_out, bias=bias, dtype="f8", rng=seed)
    gradients.check(layer, normal(seed, *((2,) if deep else ()), batch, n_in))


@pytest.mark.parametrize("layer", [
    nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.ELU(), nn.ELU(0.3), nn.GELU(), nn.GELU(True),
    nn.Softplus(), nn.Swish(), nn.Swish(1.7), nn.Softmax(), nn.Softmax(0), nn.LogSoftmax(),
    nn.LogSoftmax(1), nn.Flatten(), nn.Dropout(0.4, seed=3), nn.Dropout(0.0)], ids=repr)
def test_functions(layer):
    for seed in range(3):
        gradients.check(layer, 2 * normal(seed, 3, 4, 2), seed=seed)


def test_compositions():
    inner = nn.Sequential(nn.Dense(5, 5, dtype="f8", rng=0), nn.Tanh())
    model = nn.Sequential(nn.Dense(3, 5, dtype="f8", rng=1),
                          nn.Residual(nn.LayerNorm(5, dtype="f8"), inner),
                          nn.Dense(5, 2, dtype="f8", rng=2))
    gradients.check(model, normal(1, 4, 3))
    assert list(model.parameters())[:3] == ["0.weight", "0.bias", "1.0.weight"]


@st.composite
def convolutions(draw, dims):
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    each, filters = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    if groups == 3:
        each = 1  # depthwise
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(dims))
    padding = draw(st.sampled_from(["same", 0, 1, 2]))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(dims))
    layer = (nn.Conv1d, nn.Conv2d)[dims - 1](
        groups * each, groups * filters, kernel,
        stride=tuple(draw(st.integers(1, 3)) for _ in range(dims)), padding=padding,
        dilation=dilation, groups=groups, bias=draw(st.booleans()),
        layout=draw(st.sampled_from(["NCHW", "NHWC"])), dtype="f8", rng=draw(seeds))
    extents = [draw(st.integers((k - 1) * d + 1, 7)) for k, d in zip(kernel, dilation)]
    shape = [draw(st.integers(1, 3)), *extents]
    shape.insert(len(shape) if layer.windows.last else 1, layer.channels)
    return layer, normal(draw(seeds), *shape)


def directly(layer, x):
    """The definition of a convolution, element by element."""
    w, b = layer.weight.value, layer.bias.value if layer.bias else np.zeros(layer.filters)
    x = layer.windows.first(x)
    padding, counts = layer.windows.fit(layer, x.shape[2:])
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    y = np.empty((len(x), layer.filters, *counts))
    per, out = layer.channels // layer.groups, layer.filters // layer.groups
    for m in range(layer.filters):
        g = m // out
        for at in np.ndindex(*counts):
            cut = tuple(slice(i * s, i * s + (k - 1) * d + 1, d) for i, s, k, d in zip(
                at, layer.windows.stride, layer.windows.kernel, layer.windows.dilation))
            window = x[(slice(None), slice(g * per, (g + 1) * per), *cut)]
            y[(slice(None), m, *at)] = (window * w[m]).reshape(len(x), -1).sum(1) + b[m]
    return layer.windows.back(y)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("limit", [2**18, 40])
def test_convolution(dims, limit, monkeypatch):
    """In one chunk, and in as many as there are rows of windows."""
    monkeypatch.setattr("blasx.nn.conv._limit", lambda: limit)

    @settings(max_examples=15)
    @given(convolutions(dims))
    def holds(case):
        layer, x = case
        np.testing.assert_allclose(layer.forward(x), directly(layer, x), rtol=1e-12, atol=1e-12)
        strided = np.repeat(x, 2, 0)[::2]
        np.testing.assert_array_equal(layer.forward(strided), layer.forward(x))
        gradients.check(layer, x)

    holds()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_convolution_needs_little_memory(layout):
    """Less beside its images than a third of the columns that one product for all would take."""
    x = np.ones((4, 8, 96, 96) if layout == "NCHW" else (4, 96, 96, 8), "f4")
    layer = nn.Conv2d(8, 8, 5, padding="same", layout=layout, rng=0)
    tracemalloc.start()
    layer.backward(layer.forward(x))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 25 * x.nbytes / 3


@settings(max_examples=30)
@given(seeds, st.sampled_from([nn.MaxPool, nn.AveragePool]), st.integers(1, 3),
       st.sampled_from([None, 1, 2]), st.sampled_from([0, 1, "same"]),
       st.sampled_from(["NCHW", "NHWC"]), st.sampled_from([1, 2]))
def test_pools(seed, kind, kernel, stride, padding, layout, dims):
    assume(padding != kernel)  # a window of padding alone
    layer = kind(kernel, stride, padding, layout, dims)
    gradients.check(layer, normal(seed, *((2, 3, 5, 4) if dims == 2 else (2, 5, 4))))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", [nn.GlobalMaxPool, nn.GlobalAveragePool])
def test_global_pools(kind, layout):
    gradients.check(kind(layout), normal(0, 2, 3, 4, 5))
    gradients.check(kind(layout), normal(1, 2, 3, 4))


def perturbed(layer, seed=5):
    """Away from gamma = 1 and beta = 0, where half the formulas cannot be seen."""
    rng = np.random.default_rng(seed)
    for p in layer.parameters().values():
        p.value = p.value + 0.3 * rng.standard_normal(p.value.shape)
    return layer


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape, axis", [((6, 3), 1), ((2, 3, 4, 2), 1), ((2, 4, 2, 3), -1)])
def test_batch_norm(shape, axis, training):
    layer = perturbed(nn.BatchNorm(3, axis, dtype="f8"))
    layer.forward(normal(0, *shape))
    gradients.check(layer.train(training), normal(1, *shape))


@FEW
@given(seeds, st.integers(2, 6), small, st.booleans())
def test_vector_norms(seed, n, batch, rms):
    layer = perturbed((nn.RMSNorm if rms else nn.LayerNorm)(n, dtype="f8"))
    gradients.check(layer, normal(seed, batch, 2, n))


@pytest.mark.parametrize("size", [1, 3, 5, 9])
@pytest.mark.parametrize("axis", [1, -1])
def test_local_response(size, axis):
    layer = nn.LocalResponseNorm(size, alpha=0.7, beta=0.6, k=1.5, axis=axis)
    x = normal(0, 2, 6, 3, 2)
    gradients.check(layer, x if axis == 1 else x.transpose(0, 2, 3, 1))


@FEW
@given(seeds, st.booleans())
def test_embeddings(seed, learned):
    ids = np.random.default_rng(seed).integers(0, 4, (2, 3))
    gradients.check(nn.Embedding(4, 5, dtype="f8", rng=seed), ids)
    gradients.check(nn.Positions(6, 5, learned, dtype="f8", rng=seed), normal(seed, 2, 4, 5))
    gradients.check(nn.Positions(6, 5, learned, dtype="f8", rng=seed), normal(seed, 2, 4, 5),
                    start=2)


@st.composite
def recurrences(draw):
    kind = draw(st.sampled_from([nn.RNN, nn.GRU, nn.LSTM]))
    options = {}
    if kind is nn.RNN:
        options["function"] = draw(st.sampled_from(["tanh", "relu"]))
    if kind is nn.LSTM:
        options["clip"] = draw(st.sampled_from([None, 0.3]))
    layer = kind(draw(small), draw(small), draw(st.integers(1, 2)), draw(st.booleans()),
                 dtype="f8", rng=draw(seeds), **options)
    return perturbed(layer), draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.booleans())


class FromState(nn.Layer):
    """A recurrent layer as a function of x and of the state it starts from, which answers y and
    the state it ends in."""

    def __init__(self, inner):
        self.inner = inner

    def forward(self, x, start, mask=None):
        y = self.inner.forward(x, self.listed(start), mask)
        ends = [s.ravel() for cell in self.inner.last for s in cell]
        self.size = y.shape
        return np.concatenate([y.ravel(), *ends])

    def backward(self, dy):
        n = int(np.prod(self.size))
        states = len(self.inner.cells) * self.inner.cells[0].STATES
        ends = dy[n:].reshape(states, self.size[0], self.inner.n)
        dx = self.inner.backward(dy[:n].reshape(self.size), self.listed(ends))
        return dx, np.stack([s for cell in self.inner.dstate for s in cell])

    def listed(self, states):
        per = self.inner.cells[0].STATES
        return [tuple(states[k:k + per]) for k in range(0, len(states), per)]


@settings(max_examples=30)
@given(recurrences(), seeds)
def test_recurrent(case, seed):
    layer, batch, times, masked = case
    rng = np.random.default_rng(seed)
    mask = rng.random((batch, times)) < 0.6 if masked else None
    states = len(layer.cells) * layer.cells[0].STATES
    gradients.check(FromState(layer), rng.standard_normal((batch, times, layer.n_in)),
                    0.5 * rng.standard_normal((states, batch, layer.n)), mask=mask)


@pytest.mark.parametrize("causal", [False, True])
def test_dot_product_attention(causal):
    for seed, masked in ((0, False), (1, True)):
        mask = np.random.default_rng(seed).random((2, 1, 3, 5)) < 0.6 if masked else None
        gradients.check(nn.DotProductAttention(causal), normal(seed, 2, 2, 3, 4),
                        normal(seed + 5, 2, 2, 5, 4), normal(seed + 9, 2, 2, 5, 3), mask=mask)


@FEW
@given(seeds, small, small, st.booleans())
def test_additive_attention(seed, queries, keys, masked):
    mask = np.random.default_rng(seed).random((2, queries, keys)) < 0.7 if masked else None
    layer = perturbed(nn.AdditiveAttention(3, 4, 5, dtype="f8", rng=seed))
    gradients.check(layer, normal(seed, 2, queries, 3), normal(seed + 1, 2, keys, 4), mask=mask)


@FEW
@given(seeds, st.sampled_from([1, 2, 3]), st.booleans(), st.booleans(), st.booleans(),
       st.booleans())
def test_multi_head_attention(seed, heads, causal, cross, masked, bias):
    layer = perturbed(nn.MultiHeadAttention(6, heads, causal, bias, dtype="f8", rng=seed))
    keys = 4 if cross else 3
    mask = np.random.default_rng(seed).random((2, keys)) < 0.7 if masked else None
    inputs = [normal(seed, 2, 3, 6)] + ([normal(seed + 1, 2, keys, 6)] if cross else [])
    gradients.check(layer, *inputs, mask=mask)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_transformer_blocks(norm_first, dropout):
    options = {"norm_first": norm_first, "dropout": dropout, "dtype": "f8", "rng": 1}
    for causal in (False, True):
        gradients.check(perturbed(nn.EncoderBlock(4, 2, causal=causal, **options)),
                        normal(0, 2, 3, 4))
    gradients.check(perturbed(nn.DecoderBlock(4, 2, 6, **options)), normal(0, 2, 3, 4),
                    normal(1, 2, 5, 4), z_mask=np.array([[1] * 5, [1, 1, 1, 0, 0]], bool))


class Judged(nn.Layer):
    """A loss as a function of y alone."""

    def __init__(self, loss, target):
        self.loss, self.target = loss, target

    def forward(self, y):
        return self.loss.forward(y, self.target)

    def backward(self, one):
        return one * self.loss.backward()


@FEW
@given(seeds, st.integers(2, 5), st.sampled_from([0.0, 0.1]), st.sampled_from([None, 1]))
def test_losses(seed, k, smoothing, ignore):
    rng, y = np.random.default_rng(seed), 2 * normal(seed, 4, 3, k)
    labels = rng.integers(0, k, (4, 3))
    gradients.check(Judged(nn.CrossEntropy(smoothing, ignore), labels), y)
    gradients.check(Judged(nn.MeanSquare(), normal(seed + 1, 4, 3, k)), y)
    gradients.check(Judged(nn.BinaryCrossEntropy(), rng.random((4, 3, k))), y)
