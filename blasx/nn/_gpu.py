"""Fused kernels for the layers, on CuPy arrays: what an elementwise library would read and write
several times goes through memory once.

`fused(x)` of _arrays.py gives a layer this module where its arrays are CuPy's. Arrays that lie by
rows, from a multiple of 16 bytes on, are worked on where they lie; of others a copy is made first,
which trace() counts. Nothing synchronises.
"""

from struct import pack, unpack

import cupy
import numpy as np

from .. import _trace
from .._kernel import current_device, multiprocessors
from ..batched._gpu import blocks
from ._arrays import REALS, like, product

FUNCTIONS = ("relu", "tanh", "sigmoid", "elu", "gelu", "gelu_tanh", "softplus", "swish")
_SINGLY = (("SINGLY", 1),)  # rows that are not whole packs of 16 bytes (kernels/rows.cuh)
OF_Y = ("tanh", "sigmoid")  # whose derivatives are written by y


def _bits(x):
    """A real parameter of a kernel: a double in 64 bits."""
    return unpack("q", pack("d", x))[0]


def _by_rows(x):
    """x itself where a kernel can read it by packs, else a copy."""
    if x.flags.c_contiguous and x.data.ptr % 16 == 0:
        return x
    _trace.note(copied=x.nbytes)
    return x.copy(order="C")


def _new(*shape, like):
    return cupy.ndarray(shape, like.dtype)


def _sums(*shape, like):
    """A new array of what is summed of such numbers, in single precision at least."""
    return cupy.ndarray(shape, max(like.dtype, np.dtype("f4"), key=lambda t: t.itemsize))


def _kernel(name, like, n=4):
    """The Blocks for rows of n, or None past the kernel's last row."""
    packed = n * like.itemsize % 16 == 0
    return blocks(name, REALS[like.dtype], n, *(() if packed else _SINGLY))


def _on_rows(name, x, *numbers):
    """Launch a kernel of rows.cuh with a team to every row of x."""
    n = x.shape[-1]
    m, kernel = x.size // n, _kernel(name, x, n)
    teams = kernel.threads // kernel.values["TEAM"]
    kernel(-(-m // teams), 0, *numbers, m, n)


def _on_elements(name, count, like, *numbers):
    """Launch a kernel of elements.cuh over `count` numbers."""
    kernel = _kernel(name, like)
    packs = kernel.threads * kernel.values["PACKS"] * 16 // like.itemsize
    kernel(-(-count // packs), 0, *numbers, count)


# -- rows


def norm(x, gain, bias, eps):
    """(y, x, about) of layer norm along the last axis, of RMS norm where bias is None; None where
    rows are too long for the gradient's kernel."""
    if _kernel("norm_rows_backward", x, x.shape[-1]) is None:
        return None
    x, gain, bias = _by_rows(x), _by_rows(gain), bias if bias is None else _by_rows(bias)
    y, about = _new(*x.shape, like=x), _sums(x.size // x.shape[-1], 2, like=x)
    _on_rows("norm_rows", x, x.data.ptr, gain.data.ptr, 0 if bias is None else bias.data.ptr,
             y.data.ptr, about.data.ptr, _bits(eps))
    return y, x, about


def norm_backward(dy, x, about, gain, centred):
    """(dx, dgain, dbias) of `norm`."""
    dy, gain, n = _by_rows(dy), _by_rows(gain), x.shape[-1]
    m, kernel = x.size // n, _kernel("norm_rows_backward", x, n)
    teams = kernel.threads // kernel.values["TEAM"]
    count = min(-(-m // teams), kernel.values["BLOCKS"] * multiprocessors(current_device()))
    dx, parts = _new(*x.shape, like=x), _sums(count * teams, 2 * n, like=x)
    kernel(count, 0, x.data.ptr, dy.data.ptr, gain.data.ptr, about.data.ptr, dx.data.ptr,
           parts.data.ptr, centred, m, n)
    sums = like(column_sums(parts), x)
    return dx, sums[:n], sums[n:]


def column_sums(a):
    """a.sum(0) of rows, in strips that all multiprocessors share."""
    a = _by_rows(a)
    m, n = a.shape
    kernel = _kernel("column_sums", a)
    across = -(-n // 32)
    strips = max(1, min(4 * multiprocessors(current_device()) // across, m // kernel.threads))
    sums = _sums(strips, n, like=a)
    kernel(across * strips, 0, a.data.ptr, sums.data.ptr, -(-m // strips), m, n)
    return like(sums[0] if strips == 1 else column_sums(sums), a)


def softmax(x, log=False):
    """Softmax along the last axis, or its logarithm."""
    x = _by_rows(x)
    y = _new(*x.shape, like=x)
    _on_rows("softmax_rows", x, x.data.ptr, y.data.ptr, log)
    return y


def softmax_backward(dy, y, log=False):
    """dx of `softmax`."""
    dy, dx = _by_rows(dy), _new(*y.shape, like=y)
    _on_rows("softmax_rows_backward", y, y.data.ptr, dy.data.ptr, dx.data.ptr, log)
    return dx


def cross_entropy(y, labels, smoothing, ignore, scale):
    """(loss, `scale` times its gradient in y): both come of one pass over the scores y."""
    y = _by_rows(y)
    labels = cupy.ascontiguousarray(labels, np.int64)
    rows, dy, loss = _sums(labels.size, like=y), _new(*y.shape, like=y), _sums(like=y)
    count, mean = 0, _kernel("cross_entropy_mean", loss)
    if ignore is not None:
        counted = cupy.ndarray((), np.int64)
        count = counted.data.ptr
        mean(1, 0, 0, labels.data.ptr, count, 0, ignore, labels.size)
    _on_rows("cross_entropy_rows", y, y.data.ptr, labels.data.ptr, count, rows.data.ptr,
             dy.data.ptr, _bits(smoothing), _bits(scale), count != 0, ignore or 0)
    mean(1, 0, rows.data.ptr, labels.data.ptr, count, loss.data.ptr, 0, labels.size)
    return loss, dy


# -- recurrence


def _together(name, z, width):
    """How many rows of a batch a kernel's blocks can have on the GPU at once, and the kernel."""
    kernel = _kernel(name, z, width)
    if kernel is None:
        return 0, None
    groups = -(-width // kernel.values["UNITS"])
    return multiprocessors(current_device()) // groups * kernel.values["ROWS"], kernel


def lstm(z, U, b, state, clip, backwards):
    """(h, c) of all steps of an LSTM, (time, n, width), in one launch (or several, a part of the
    rows each). z (time, n, 4 width) is x W, the gates when it is done; `state` is (h, c) where it
    starts, or None for 0. None where the kernel has no row for the width, or no room."""
    times, batch, width = *z.shape[:2], z.shape[2] // 4
    if width % 4 or z.dtype.char != "f" or not _together("lstm_unsteps", z, width)[0]:
        return None
    together, kernel = _together("lstm_steps", z, width)
    if not together:
        return None
    groups = -(-width // kernel.values["UNITS"])
    y, cells = (_new(times, batch, width, like=z) for _ in range(2))
    words = cupy.ndarray(y.shape, np.uint32)
    words.fill(2**32 - 1)
    U, b, c = _by_rows(U), _by_rows(b), None
    if state:
        c = _by_rows(state[1])
        z[-1 if backwards else 0] += product(state[0], U)
    for first in range(0, batch, together):
        rows, skip = min(together, batch - first), first * width * z.itemsize
        kernel(groups * -(-rows // kernel.values["ROWS"]), 0, z.data.ptr + 4 * skip, U.data.ptr,
               4 * width, 1, b.data.ptr, 0 if c is None else c.data.ptr + skip,
               cells.data.ptr + skip, y.data.ptr + skip, words.data.ptr + skip,
               _bits(float("inf") if clip is None else clip), backwards, times, batch, rows, width,
               together=True)
    return y, cells


def lstm_backward(dy, gates, cells, c, U, dstate, clip, backwards, truncate):
    """(dz, (dh, dc)) of `lstm`: dz of all steps, dh and dc at its start, of what it left and of dy
    (time, n, width) and the gradient `dstate` in its last state. c: where the cells started; no
    gradient goes from a step to the one before where a piece of `truncate` begins."""
    (times, batch, width), dz = cells.shape, _new(*gates.shape, like=gates)
    together, kernel = _together("lstm_unsteps", gates, width)
    groups = -(-width // kernel.values["UNITS"])
    dy, U, c, dh = _by_rows(dy), _by_rows(U), _by_rows(c), _by_rows(dstate[0])
    dc = cupy.array(dstate[1], order="C")
    dz.view(np.uint32).fill(2**32 - 1)
    for first in range(0, batch, together):
        rows, skip = min(together, batch - first), first * width * dz.itemsize
        kernel(groups * -(-rows // kernel.values["ROWS"]), 0, gates.data.ptr + 4 * skip, U.data.ptr,
               cells.data.ptr + skip, c.data.ptr + skip, dy.data.ptr + skip, dh.data.ptr + skip,
               dc.data.ptr + skip, dz.data.ptr + 4 * skip,
               _bits(float("inf") if clip is None else clip), backwards, truncate or 0, times,
               batch, rows, width, together=True)
    return dz, (product(dz[-1 if backwards else 0], U.T), dc)


# -- elements


def activation(name, x, factor):
    """f(x) of the activation of this name, in x's order of axes."""
    x, back = _in_order(x)
    y = _new(*x.shape, like=x)
    _on_elements("activation", x.size, x, FUNCTIONS.index(name), x.data.ptr, 0, y.data.ptr,
                 _bits(factor))
    return y.transpose(back)


def activation_backward(name, dy, x, y, factor):
    """f'(x) dy."""
    at, back = _in_order(y if name in OF_Y else x)
    dy = _by_rows(dy.transpose(np.argsort(back)))
    dx = _new(*at.shape, like=at)
    _on_elements("activation", at.size, at, FUNCTIONS.index(name), at.data.ptr, dy.data.ptr,
                 dx.data.ptr, _bits(factor))
    return dx.transpose(back)


def _in_order(x):
    """(x with its axes in the order they have in memory, what puts them back)."""
    axes = sorted(range(x.ndim), key=lambda i: -x.strides[i])
    return _by_rows(x.transpose(axes)), [int(i) for i in np.argsort(axes)]


def dropout(x, words, limit, scale):
    """x m, as dropout.py says; the mask follows from the two words."""
    x = _by_rows(x)
    y = _new(*x.shape, like=x)
    _on_elements("dropout", x.size, x, x.data.ptr, y.data.ptr, *map(int, words), limit,
                 _bits(scale))
    return y


def adam(w, rounded, g, m, v, betas, *numbers):
    """A step of Adam in place, and w rounded to the precision of g where `rounded` is not w, with
    the kernel's further numbers. False where these do not lie by rows: then nothing is done."""
    if any(not x.flags.c_contiguous or x.data.ptr % 16 for x in (w, rounded, m, v)):
        return False
    g = _by_rows(g)
    numbers = betas[0], 1 - betas[0], betas[1], 1 - betas[1], *numbers
    _on_elements("adam_step", w.size, g, w.data.ptr, 0 if rounded is w else rounded.data.ptr,
                 g.data.ptr, m.data.ptr, v.data.ptr, *map(_bits, numbers))
    return True
