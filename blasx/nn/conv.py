"""Convolution by matrix products.

    y[n, m, i] = b[m] + sum over c, j of w[m, c, j] x[n, c, i s + j d - p]

(i and j are pairs in two dimensions; as in the field, no kernel is turned round.) With one column
for every window, X[(c, j), (n, i)] = x[n, c, i s + j d - p], that is

    Y = W X,      dW = dY X^T.

dx is a convolution of dy: element u = v s + r of the padded image is element j of window i where
u = i s + j d, so only those j meet it that leave j d = r (mod s), and

    dx[n, c, v s + r] = sum over m, j of w[m, c, j] dy[n, m, v - (j d - r) / s],

for each r a convolution of stride 1 by a part of the kernel, turned round.

On CuPy's arrays of single and double precision X is never made: a kernel finds its elements in the
image (kernels/convolution.cuh), and padding is where there is none. Numbers of single precision
that are multiplied often enough become pairs of half precision, all of an array scaled together: a
number counts to 2^-22 of itself or 2^-39 of the largest, sums are of single precision, and what is
not finite is nan in what it goes into. Of stride 1 these are, on Hopper, boxes of images with
channels last (kernels/convolution_boxes.cuh).

Elsewhere X has each element as often as a kernel has elements, so it is never whole in memory:
windows go through in chunks whose columns stay in the cache, images of a batch at a time or rows of
one image. Only if one chunk holds all is it kept for the backward pass; else its columns are
gathered again.

X is gathered in the order that moves the longer runs, channels last or images' rows, whatever the
layout: `last` says which, and the padded copy of the image is made to suit.

Groups are products beside each other: group g has its channels' rows of W and X. In the depthwise
case a group is one channel.
"""

import json
from functools import cache
from math import prod

import numpy as np

from .._sources import FOLDER
from ._arrays import (
    channel_sums,
    fused,
    glorot,
    like,
    module,
    product,
    product_into,
    products,
    transposed,
    wide,
)
from .layer import Layer, Parameter
from .windows import Windows


@cache
def _limit():
    """The most elements that a chunk of X has, unless one row of windows has more."""
    return json.loads((FOLDER / "tuned" / "nn.json").read_text())["convolution"]["COLUMNS"]


class Convolution(Layer):
    """What Conv1d and Conv2d share: all, but for the number of axes."""

    SKIPS_DX = True

    def __init__(self, channels, filters, kernel, stride, padding, dilation, groups, bias, layout,
                 dtype, rng):
        name = type(self).__name__
        self.sized(channels=channels, filters=filters, groups=groups)
        if channels % groups or filters % groups:
            raise ValueError(f"{name}: groups must divide channels and filters, got {groups} for "
                             f"{channels} and {filters}")
        self.windows = Windows(name, kernel, stride, padding, dilation, self.DIMS, layout)
        size = prod(self.windows.kernel)
        shape = filters, channels // groups, *self.windows.kernel
        self.weight = Parameter(glorot(rng, shape, channels // groups * size,
                                       filters // groups * size, dtype))
        self.bias = Parameter(np.zeros(filters, dtype)) if bias else None

    def forward(self, x):
        extents = (None,) * self.DIMS
        self.given(x, *((None, *extents, self.channels) if self.windows.last else
                        (None, self.channels, *extents)), like=self.weight)
        x = self.windows.first(x)
        padding, counts = self.windows.fit(self, x.shape[2:])
        y = self.windows.empty(x, len(x), self.filters, counts)
        if (gpu := fused(x)) and gpu.convolves(x, y):
            w, shape = self._plane(self._grouped(), 3), x.shape
            w, x = gpu.in_pairs(w, self._plane(x), self.windows.stride)
            gpu.convolve(w, x, self._plane(y), self.bias and self.bias.value,
                         *self._steps(padding))
            return self.keep(self.windows.back(y), x, w, shape, padding)
        last = self._last(self.channels, self.windows.stride[-1], counts[-1])
        x, inside = self.windows.padded(x, padding, last=last)
        W = self._matrix(self._grouped(), last)
        columns = self._convolve(W, self.windows.all(x, counts), y, last)
        if self.bias:
            y += self.bias.value.reshape(-1, *(1,) * self.DIMS)
        return self.keep(self.windows.back(y), x, inside, counts, columns, last)

    def backward(self, dy, dx=True):
        """db = sum of dy, dW = dY X^T, dx as above."""
        x, *kept = self.kept(dy)
        dy = self.windows.first(dy)
        if len(kept) == 3:
            return self._fused_backward(fused(dy), dy, x, *kept, dx)
        inside, counts, columns, last = kept
        views = self.windows.all(x, counts)
        if self.bias:
            self.bias.add(channel_sums(dy))
        dW = module(dy).zeros_like(wide(self._matrix(self._grouped(), last)))
        for chunk in self._chunks(views, last):
            X = self._columns(views[chunk], last) if columns is None else columns
            dW += self._multiply(self._gather(dy[chunk]), transposed(X), last)
        self.weight.add(like(self._weights(dW, last), dy))
        if not dx:
            return None
        below = self.windows.empty(x, *x.shape[:2], x.shape[2:])
        below[...] = 0
        w, last = self._grouped().swapaxes(1, 2), self._last(self.filters, 1, counts[-1])
        for part, view, place in self.windows.turned(dy, x.shape[2:], last):
            turned = w[(..., *part)][(..., *(slice(None, None, -1),) * self.DIMS)]
            self._convolve(self._matrix(turned, last), view, below[place], last)
        return self.windows.back(below[inside])

    def _fused_backward(self, gpu, dy, x, w, shape, padding, dx):
        """The same by the kernels that never have X."""
        gradient, of = dy, self._plane(self._grouped(), 3).shape
        dy = gpu.as_operand(self._plane(dy), x, bool(self.bias))
        dw, db = gpu.convolve_weights(dy, x, of, *self._steps(padding), bool(self.bias))
        self.weight.add(dw.reshape(self.weight.value.shape))
        if self.bias:
            self.bias.add(db)
        if not dx:
            return None
        below = self.windows.empty(gradient, *shape[:2], shape[2:])
        phases = [*self.windows.phases(shape[2:], [p for p, _ in padding])]
        if sum(prod(number) for *_, number in phases) < prod(shape[2:]):
            below[...] = 0  # some elements meet no window
        more = 2 - self.DIMS
        for part, _, firsts, steps, place, _ in phases:
            gpu.convolve(gpu.turned(w, part), dy,
                         self._plane(below[(slice(None), slice(None), *place)]), None,
                         (1, 1), (1,) * more + steps, (0,) * more + firsts)
        return self.windows.back(below)

    def _plane(self, x, axis=2):
        """x with two axes for images, windows or elements of them, which begin at `axis`."""
        return x[(slice(None),) * axis + (None,)] if self.DIMS == 1 else x

    def _steps(self, padding):
        """Stride, dilation, and where the first window begins, of images with two axes."""
        more = 2 - self.DIMS
        return ((1,) * more + self.windows.stride, (1,) * more + self.windows.dilation,
                (0,) * more + tuple(-p for p, _ in padding))

    def _last(self, channels, stride, width):
        """Whether runs are longer with channels last: a kernel's row of channels, beside an image's
        row of windows. Of a kernel of one element the whole image is a run."""
        if prod(self.windows.kernel) == 1:
            return self.windows.last
        run = channels // self.groups * self.windows.kernel[-1]
        return stride > 1 or run >= width

    def _convolve(self, W, view, y, last):
        """y (n, filters, windows...) = W X of a view of windows, by chunks. Returns X if one chunk
        is all, else None."""
        chunks = self._chunks(view, last)
        for chunk in chunks:
            X = self._columns(view[chunk], last)
            if (Y := self._rows_of(y[chunk], last)) is None:
                like_y = last or self.windows.last and type(y) is np.ndarray  # Y is in y's order
                self._scatter(y[chunk], self._multiply(W, X, like_y))
            elif last:
                product_into(transposed(X), transposed(W), Y)
            else:
                product_into(W, X, Y)
        return X if len(chunks) == 1 else None

    def _rows_of(self, y, last):
        """A view of y (n, filters, windows...) as what W X, or if `last` its transpose, is by rows;
        None where it is none: of several images with channels first, of groups, on a GPU."""
        n, m = y.shape[:2]
        if type(y) is not np.ndarray or self.groups > 1 or not y.size or not last and n > 1:
            return None
        y = y.transpose(0, *range(2, y.ndim), 1) if last else y[0]
        windows = slice(0, -1) if last else slice(1, None)
        extents, steps = y.shape[windows], y.strides[windows]
        whole = all(s == t * e for s, t, e in zip(steps, steps[1:], extents[1:]))
        if not whole or y.strides[-1] != y.itemsize:
            return None
        return y.reshape((-1, m) if last else (m, -1))

    # -- matrices: (rows, columns), by group where there are groups

    def _multiply(self, a, b, last):
        """A B, asked for as its transpose if `last`: where X, or what becomes of A B, lies by
        columns."""
        multiply = product if self.groups == 1 else products
        if last:
            return transposed(multiply(transposed(b), transposed(a)))
        return multiply(a, b)

    def _chunks(self, view, last):
        """Slices of a view (images, channels, windows..., kernel...), images and rows of windows,
        of at most `_limit()` elements. An image of channels first is its own X where kernels have
        one element, and goes alone."""
        n, channels, rows, *others = view.shape
        row = max(channels * prod(others), 1)
        alone = not last and prod(self.windows.kernel) == prod(self.windows.stride) == 1
        images = 1 if alone else max(_limit() // (row * max(rows, 1)), 1)
        height = max(_limit() // row, 1) if images == 1 else max(rows, 1)
        return [(slice(i, i + images), slice(None), slice(j, j + height))
                for i in range(0, n, images) for j in range(0, rows, height)]

    def _order(self, last):
        """The axes (group, channel, kernel...) of X's rows."""
        kernel = tuple(range(2, 2 + self.DIMS))
        return (0, *kernel, 1) if last else (0, 1, *kernel)

    def _grouped(self):
        """The weights as (g, filters / g, channels / g, kernel...)."""
        g = self.groups
        return self.weight.value.reshape(g, self.filters // g, self.channels // g,
                                         *self.windows.kernel)

    def _matrix(self, w, last):
        """Grouped weights as matrices (g, rows, channels * kernel) in the order of X's rows."""
        w = w.transpose(0, 1, *(a + 1 for a in self._order(last)[1:]))
        w = w.reshape(*w.shape[:2], -1)
        return w[0] if self.groups == 1 else w

    def _weights(self, dW, last):
        """dW in the shape of the weights: `_matrix` undone."""
        g, order = self.groups, self._order(last)
        shape = g, self.channels // g, *self.windows.kernel
        dw = dW.reshape(g, self.filters // g, *(shape[a] for a in order[1:]))
        back = sorted(range(1, len(order)), key=lambda i: order[i])
        return dw.transpose(0, 1, *(b + 1 for b in back)).reshape(self.weight.value.shape)

    def _columns(self, view, last):
        """X of a view (n, c, windows..., kernel...): a column to a window; in memory by columns
        if `last`."""
        n, c, g, d = *view.shape[:2], self.groups, self.DIMS
        counts, kernel = view.shape[2:2 + d], view.shape[2 + d:]
        size = c // g * prod(kernel), n * prod(counts)
        view = view.reshape(n, g, c // g, *counts, *kernel) if g > 1 else view[:, None]
        windows, elements = (0, *range(3, 3 + d)), tuple(range(3 + d, 3 + 2 * d))
        if last:
            X = transposed(view.transpose(1, *windows, *elements, 2).reshape(g, *size[::-1]))
        else:
            X = view.transpose(1, 2, *elements, *windows).reshape(g, *size)
        return X[0] if g == 1 else X

    def _scatter(self, y, Y):
        """Y (g, filters / g, windows) into y (n, filters, windows...)."""
        n, m, *counts = y.shape
        Y = Y.reshape(m, -1) if self.groups > 1 else Y
        y[...] = Y.reshape(m, n, *counts).swapaxes(0, 1)

    def _gather(self, dy):
        """dY (g, filters / g, windows) of dy (n, filters, windows...)."""
        n, m = dy.shape[:2]
        if self.windows.last:
            dY = dy.transpose(0, *range(2, dy.ndim), 1).reshape(-1, m).T
        else:
            dY = dy.swapaxes(0, 1).reshape(m, -1)
        return dY if self.groups == 1 else dY.reshape(self.groups, m // self.groups, -1)

    def described(self):
        return self.channels, self.filters, self.windows.kernel


class Conv1d(Convolution):
    """Convolution along one axis; `x` (n, channels, length), or (n, length, channels) in NHWC.

    Arguments are `Conv2d`'s.
    """

    DIMS = 1

    def __init__(self, channels, filters, kernel, stride=1, padding=0, dilation=1, groups=1,
                 bias=True, layout="NCHW", dtype="f4", rng=None):
        super().__init__(channels, filters, kernel, stride, padding, dilation, groups, bias,
                         layout, dtype, rng)


class Conv2d(Convolution):
    """Convolution of images; `x` (n, channels, height, width), or (n, height, width, channels).

    Parameters
    ----------
    channels, filters : int
        Of what goes in and comes out. The weights are (filters, channels / groups, *kernel).
    kernel, stride, dilation : int or tuple
    padding : int, tuple or "same"
        Zeros before and behind; "same" leaves n / stride windows, rounded up.
    groups : int
        Filters see the channels of their group only; `channels` groups: depthwise.
    layout : "NCHW" or "NHWC"
        Of x and y; any strides.
    dtype, rng
        As Dense.
    """

    DIMS = 2

    def __init__(self, channels, filters, kernel, stride=1, padding=0, dilation=1, groups=1,
                 bias=True, layout="NCHW", dtype="f4", rng=None):
        super().__init__(channels, filters, kernel, stride, padding, dilation, groups, bias,
                         layout, dtype, rng)
