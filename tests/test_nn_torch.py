"""blasx.nn beside torch, where it is installed: layers, losses and optimisers in double precision,
answers and gradients to 1e-10."""

import numpy as np
import pytest

from blasx import nn
from blasx.nn import optim

torch = pytest.importorskip("torch")
F = torch.nn.functional
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape)


def near(found, wanted):
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-10, atol=1e-10)


image, rows, series = normal(2, 4, 7, 8), normal(5, 6), normal(3, 5, 4)
LAYERS = [  # ours, theirs of (x, *our parameters in order), x
    (nn.ReLU(), F.relu, rows), (nn.Tanh(), torch.tanh, rows), (nn.Sigmoid(), torch.sigmoid, rows),
    (nn.ELU(1.5), lambda x: F.elu(x, 1.5), rows), (nn.GELU(), F.gelu, rows),
    (nn.GELU(True), lambda x: F.gelu(x, approximate="tanh"), rows),
    (nn.Softplus(), F.softplus, rows), (nn.Swish(), F.silu, rows),
    (nn.Softmax(), lambda x: torch.softmax(x, -1), rows),
    (nn.Softmax(1), lambda x: torch.softmax(x, 1), image),
    (nn.LogSoftmax(), lambda x: torch.log_softmax(x, -1), rows),
    (nn.LayerNorm(6), lambda x, w, b: F.layer_norm(x, (6,), w, b), rows),
    (nn.RMSNorm(6), lambda x, w: F.rms_norm(x, (6,), w, 1e-5), rows),
    (nn.BatchNorm(4), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), image),
    (nn.LocalResponseNorm(3, 0.1), lambda x: F.local_response_norm(x, 3, 0.1), image),
    (nn.MaxPool(3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1), image),
    (nn.AveragePool(3, 2, 1), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), image),
    (nn.GlobalAveragePool(), lambda x: x.mean((2, 3)), image),
    (nn.Dense(6, 3, rng=0), lambda x, w, b: x @ w + b, rows),
    (nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 2), 2, groups=2, rng=0),
     lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), 2, 2), image),
    (nn.Conv2d(4, 8, 3, padding="same", groups=4, rng=0),
     lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4), image),
    (nn.Conv1d(5, 3, 2, 2, rng=0), lambda x, w, b: F.conv1d(x, w, b, 2), series),
]


@pytest.mark.parametrize("layer, function, x", LAYERS, ids=lambda v: repr(v)[:30])
def test_layers(layer, function, x):
    layer = layer.to(dtype="f8")
    parameters = list(layer.parameters().values())
    there = [torch.tensor(a, requires_grad=True) for a in (x, *(p.value for p in parameters))]
    y, wanted = layer.forward(x), function(*there)
    near(y, wanted)
    dy = normal(*y.shape)
    dx = layer.backward(dy)
    for found, right in zip((dx, *(p.grad for p in parameters)),
                            torch.autograd.grad(wanted, there, torch.tensor(dy)), strict=True):
        near(found, right)


@pytest.mark.parametrize("kind, theirs", [
    (lambda **o: nn.RNN(4, 3, **o), torch.nn.RNN), (lambda **o: nn.GRU(4, 3, **o), torch.nn.GRU),
    (lambda **o: nn.LSTM(4, 3, **o), torch.nn.LSTM)], ids=["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_layers(kind, theirs, both):
    """torch has i f g o, matrices transposed and a second bias, whose first gates are with ours."""
    layer = kind(bidirectional=both, layers=2, dtype="f8", rng=0)
    there = theirs(4, 3, 2, batch_first=True, bidirectional=both, dtype=torch.float64)
    order = list(range(3 * layer.cells[0].GATES))
    if theirs is torch.nn.LSTM:
        order[6:] = [9, 10, 11, 6, 7, 8]
    weights = iter(there.parameters())
    asked = []
    for cell in layer.cells:
        W, U, b, c = (next(weights) for _ in range(4))
        own = np.zeros(len(order))
        if cell.SPLIT:
            cell.c.value = normal(3)
            own[-3:] = cell.c.value
        with torch.no_grad():
            for to, value in ((W, cell.W.value.T), (U, cell.U.value.T), (b, cell.b.value),
                              (c, own)):
                to.copy_(torch.tensor(value[order]))
        asked += [(cell.W, W), (cell.U, U), (cell.b, b)]
    x = torch.tensor(series, requires_grad=True)
    y, wanted = layer.forward(series), there(x)[0]
    near(y, wanted)
    dy = normal(*y.shape)
    dx = layer.backward(dy)
    wanted.backward(torch.tensor(dy))
    near(dx, x.grad)
    back = np.argsort(order)
    for ours, theirs in asked:
        near(ours.grad.T, theirs.grad[back])


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal, mask):
    q, k, v = normal(2, 3, 5, 4), normal(2, 3, 5, 4), normal(2, 3, 5, 6)
    seen = rng.random((2, 1, 5, 5)) < 0.7
    seen[..., 0] = True
    layer = nn.DotProductAttention(causal)
    there = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]
    allowed = torch.tensor((seen if mask else np.ones((5, 5), bool))
                           & (np.tri(5, dtype=bool) if causal else True))
    y = layer.forward(q, k, v, seen if mask else None)
    wanted = F.scaled_dot_product_attention(*there, attn_mask=allowed)
    near(y, wanted)
    dy = normal(*y.shape)
    for found, right in zip(layer.backward(dy),
                            torch.autograd.grad(wanted, there, torch.tensor(dy))):
        near(found, right)


@pytest.mark.parametrize("ours, theirs, target", [
    (nn.CrossEntropy(0.1, ignore=2), lambda y, t: F.cross_entropy(
        y, t, ignore_index=2, label_smoothing=0.1), np.array([0, 2, 1, 5, 3])),
    (nn.MeanSquare(), F.mse_loss, normal(5, 6)),
    (nn.BinaryCrossEntropy(), F.binary_cross_entropy_with_logits, rng.random((5, 6)))], ids=repr)
def test_losses(ours, theirs, target):
    y = torch.tensor(rows, requires_grad=True)
    wanted = theirs(y, torch.tensor(target))
    near(ours.forward(rows, target), wanted)
    near(ours.backward(), torch.autograd.grad(wanted, y)[0])


@pytest.mark.parametrize("ours, theirs", [
    (lambda m: nn.SGD(m, 0.1), lambda p: torch.optim.SGD(p, 0.1)),
    (lambda m: nn.SGD(m, 0.1, 0.9, decay=0.1),
     lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.1)),
    (lambda m: nn.SGD(m, 0.1, 0.9, nesterov=True),
     lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True)),
    (lambda m: nn.Adam(m, 0.1, decay=0.1), lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1)),
    (lambda m: nn.AdamW(m, 0.1), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.01))],
    ids=["SGD", "momentum", "Nesterov", "Adam", "AdamW"])
def test_optimisers(ours, theirs):
    layer = nn.Dense(4, 3, dtype="f8", rng=0)
    there = [torch.tensor(p.value, requires_grad=True) for p in layer.parameters().values()]
    here, steps = ours(layer), theirs(there)
    for _ in range(5):
        for p, w in zip(layer.parameters().values(), there):
            p.grad = normal(*p.value.shape)
            w.grad = torch.tensor(p.grad)
        here.step()
        steps.step()
    for p, w in zip(layer.parameters().values(), there):
        near(p.value, w)


def test_clipping():
    layer = nn.Dense(4, 3, dtype="f8", rng=0)
    there = [torch.tensor(p.value, requires_grad=True) for p in layer.parameters().values()]
    for p, w in zip(layer.parameters().values(), there):
        p.grad = normal(*p.value.shape)
        w.grad = torch.tensor(p.grad)
    norm = torch.nn.utils.clip_grad_norm_(there, 2.0)
    assert np.isclose(optim.clip_norm(layer, 2.0), float(norm))
    for p, w in zip(layer.parameters().values(), there):
        np.testing.assert_allclose(p.grad, w.grad.numpy(), rtol=1e-6)  # torch adds that to the norm
