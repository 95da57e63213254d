"""blasx.nn on the CPU: layers, forward and with all gradients, beside the same in plain NumPy.

NumPy's convolution gathers sliding windows for one matmul, and adds gradients back window element
by window element. An image of one channel is a network's input: nobody wants its gradient.
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
                yield from convolution(letter, layout, *shape)
        for shape in LSTMS[take]:
            yield lstm(letter, *shape)


def row(name, letter, shape, terms, layer, x, peer, dx=True):
    """Forward and backward of a layer beside `peer(x, dy, *weights)`, which answers y, the
    gradients of the weights, and dx."""
    dtype = x.dtype
    parameters = layer.parameters().values()
    weights = [p.value for p in parameters]
    dy = np.random.default_rng(1).standard_normal(layer.forward(x).shape).astype(dtype)
    wanted = peer(*(a.astype("f8") for a in (x, dy, *weights)))

    def ours(x, dy):
        for p in parameters:
            p.grad = None
        y = layer.forward(x)
        return y, layer.backward(dy) if dx else layer.backward(dy, dx=False)

    def with_gradients(found):
        y, below = found
        return y, *(p.grad for p in parameters), below

    def check(found):
        return max(errors.near(a, b, dtype, terms) for a, b in zip(found, wanted, strict=True)
                   if b is not None)

    return Row(name, letter, shape, {"step": lambda: Side(lambda: (x, dy), ours, with_gradients)},
               {"NumPy": lambda: Side(lambda: (x, dy, *weights), peer)}, check, PAUSING)


def normal(letter, *shape):
    return np.random.default_rng(0).standard_normal(shape).astype(
        {"s": "f4", "d": "f8"}[letter])


# -- dense


def dense(letter, batch, n_in, n_out):
    layer = nn.Dense(n_in, n_out, dtype=normal(letter).dtype, rng=0)
    return row("dense", letter, f"{batch}x{n_in}x{n_out}", max(batch, n_in, n_out), layer,
               normal(letter, batch, n_in), numpy_dense)


def numpy_dense(x, dy, w, b):
    return x @ w + b, x.T @ dy, dy.sum(0), dy @ w.T


# -- convolution


def convolution(letter, layout, batch, channels, size, filters, kernel, stride):
    """The row of the forward pass, and that of the step."""
    x = normal(letter, batch, size, size, channels)
    layer = nn.Conv2d(channels, filters, kernel, stride, "same", layout=layout, dtype=x.dtype,
                      rng=0)
    last, dx = layout == "NHWC", channels > 1
    x = x if last else np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    w, b = (p.value for p in layer.parameters().values())
    shape = f"{batch}x{channels}x{size}x{size} {filters} of {kernel}/{stride} {layout}"

    def check(y):
        wanted = numpy_forward(*(a.astype("f8") for a in (x, w, b)), stride, last)[0]
        return errors.near(y, wanted, x.dtype, channels * kernel**2)

    def forward(x, w, b):
        return numpy_forward(x, w, b, stride, last)[0]

    yield Row("conv2d_forward", letter, shape, {"forward": lambda: Side(lambda: (x,),
                                                                        layer.forward)},
              {"NumPy": lambda: Side(lambda: (x, w, b), forward)}, check, PAUSING)
    yield row("conv2d", letter, shape, max(channels * kernel**2, batch * size**2), layer, x,
              partial(numpy_convolution, stride=stride, last=last, with_dx=dx), dx)


def numpy_forward(x, w, b, stride, last):
    """sliding_window_view and one matmul, "same" padding: y, its columns, the padding."""
    x = x.transpose(0, 3, 1, 2) if last else x
    (n, c, size, _), (m, _, k, _) = x.shape, w.shape
    count = -(-size // stride)
    total = max((count - 1) * stride + k - size, 0)
    pad = (total // 2, total - total // 2)
    padded = np.pad(x, ((0, 0), (0, 0), pad, pad))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))
    windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)
    columns = windows.reshape(n * count * count, c * k * k)
    y = (columns @ w.reshape(m, -1).T + b).reshape(n, count, count, m)
    return y if last else y.transpose(0, 3, 1, 2), columns, padded.shape, pad


def numpy_convolution(x, dy, w, b, stride, last, with_dx):
    y, columns, shape, pad = numpy_forward(x, w, b, stride, last)
    c, (m, _, k, _), size = shape[1], w.shape, x.shape[2]
    dy = dy if last else dy.transpose(0, 2, 3, 1)
    rows = dy.reshape(-1, m)
    dw, dx = (rows.T @ columns).reshape(w.shape), None
    if with_dx:
        dcolumns = (rows @ w.reshape(m, -1)).reshape(*dy.shape[:3], c, k, k)
        inside = slice(pad[0], pad[0] + size)
        dx = scatter(dcolumns, shape, stride)[:, :, inside, inside]
        dx = dx.transpose(0, 2, 3, 1) if last else dx
    return y, dw, rows.sum(0), dx


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
    return y, dW, dU, db, dx
