"""Windows of images, which convolution and pooling share: strides, padding, dilation, layouts.

Along each axis of n elements, with kernel k, stride s, dilation d and padding (p, q),

    m = (p + n + q - ((k - 1) d + 1)) // s + 1

windows fit, and element j of window i is element i s + j d - p of the image. "same" pads so that
m is n / s rounded up, one more behind than before where it is odd.

Layers work on views with channels second, (n, c, height, width); NHWC images are transposed on
their way in and out, which moves nothing.
"""

from itertools import product
from math import gcd
from numbers import Integral

from ._arrays import module, whole

LAYOUTS = {"NCHW": False, "NHWC": True}


class Windows:
    """The windows of one layer's images along 1 or 2 axes."""

    def __init__(self, layer, kernel, stride, padding, dilation, dims, layout):
        if layout not in tuple(LAYOUTS):
            raise ValueError(f"{layer}: layout must be NCHW or NHWC, got {layout!r}")
        dims = whole(layer, "dims", dims)
        self.dims, self.last, self.padding = dims, LAYOUTS[layout], padding
        self.kernel = sizes(layer, "kernel", kernel, dims)
        self.stride = sizes(layer, "stride", stride, dims)
        self.dilation = sizes(layer, "dilation", dilation, dims)
        if padding != "same":
            self.padding = sizes(layer, "padding", padding, dims, least=0)

    def first(self, x):
        """The view of x with channels second."""
        return x.transpose(0, self.dims + 1, *range(1, self.dims + 1)) if self.last else x

    def back(self, y):
        """The view of y in the layer's layout."""
        return y.transpose(0, *range(2, self.dims + 2), 1) if self.last else y

    def empty(self, like, n, channels, extents, last=None):
        """A new array in the layer's layout, or with channels last or not, seen with channels
        second."""
        last = self.last if last is None else last
        shape = (n, *extents, channels) if last else (n, channels, *extents)
        new = module(like).empty(shape, like.dtype)
        return new.transpose(0, -1, *range(1, self.dims + 1)) if last else new

    def fit(self, layer, extents):
        """Padding before and behind, and how many windows there are, axis by axis."""
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        if self.padding == "same":
            counts = [-(-n // s) for n, s in zip(extents, self.stride)]
            total = [max((m - 1) * s + r - n, 0)
                     for m, s, r, n in zip(counts, self.stride, reach, extents)]
            return [(t // 2, t - t // 2) for t in total], counts
        counts = [(n + 2 * p - r) // s + 1
                  for n, p, r, s in zip(extents, self.padding, reach, self.stride)]
        if min(counts) < 1:
            raise ValueError(f"{layer!r}: x must be of at least {tuple(reach)} with padding "
                             f"{self.padding}, got {tuple(extents)}")
        return [(p, p) for p in self.padding], counts

    def padded(self, x, padding, value=0, last=None):
        """x (channels second) with `padding` full of `value` around it, and what of that is x; in
        memory with channels last or not, if that is asked."""
        inside = (slice(None), slice(None), *(slice(p, p + n)
                                              for (p, _), n in zip(padding, x.shape[2:])))
        if not any(map(any, padding)) and (last is None or x.strides[1 if last else -1] ==
                                           x.itemsize):
            return x, inside
        extents = [p + n + q for (p, q), n in zip(padding, x.shape[2:])]
        y = self.empty(x, *x.shape[:2], extents, last)
        if any(map(any, padding)):
            y[...] = value
        y[inside] = x
        return y, inside

    def all(self, x, counts):
        """The view (n, c, windows..., kernel...) of a padded x; no copy."""
        steps = x.strides[2:]
        return module(x).lib.stride_tricks.as_strided(
            x, (*x.shape[:2], *counts, *self.kernel),
            (*x.strides[:2], *(s * t for s, t in zip(self.stride, steps)),
             *(d * t for d, t in zip(self.dilation, steps))))

    def turned(self, dy, extents, last):
        """(part, view, place) for every remainder r of u = v s + r (see `conv`): the elements j of
        the kernel that meet such u; the windows of dy that they meet it from, the last j first;
        where these u are in an image padded to `extents`."""
        counts = dy.shape[2:]
        before = [(k - 1) * d // s for k, s, d in zip(self.kernel, self.stride, self.dilation)]
        behind = [max(-(-n // s) - m, 0) for n, m, s in zip(extents, counts, self.stride)]
        dy, _ = self.padded(dy, list(zip(before, behind)), last=last)
        for part, kernel, firsts, steps, place, number in self.phases(extents, (0,) * self.dims):
            starts = (b + first for b, first in zip(before, firsts))
            begin = dy[(slice(None), slice(None), *(slice(a, None) for a in starts))]
            view = module(dy).lib.stride_tricks.as_strided(
                begin, (*dy.shape[:2], *number, *kernel),
                (*dy.strides, *(t * a for t, a in zip(dy.strides[2:], steps))))
            yield part, view, (slice(None), slice(None), *place)

    def phases(self, extents, before):
        """For every remainder, of images of these extents with so much padding before them, axis by
        axis: (the elements j that meet it, how many, the window of dy at which the last j meets the
        first u, windows from one j to the one before, where these u are, how many)."""
        axes = []
        for n, p, k, s, d in zip(extents, before, self.kernel, self.stride, self.dilation):
            axes.append([])
            for r in range(s):
                meet = [j for j in range(k) if j * d % s == r]  # every (s / gcd(d, s))-th
                v = -(-(p - r) // s)  # the first in the image
                first = v * s + r - p
                if meet and first < n:
                    axes[-1].append((slice(meet[0], None, s // gcd(d, s)), len(meet),
                                     v - (meet[-1] * d - r) // s, d // gcd(d, s),
                                     slice(first, None, s), len(range(first, n, s))))
        for phase in product(*axes):
            yield tuple(zip(*phase))

    def each(self, counts):
        """Slices of a padded image: what its windows have at one place of the kernel, for each."""
        for place in product(*map(range, self.kernel)):
            yield slice(None), slice(None), *(
                slice(j * d, j * d + (m - 1) * s + 1, s)
                for j, d, m, s in zip(place, self.dilation, counts, self.stride))


def sizes(layer, name, x, dims, least=1):
    """A number for each axis: one for all, or a tuple."""
    several = x if isinstance(x, tuple) else (x,) * dims
    if len(several) != dims or not all(isinstance(n, Integral) and not isinstance(n, bool)
                                       and n >= least for n in several):
        raise ValueError(f"{layer}: {name} must be {dims} integers of at least {least}, got {x!r}")
    return tuple(map(int, several))
