"""blasx.nn on the CPU: a layer forward and all its gradients, beside the same in plain
NumPy. Where NumPy's convolution gathers sliding windows for one matmul, `scatter` adds their
gradients back window element by window element.
"""

from functools import partial

import numpy as np

from blasx import _errors as errors
from blasx import nn

from .cpu import PAUSING
from .timing import Row, Side

DENSE = ((32, 784, 16), (64, 784, 512), (256, 1024, 1024))  # batch, in, out
# batch, channels, height and width, filters, kernel, stride, "same" padding
CONVOLUTIONS = ((32, 1, 28, 12, 3, 1), (32, 12, 28, 24, 6, 2), (32, 6, 14, 16, 5, 1),
                (8, 32, 28, 32, 3, 1), (8, 64, 14, 128, 3, 1), (8, 64, 28, 64, 1, 1))
LSTMS = ((32, 64, 64, 128), (16, 128, 128, 256))  # batch, time, in, width


def rows(letters, quick, family):
    """The rows of the family, in single and double precision; --quick takes the first of each."""
    take = slice(1) if quick else slice(None)
    for letter in [x for x in letters if x in "sd"]:
        for shape in DENSE[take]:
            yield dense(letter, *shape)
        for shape in CONVOLUTIONS[take]:
            for layout in ("NHWC", "NCHW"):
                yield convolution(letter, layout, *shape)
        for shape in LSTMS[take]:
            yield lstm(letter, *shape)


def row(name, letter, shape, terms, layer, x, peer, clock=PAUSING):
    """Forward and backward of a layer beside `peer(x, dy, *weights)`, which answers y, dx and the
    gradients of the weights."""
    dtype = np.dtype({"s": "f4", "d": "f8"}[letter])
    weights = [p.value for p in layer.parameters().values()]
    dy = np.random.default_rng(1).standard_normal(layer.forward(x).shape).astype(dtype)
    wide = [a.astype("f8") for a in (x, dy, *weights)]
    wanted = peer(*wide)

    def ours(x, dy):
        y = layer.forward(x)
        dx = layer.backward(dy)
        grads = [p.grad for p in layer.parameters().values()]
        for p in layer.parameters().values():
            p.grad = None
        return y, dx, *grads

    def check(found):
        return max(errors.near(a, b, dtype, terms) for a, b in zip(found, wanted, strict=True))

    return Row(name, letter, shape, {"step": lambda: Side(lambda: (x, dy), ours)},
               {"NumPy": lambda: Side(lambda: (x, dy, *weights), peer)}, check, clock)


def normal(letter, *shape):
    return np.random.default_rng(0).standard_normal(shape).astype(
        {"s": "f4", "d": "f8"}[letter])


# -- dense


def dense(letter, batch, n_in, n_out):
    layer = nn.Dense(n_in, n_out, dtype=normal(letter).dtype, rng=0)
    return row("dense", letter, f"{batch}x{n_in}x{n_out}", max(batch, n_in, n_out), layer,
               normal(letter, batch, n_in), numpy_dense)


def numpy_dense(x, dy, w, b):
    return x @ w + b, dy @ w.T, x.T @ dy, dy.sum(0)


# -- convolution


def convolution(letter, layout, batch, channels, size, filters, kernel, stride):
    layer = nn.Conv2d(channels, filters, kernel, stride, "same", layout=layout,
                      dtype=normal(letter).dtype, rng=0)
    x = normal(letter, batch, size, size, channels)
    x = x if layout == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    peer = partial(numpy_convolution, stride=stride, last=layout == "NHWC")
    shape = f"{batch}x{channels}x{size}x{size} {filters} of {kernel}/{stride} {layout}"
    return row("conv2d", letter, shape, max(channels * kernel**2, batch * size**2), layer, x, peer)


def numpy_convolution(x, dy, w, b, stride, last):
    """sliding_window_view and one matmul; "same" padding."""
    if last:
        x, dy = x.transpose(0, 3, 1, 2), dy.transpose(0, 3, 1, 2)
    (n, c, size, _), (m, _, k, _) = x.shape, w.shape
    count = dy.shape[2]
    total = max((count - 1) * stride + k - size, 0)
    pad = (total // 2, total - total // 2)
    padded = np.pad(x, ((0, 0), (0, 0), pad, pad))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))
    windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
    columns = windows.reshape(n * count * count, c * k * k)
    y = (columns @ w.reshape(m, -1).T + b).reshape(n, count, count, m)
    rows = dy.transpose(0, 2, 3, 1).reshape(-1, m)
    dw = (rows.T @ columns).reshape(w.shape)
    dcolumns = (rows @ w.reshape(m, -1)).reshape(n, count, count, c, k, k)
    dx = scatter(dcolumns, padded.shape, stride)[:, :, pad[0]:pad[0] + size, pad[0]:pad[0] + size]
    if last:
        return y, dx.transpose(0, 2, 3, 1), dw, rows.sum(0)
    return y.transpose(0, 3, 1, 2), dx, dw, rows.sum(0)


def scatter(dcolumns, shape, stride):
    """The sum of what windows (n, i, j, c, k, k) have for each element of an image."""
    dx, count, k = np.zeros(shape, dcolumns.dtype), dcolumns.shape[1], dcolumns.shape[-1]
    end = (count - 1) * stride + 1
    for i in range(k):
        for j in range(k):
            dx[:, :, i:i + end:stride, j:j + end:stride] += dcolumns[..., i, j].transpose(
                0, 3, 1, 2)
    return dx


# -- LSTM


def lstm(letter, batch, times, n_in, n):
    layer = nn.LSTM(n_in, n, dtype=normal(letter).dtype, rng=0)
    return row("lstm", letter, f"{batch}x{times}x{n_in} {n}", times * batch, layer,
               normal(letter, batch, times, n_in), numpy_lstm)


def numpy_lstm(x, dy, W, U, b):
    """As the textbook has it, a step at a time, gates i f o g."""
    batch, times, n_in = x.shape
    n = len(U)
    h = c = np.zeros((batch, n), x.dtype)
    steps, y = [], np.empty((batch, times, n), x.dtype)
    for t in range(times):
        z = x[:, t] @ W + h @ U + b
        i, f, o = (1 / (1 + np.exp(-z[:, k * n:(k + 1) * n])) for k in range(3))
        g = np.tanh(z[:, 3 * n:])
        steps.append((i, f, o, g, h, c))
        c = i * g + f * c
        h = y[:, t] = o * np.tanh(c)
        steps[-1] += (np.tanh(c),)
    dW, dU, db, dx = (np.zeros_like(a) for a in (W, U, b, x))
    dh = dc = np.zeros((batch, n), x.dtype)
    for t in reversed(range(times)):
        i, f, o, g, h, c, squashed = steps[t]
        dh = dh + dy[:, t]
        dc = dc + dh * o * (1 - squashed**2)
        dz = np.concatenate([dc * g * i * (1 - i), dc * c * f * (1 - f),
                             dh * squashed * o * (1 - o), dc * i * (1 - g**2)], 1)
        dW += x[:, t].T @ dz
        dU += h.T @ dz
        db += dz.sum(0)
        dx[:, t] = dz @ W.T
        dh, dc = dz @ U.T, dc * f
    return y, dx, dW, dU, db
