"""Pooling: the largest or the mean element of each window, which may overlap."""

from math import inf, prod

from ._arrays import like, module, wide
from .layer import Layer
from .windows import LAYOUTS, Windows


class Pool(Layer):
    """What the pools share; `stride` is the kernel unless given. Padding never wins a maximum
    and never counts in a mean."""

    def __init__(self, kernel, stride=None, padding=0, layout="NCHW", dims=2):
        stride = kernel if stride is None else stride
        self.windows = w = Windows(type(self).__name__, kernel, stride, padding, 1, dims, layout)
        if padding != "same" and any(p >= k for p, k in zip(w.padding, w.kernel)):
            raise ValueError(f"{self!r}: padding must be less than the kernel, got {padding}")

    def opened(self, x, fill):
        """x padded, channels second; what of that is x; the numbers of windows."""
        self.given(x, *(None,) * (self.windows.dims + 2))
        x = self.windows.first(x)
        padding, counts = self.windows.fit(self, x.shape[2:])
        return *self.windows.padded(x, padding, fill), counts

    def described(self):
        return self.windows.kernel, self.windows.stride


class MaxPool(Pool):
    """y = the largest element of each window, nan if one is; dy goes to the first that is as large
    (inf or nan, where y is nan)."""

    def forward(self, x):
        x, inside, counts = self.opened(x, -float("inf"))
        first, *others = self.windows.each(counts)
        y = x[first].copy(order="K")
        for slices in others:
            module(y).maximum(y, x[slices], out=y)
        return self.keep(self.windows.back(y), x, y, inside, counts)

    def backward(self, dy):
        x, y, inside, counts = self.kept(dy)
        dy = self.windows.first(dy)
        dx = self.windows.empty(x, *x.shape[:2], x.shape[2:])
        dx[...] = 0
        dy, there = wide(dy), None
        if dx.shape != dx[inside].shape:
            there = module(x).zeros_like(x[:1, :1], dtype=bool)  # and not padding
            there[inside] = True
        top = module(y).fmin(wide(y), inf)  # below it is what is neither largest nor nan
        left = module(y).ones_like(y, dtype=bool)  # windows whose dy has not found its element yet
        bits = dy.view(f"i{dy.itemsize}")  # times 0 they are 0, those of inf, too
        for slices in self.windows.each(counts):
            here = left & ~(x[slices] < top)
            if there is not None:
                here &= there[slices]
            left ^= here
            dx[slices] += (bits & -here.astype(bits.dtype)).view(dy.dtype)
        return self.windows.back(dx[inside])


class AveragePool(Pool):
    """y = the mean of each window; dy goes to all its elements in equal parts."""

    def forward(self, x):
        given, (x, inside, counts) = x, self.opened(x, 0)
        x = wide(x)
        y = self.windows.empty(x, *x.shape[:2], counts)
        y[...] = 0
        for slices in self.windows.each(counts):
            y += x[slices]
        share = self._share(x, inside, counts)
        y *= share
        return self.keep(like(self.windows.back(y), given), x, inside, counts, share)

    def backward(self, dy):
        x, inside, counts, share = self.kept(dy)
        shared = self.windows.first(dy) * share
        dx = self.windows.empty(x, *x.shape[:2], x.shape[2:])
        dx[...] = 0
        for slices in self.windows.each(counts):
            dx[slices] += shared
        return like(self.windows.back(dx[inside]), dy)

    def _share(self, x, inside, counts):
        """1 / the number of elements of x, padding left out, in each window."""
        ones = module(x).zeros_like(x[:1, :1])
        ones[inside] = 1
        return 1 / sum(ones[slices] for slices in self.windows.each(counts))


class GlobalPool(Layer):
    """What the global pools share: (n, c) of (n, c, ...), or of (n, ..., c) in NHWC."""

    def __init__(self, layout="NCHW"):
        if layout not in tuple(LAYOUTS):
            raise ValueError(f"{self!r}: layout must be NCHW or NHWC, got {layout!r}")
        self.last = LAYOUTS[layout]

    def axes(self, x):
        if self.given(x, ...).ndim < 3:
            raise ValueError(f"{self!r}: x must be of shape (any, any, any, ...), got {x.shape}")
        axes = tuple(range(1, x.ndim - 1) if self.last else range(2, x.ndim))
        if 0 in [x.shape[a] for a in axes]:
            raise ValueError(f"{self!r}: x must have an element of each channel, got {x.shape}")
        return axes


class GlobalMaxPool(GlobalPool):
    """y = the largest element of a channel, nan if one is; elements that are equally large, or
    nan, share dy."""

    def forward(self, x):
        axes = self.axes(x)
        y = x.max(axes, keepdims=True)
        return self.keep(y.squeeze(axes), (x == y) | (x != x), axes)

    def backward(self, dy):
        largest, axes = self.kept(dy)
        dy = module(dy).expand_dims(dy, axes)
        count = largest.sum(axes, dtype="f4", keepdims=True)
        return like(module(dy).where(largest, dy / like(count, wide(dy)), 0), dy)


class GlobalAveragePool(GlobalPool):
    """y = the mean of a channel; all its elements have equal parts of dy."""

    def forward(self, x):
        axes = self.axes(x)
        return self.keep(like(wide(x).mean(axes), x), x.shape, axes)

    def backward(self, dy):
        shape, axes = self.kept(dy)
        dx = module(dy).empty(shape, dy.dtype)
        dx[...] = module(dy).expand_dims(dy * (1 / prod(shape[a] for a in axes)), axes)
        return dx
