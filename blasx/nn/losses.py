"""Losses: one number from what a model answers and what it should.

    L = loss.forward(y, target)        dy = loss.backward()        dy = dL/dy

All are means over the batch, so that the rate of learning does not depend on its size; of y in
half precision, too, in single.
"""

from numbers import Integral

from numpy import ndarray

from ._arrays import fused, module, wide
from .activations import log_softmax, sigmoid, softplus
from .layer import Layer


class Loss(Layer):
    """A loss; `accuracy(y, target)` says, of one that classifies, how many are right. Gradients
    are `scale` times what they are, so that small ones do not vanish in half precision
    (LossScale)."""

    accuracy, scale = None, 1.0

    def counted(self, target):
        """How many of the targets the mean is over; an array where it is up to them."""
        return target.size

    def pair(self, y, target):
        """Refuse what is nothing, and targets unlike y."""
        if not self.given(y, ..., argument="y").size:
            raise ValueError(f"{self!r}: y must have elements to take a mean of, got {y.shape}")
        self.given(target, *y.shape, argument="target", like=y)

    def look(self, y, targets):
        """Refuse targets, of all there are, that no answer like y can be judged by."""

    def backward(self):
        """scale dL/dy of the last `forward`, rounded once to the precision of y."""
        if self._kept is None:
            raise ValueError(f"{self!r}: backward before forward")
        dtype, *values = self._kept[1]
        return self.gradient(*values).astype(dtype, copy=False)


class MeanSquare(Loss):
    """L = mean (y - t)^2, dy = 2 (y - t) / n."""

    def forward(self, y, target):
        self.pair(y, target)
        difference = wide(y) - wide(target)
        return self.keep((difference * difference).mean(), y.dtype, difference)

    def gradient(self, difference):
        return difference * (2 * self.scale / difference.size)


class CrossEntropy(Loss):
    """L = -mean_i sum_k q_ik log p_ik with p = softmax(y); dy = (p - q) / n.

    Parameters
    ----------
    smoothing : float
        q is 1 - smoothing at the label and smoothing / K more at each of the K classes.
    ignore : int, optional
        Targets of this label (padding) do not count.

    Notes
    -----
    y is (..., K), the scores before softmax; the target (...) holds labels.
    """

    def __init__(self, smoothing=0.0, ignore=None):
        self.share(smoothing=smoothing)
        if ignore is not None and (not isinstance(ignore, Integral) or isinstance(ignore, bool)):
            raise TypeError(f"CrossEntropy: ignore must be an integer, got {ignore!r}")
        self.ignore = ignore

    def forward(self, y, target):
        self.given(y, ..., None, argument="y")
        self.indices(target, argument="target")
        xp, k = module(y), y.shape[-1]
        if target.shape != y.shape[:-1]:
            raise ValueError(f"{self!r}: target must be of shape {y.shape[:-1]}, for y is "
                             f"{y.shape}, got {target.shape}")
        if module(target) is not xp:
            raise TypeError(f"{self!r}: target must be an array of {xp.__name__}, as y is, got one "
                            f"of {module(target).__name__}")
        if gpu := fused(y):
            loss, dy = gpu.cross_entropy(y, target, self.smoothing, self.ignore, self.scale)
            return self.keep(loss, y.dtype, dy)
        dtype, shape, labels, y = y.dtype, y.shape, target.reshape(-1), wide(y).reshape(-1, k)
        counts, n = self._counts(labels), max(int(self.counted(labels)), 1)
        if self.ignore is not None:  # whatever else stands there
            labels, y = xp.where(counts, labels, 0), xp.where(counts[:, None], y, 0)
        self.indices(labels, k, argument="target")
        log_p, at = log_softmax(y), (xp.arange(len(y)), labels)
        likelihood = (1 - self.smoothing) * log_p[at]
        if self.smoothing:  # else log 0 may stand at another class
            likelihood += self.smoothing / k * log_p.sum(1)
        return self.keep(-(likelihood * counts).sum() / n, dtype, log_p, at, counts, n, shape)

    def look(self, y, targets):
        if type(targets) is ndarray:  # others are not waited for
            self.indices(targets[self._counts(targets)], y.shape[-1], "target")

    def gradient(self, *kept):
        if len(kept) == 1:  # the kernel made it with the loss
            return kept[0]
        log_p, at, counts, n, shape = kept
        dy = module(log_p).exp(log_p)
        if self.smoothing:
            dy -= self.smoothing / shape[-1]
        dy[at] -= 1 - self.smoothing
        dy *= counts[:, None]
        dy /= n / self.scale
        return dy.reshape(shape)

    def accuracy(self, y, target):
        """The share of targets that have the greatest y."""
        counts = self._counts(target)
        return float(((y.argmax(-1) == target) & counts).sum()) / max(int(counts.sum()), 1)

    def counted(self, target):
        return target.size if self.ignore is None else self._counts(target).sum()

    def _counts(self, target):
        """Which targets count."""
        if self.ignore is None:
            return module(target).ones(target.shape, bool)
        return target != self.ignore

    def described(self):
        return (self.smoothing,) if self.smoothing else ()


class BinaryCrossEntropy(Loss):
    """L = -mean (t log p + (1 - t) log(1 - p)) with p = sigmoid(y), which is
    mean (log(1 + e^y) - t y); dy = (p - t) / n. Targets from 0 to 1."""

    def forward(self, y, target):
        self.pair(y, target)
        self.look(y, target)
        dtype, y, target = y.dtype, wide(y), wide(target)
        return self.keep((softplus(y) - target * y).mean(), dtype, y, target)

    def look(self, y, targets):
        if type(targets) is ndarray and not (0 <= targets.min() <= targets.max() <= 1):
            raise ValueError(f"{self!r}: target must be from 0 to 1, got {targets.min()} to "
                             f"{targets.max()}")

    def gradient(self, y, target):
        return (sigmoid(y) - target) / (y.size / self.scale)

    def accuracy(self, y, target):
        """The share of answers on the right side of 1/2."""
        return float(((y > 0) == (target > 0.5)).mean())
