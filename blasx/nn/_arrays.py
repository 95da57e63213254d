"""What layers share: an array's own module, products by rows, random weights, half precision.

Of layers in half precision or bfloat16 parameters, data and gradients have two bytes a number;
products are summed in single precision, and what is made number by number is made in single
precision, `wide`, and rounded once, `like` its operand.
"""

import sys
from math import inf, prod
from numbers import Integral, Real

import numpy as np
from numpy import ndarray

from .. import (
    bgemm,
    bgemm_batched,
    dgemm,
    dgemm_batched,
    hgemm,
    hgemm_batched,
    sgemm,
    sgemm_batched,
)
from .._trace import _open as traced
from .._types import TYPES
from ..blas3 import multiplied

# {dtype: its Type} of what layers can be made of
REALS = {t.dtype: t for t in TYPES.values() if t.letter in "sdhb" and t.is_known}
_GEMM = {TYPES[x].dtype: gemm for x, gemm in zip("sdhb", (sgemm, dgemm, hgemm, bgemm))}
_GEMM_BATCHED = {TYPES[x].dtype: gemm for x, gemm in zip(
    "sdhb", (sgemm_batched, dgemm_batched, hgemm_batched, bgemm_batched))}

# Of the types that NumPy's BLAS multiplies, the ones that sums of columns are products with
_ONES = {TYPES[x].dtype: np.ones(4096, TYPES[x].dtype) for x in "sd"}

_modules = {ndarray: np}  # by kind of array


def module(a):
    """The module of an array: numpy or cupy."""
    kind = type(a)
    if kind not in _modules:
        _modules[kind] = sys.modules[kind.__module__.partition(".")[0]]
    return _modules[kind]


def wide(x):
    """An array of half precision in single; others as they are."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def like(y, x):
    """y rounded to the precision of x; y itself if it has that."""
    return y.astype(x.dtype, copy=False)


def fused(x):
    """The module of fused kernels (_gpu.py) for an array of CuPy's; None for others."""
    if type(x) is ndarray or module(x).__name__ != "cupy" or not x.size:
        return None
    return _gpu or _first_fused()


_gpu = None


def _first_fused():
    global _gpu
    from . import _gpu
    return _gpu


def placed(x, w):
    """x where w is, in its precision; x itself if it is."""
    if module(x) is not module(w):
        x = module(w).asarray(x.get() if hasattr(x, "get") else x)
    return like(x, w)


def square_sum(x):
    """The sum of the squares of all numbers, in double precision: those of single ones are in its
    range."""
    return module(x).square(wide(x), dtype="f8").sum()


def added(x, y):
    """x + y of equal shapes; CuPy's own sum of half precision is a third as fast."""
    gpu = fused(x) if x.dtype.itemsize == 2 else None
    return gpu.add(x, y) if gpu else x + y


def column_sums(a):
    """The sums of the columns of a matrix; of NumPy's 1^T A, by BLAS."""
    ones = _ONES.get(a.dtype) if type(a) is ndarray else None
    if ones is not None:
        m = len(a)
        return (ones[:m] if m <= len(ones) else np.ones(m, a.dtype)).dot(a)
    gpu = fused(a)
    return gpu.column_sums(a) if gpu else like(wide(a).sum(0), a)


def channel_sums(a):
    """The sums of (n, channels, ...) over all that is not channels."""
    n, m, *others = a.shape
    if type(a) is not ndarray or a.dtype not in _ONES:
        return like(wide(a).sum((0, *range(2, a.ndim))), a)
    last = a.transpose(0, *range(2, a.ndim), 1)
    if last.flags.c_contiguous:
        return column_sums(last.reshape(-1, m))
    return column_sums(column_sums(a.reshape(n * m, prod(others)).T).reshape(n, m))


def product(a, b, bias=None):
    """A B, and `bias` to every row; of NumPy arrays by columns where its BLAS is faster so: where
    there are more columns than rows and, in single precision, B lies by columns, too.

    Layers have looked at their operands, and those of small layers take as long to look at as to
    multiply: on the CPU gemm's own product is made without asking again, but where trace() records
    gemm's calls. gemm answers by columns; its answer to B^T A^T is A B by rows, without a copy. On
    the GPU the order makes no difference, and what follows lies by rows.
    """
    across = len(a) < b.shape[1] and (a.itemsize != 4 or not b.flags.c_contiguous)
    if type(a) is ndarray and a.dtype in _ONES and not traced:
        c = multiplied(b.T, a.T).T if across else multiplied(a, b)
        if bias is not None:
            c += bias
        return c
    gemm, gpu = _GEMM[a.dtype], fused(a)
    if gpu and bias is not None:  # one kernel of large ones and of half precision
        return gemm(1.0, b.T, a.T, bias=bias.reshape(-1, 1)).T
    c = gemm(1.0, a, b) if across and not gpu else gemm(1.0, b.T, a.T).T
    if bias is not None:
        c += bias
    return c


def product_into(a, b, c):
    """C := A B, C by rows."""
    _GEMM[a.dtype](1.0, b.T, a.T, 0.0, c.T, overwrite_c=1)


def add_product(a, b, c):
    """C := A B + C in place; on the GPU by gemm itself where C lies by columns."""
    if type(c) is not ndarray and c.flags.f_contiguous and c.dtype == a.dtype:
        _GEMM[a.dtype](1.0, a, b, 1.0, c, overwrite_c=1)
    else:
        c += product(a, b)


def products(a, b):
    """A B for stacks of equal leading dimensions, or one matrix for all of the other's members."""
    lead = max(a.shape[:-2], b.shape[:-2], key=len)
    a, b = (x if x.ndim == 2 else x.reshape(prod(lead), *x.shape[-2:]) for x in (a, b))
    c = _GEMM_BATCHED[a.dtype](1.0, a, b)
    return c.reshape(*lead, *c.shape[-2:])


def number(owner, name, x, least=-inf, below=inf):
    """x, refused unless it is a number from `least` to below `below`."""
    if not isinstance(x, Real) or not least <= x < below or x == -inf:
        raise ValueError(f"{owner}: {name} must be in [{least}, {below}), got {x!r}")
    return x


def whole(owner, name, n, least=1):
    """n as an int, refused unless it is a whole number of at least `least`."""
    if not isinstance(n, Integral) or isinstance(n, bool):
        raise TypeError(f"{owner}: {name} must be an integer, got {n!r}")
    if n < least:
        raise ValueError(f"{owner}: {name} must be at least {least}, got {n}")
    return int(n)


def transposed(a):
    """The transposes of a stack."""
    return a.swapaxes(-1, -2)


def glorot(rng, shape, fan_in, fan_out, dtype):
    """Uniform weights of variance 2 / (fan_in + fan_out): what goes through a layer keeps its
    size, forth and back.

    Glorot, Bengio: Understanding the difficulty of training deep feedforward networks, 2010.
    """
    return uniform(rng, shape, (6 / (fan_in + fan_out)) ** 0.5, dtype)


def uniform(rng, shape, bound, dtype):
    """Uniform weights in [-bound, bound]."""
    return np.random.default_rng(rng).uniform(-bound, bound, shape).astype(dtype)
