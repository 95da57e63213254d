"""BLAS level 3: matrix-matrix products and triangular solves.

CPU: the BLAS that SciPy carries. GPU: cuBLAS in the current stream, without a synchronisation.
What lies by rows is the transpose of what lies by columns: operands are passed transposed, and
where a GPU result is overwritten by rows, the transposed equation is computed. Only where that
would need a conjugate without a transpose (trans = 2, Hermitian matrices) an operand is copied.

Dongarra, Du Croz, Hammarling, Duff: A Set of Level 3 Basic Linear Algebra Subprograms, 1990.
"""

from functools import cache

import numpy as np

from . import _cuda as gpu
from . import _trace
from ._lapack import by_columns, column_major, ld, turned
from ._routine import Typed, cupy, public, typed

_gpu_gemm = None  # the module, which wants CuPy: bound with the first product of CuPy arrays
_halves = None  # the module, which wants this one
_called = cache(Typed)  # (name, letter): a typed name that a routine calls
FLAG = (0, 1)
TRANS = (0, 1, 2)
PRECISIONS = ("fp32", "strict", "tf32", "bf16", "fp16")
VARIANTS = ("auto", "native", "crt")


def gemm(me, alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0, *, bias=None,
         activation=None, slope_at=None, precision="fp32", variant="auto", device=None,
         memory=None):
    """C := f(alpha op(A) op(B) + bias) + beta C.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and B unread, beta = 0 leaves C unread, whatever they hold.
    a, b : arrays
        op(A) is (m, k), op(B) is (k, n).
    c : (m, n) array, optional
        Overwritten if `overwrite_c`: in place where column-major and aligned, views included.
    trans_a, trans_b : {0, 1, 2}
        op(X) = X, X^T, X^H.
    bias : (n,) or (m, 1) array, optional
        Added to every row, or every column.
    activation : {None, 'relu', 'gelu', 'gelu_tanh'}
        f, of real types: nothing, max(x, 0), x P(x) with P the normal distribution function, or
        its approximation by tanh, as in `blasx.nn`.
    slope_at : (m, n) array, optional
        C := (alpha op(A) op(B) + bias) f'(slope_at) + beta C, element by element, instead: what
        comes back through f.
    precision : {'fp32', 'strict', 'tf32', 'bf16', 'fp16'}
        Of single precision, real or complex, on the GPU: errors no larger than ordinary single
        precision's; ordinary single precision; or operands rounded to TF32, bfloat16 or half
        precision first, on Hopper to half precision once rows of op(A) and columns of op(B) are
        scaled. The CPU and other types are as exact as they are.
    variant : {'auto', 'native', 'crt'}
        Of double precision, real or complex, on the GPU: what was measured to be fastest; products
        of double precision; or, on Hopper, of integers that stand for the numbers, by their
        remainders: the fastest of large ones with long sums. Of real single precision 'native' is
        as 'auto', but never by digits (below). The CPU, other types and other GPUs have one way
        only, and so have a graph and a memory pool without room for remainders.
    device : {None, 'cpu', 'gpu'}
        'gpu' has the current GPU multiply NumPy arrays of the types s, d, c, z, of which it gets
        tiles while it works, without bias and f.
    memory : int, optional
        Bytes of the GPU that this may take; what is free by default.

    Returns
    -------
    c : (m, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    2 m n k operations. CPU: NumPy's product where no C is added, else SciPy's wrapper; GPU: own
    kernels for products of order 512 at most and, on Hopper, for large ones of single and of double
    precision, cuBLAS gemm for others, no synchronisation. Large ones of single precision are three
    products of half precision with sums in single: smaller errors than ordinary single precision's,
    below 4.3e-6 |A| |B| for any numbers, though each counts to 22 bits only. A row of op(A) or a
    column of op(B) with at most eight numbers that are not zero counts whole: a times the identity
    is a. 4 bytes of memory for each entry of a and b. Where numbers differ by many powers of ten
    within a row or column, elements are computed again in double precision, which takes longer than
    ordinary single precision does.

    Still larger ones (m n from 6144^2, k from 2048 to 24576) are six products of bytes, by three
    digits of 8 bits of every number, if the numbers of each row of op(A) and each column of op(B)
    are alike in size, 24 bits below the largest of which then count, and do not repeat; the GPU
    looks while it makes the digits, and takes halves if they are not. Normal or uniform numbers, at
    k = 4096: a fourth, a sixtieth of cuBLAS's largest error, half, a thirtieth in the mean. These
    errors are those of chance; numbers that are made for it can have larger ones than by halves.

    By remainders (Ozaki, Uchino, Imamura: Ozaki scheme II, 2025), rows of op(A) and columns of
    op(B) are scaled and rounded to integers of up to 58 bits, less where a number is small for its
    row or column, whose product is exact: for any numbers at most (k + 3) 2^-53 (|alpha A| |B| +
    |beta C|) off, as in ordinary double precision, and far less where the numbers of a row and of
    a column are alike; products of real integers that fit are right to the last bit. Each part
    of complex products is as good, to (k + 5) 2^-53, by three products of integers instead of four.
    Elements for which that bound is not sure (large numbers that meet small ones or zeros, inf,
    nan) are computed again in double precision, in tiles, on the device. The same bits every time,
    and for all tiles. 16 bytes of memory, of complex numbers 46, for each entry of a, b and c, in
    blocks from 4 GiB on; nearly twice the time of ordinary double precision where all elements are
    computed again, as of numbers that differ by many powers of ten within rows and columns.

    Half precision (`hgemm`, float16) and bfloat16 (`bgemm`; the dtype of the package ml_dtypes)
    are multiplied and summed in single precision, and rounded once. On Hopper a product with bias
    or f is one kernel, where operands lie in steps of 16 bytes; its gelu is good to 2e-7. The
    generic name takes these types if all arrays are of one of them.
    """
    a, b = me.matrix(a, "a"), me.matrix(b, "b")
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    if not (trans_a.__class__ is trans_b.__class__ is int and trans_a == trans_b == 0):
        trans_a = me.choice(trans_a, "trans_a", TRANS)
        trans_b = me.choice(trans_b, "trans_b", TRANS)
    m, k = a.shape[::-1] if trans_a else a.shape
    kb, n = b.shape[::-1] if trans_b else b.shape
    if kb != k:
        me.illegal("b", b.shape, f"a matrix with {k} rows in op(b), as op(a) has columns")
    one = False
    if slope_at is not None:
        slope_at = me.matrix(slope_at, "slope_at", (m, n))
        if activation is None:
            me.illegal("slope_at", slope_at.shape, "None without an activation")
    if c is not None or overwrite_c.__class__ is not int:
        c, one = _result(me, c, "c", (m, n), overwrite_c, a=a, b=b)
        if c is not None and overwrite_c and slope_at is not None:
            me.distinct(c, "c", slope_at=slope_at)
    if precision.__class__ is not str or precision != "fp32":
        precision = me.choice(precision, "precision", PRECISIONS)
    if variant.__class__ is not str or variant != "auto":
        variant = me.choice(variant, "variant", VARIANTS)
    on_cpu = me.on_cpu(a, b, c)
    if (device is not None or memory is not None) and me.by_gpu(device, memory, on_cpu):
        if bias is not None or activation is not None or me.type.sums != me.letter:
            me.illegal("device", device, "None for short types, and with bias or activation")
        if m and n and k and alpha:
            from .large import host
            to = c if overwrite_c and c is not None and column_major(c) else np.empty(
                (m, n), me.dtype, order="F")
            host.gemm(me, alpha, a, b, 0 if c is None else beta, c, to, trans_a, trans_b,
                      precision, memory)
            return to.reshape(-1) if one else to
    if bias is not None or activation is not None or me.type.sums != me.letter:
        c = _gemm_then(me, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, m, n, k,
                       _bias(me, bias, m, n), _activation(me, activation), slope_at, precision,
                       variant)
    elif on_cpu:
        if not (m and n and k and alpha):  # SciPy's wrapper refuses empty operands; small products
            c = scaled(me, beta, c, (m, n), overwrite_c)  # of OpenBLAS multiply nan by alpha = 0
        elif alpha == 1 and (c is None or beta == 0 and overwrite_c and column_major(c)) and not (
                me.is_complex and 2 in (trans_a, trans_b)):
            _trace.note("numpy")
            left, right = b if trans_b else b.T, a if trans_a else a.T
            if c is None:
                c = multiplied(left, right).T
            else:
                multiplied(left, right, c.T)
        elif c is not None and me.strided(c, overwrite_c):
            a, b = by_columns(a), by_columns(b)
            me.fortran("gemm", "NTC"[trans_a], "NTC"[trans_b], m, n, k, me.scalar(alpha),
                       a, ld(a), b, ld(b), me.scalar(beta), c, ld(c))
        else:
            (a, trans_a), (b, trans_b) = turned(a, trans_a), turned(b, trans_b)
            c = me.scipy(alpha, a, b, beta, c, trans_a, trans_b, overwrite_c)
    else:
        c = gpu.accumulator(me, c, (m, n), beta, overwrite_c)
        if k == 0 or alpha == 0:
            gpu.scale(c, beta)
        elif m and n:
            _gemm_gpu(me, alpha, a, b, beta, c, trans_a, trans_b, precision, variant)
    return c.reshape(-1) if one else c


def multiplied(a, b, out=None):
    """A B, by rows, of NumPy matrices of one type that fit, which nobody looks at again. NumPy's
    BLAS is ahead of the one that SciPy carries in small and thin products (bench/FACTS.md)."""
    if out is None and len(a) * b.shape[1] * a.itemsize <= _FEW and len(b) > 1:
        return a.dot(b)  # which copies what has no unit stride
    if not (a.flags.forc and b.flags.forc):  # of no unit stride NumPy would multiply them by itself
        a, b = (x if column_major(x) or column_major(x.T) else by_columns(x) for x in (a, b))
    return a @ b if out is None else np.matmul(a, b, out=out)


_FEW = 1 << 16  # bytes of A B: `dot` takes less time to begin than `@`, but clears A B first


def _gemm_gpu(me, alpha, a, b, beta, c, trans_a, trans_b, precision="fp32", variant="auto"):
    if variant == "crt" and me.letter in "dz":
        from . import _gpu_crt
        if _gpu_crt.multiply(alpha, a, b, beta, c, trans_a, trans_b):
            return
    if precision in ("fp32", "strict") or me.letter not in "sc":
        by_parts = (variant if me.letter in "dz" else precision) in ("auto", "fp32")
        if own_gemm().multiply(me, alpha, a, b, beta, c, trans_a, trans_b, by_parts,
                               variant == "auto"):
            return
    elif precision in ("fp16", "tf32") and me.letter == "s":
        if own_gemm().multiply_halves(alpha, a, b, beta, c, trans_a, trans_b, precision):
            return
    _gemm_cublas(me, alpha, a, b, beta, c, trans_a, trans_b, precision)


def own_gemm():
    """The module of own kernels, with the first product of CuPy arrays."""
    global _gpu_gemm
    if _gpu_gemm is None:
        from . import _gpu_gemm
    return _gpu_gemm


def by_halves():
    """The module of triangles by halves, with the first that is large."""
    global _halves
    if _halves is None:
        from .large import halves as _halves
    return _halves


def _gemm_then(me, alpha, a, b, beta, c, trans_a, trans_b, overwrite, m, n, k, bias, activation,
               slope_at, precision, variant):
    """gemm of short types, or with something after it: by one kernel, or a product and then that,
    in the type of its sums."""
    if c is None:
        beta = 0
    short, empty = me.type.sums != me.letter, not (m and n and k) or alpha == 0
    on_cpu = me.on_cpu(a, b, c, bias, slope_at)
    if not on_cpu:
        out = gpu.accumulator(me, c, (m, n), beta, overwrite)
        if short and not empty and _short_on_gpu(me, alpha, a, b, beta, out, trans_a, trans_b, m, n,
                                                 k, bias, activation, slope_at):
            return out
    single = _called(me.name, me.type.sums) if short else me
    if on_cpu:
        out = c if overwrite and c is not None else np.empty((m, n), me.dtype, order="F")
        product = np.zeros((m, n), single.dtype, order="F")
        if not empty:
            a, b = (x.astype(single.dtype, copy=False) for x in (a, b))
            (a, trans_a), (b, trans_b) = turned(a, trans_a), turned(b, trans_b)
            product = _called(single.letter + "gemm", single.letter).scipy(
                alpha, a, b, 0, None, trans_a, trans_b)
        return _follow(product, bias, activation, slope_at, beta, c, out)
    total = out if c is None and not short else cupy().ndarray((m, n), single.dtype, order="F")
    if empty:
        total.fill(0)
    else:
        if short:
            a, b = a.astype(single.dtype), b.astype(single.dtype)
        if bias is not None and precision == "fp32" and own_gemm().multiply_with_bias(
                single, alpha, a, b, bias, total, trans_a, trans_b):
            bias = None
        else:
            _gemm_gpu(single, alpha, a, b, 0, total, trans_a, trans_b, precision, variant)
    return _follow(total, bias, activation, slope_at, beta, out, out)


def _short_on_gpu(me, alpha, a, b, beta, c, trans_a, trans_b, m, n, k, bias, activation, slope_at):
    """The product of short types by one kernel, ours or cuBLAS's; False where none serves."""
    ours, last = own_gemm(), bias is activation is None
    if ours.multiply_half(me, alpha, a, b, beta, c, trans_a, trans_b, bias, activation, slope_at):
        return True
    if last and ours.for_cublas(me.letter, m, n, k, a, b, c):
        _gemm_cublas(me, alpha, a, b, beta, c, trans_a, trans_b)
    elif last:
        from .batched._gpu_blas import operand, product
        a, b = a.T if trans_a else a, b.T if trans_b else b
        o = operand(c)
        product(me, m, n, k, operand(a), operand(b), o, o, alpha, beta, 1, alone=True)
    return last


def _follow(product, bias, activation, slope_at, beta, c, out):
    """out := f(product + bias) + beta c, or (product + bias) f'(slope_at) + beta c, overwriting the
    product; rounded once more where out is of a shorter type."""
    if bias is not None:  # along the lines of memory
        lines, bias = (product.T, bias.T) if product.flags.f_contiguous else (product, bias)
        lines += bias.astype(product.dtype, copy=False)
    if slope_at is not None:
        product *= SLOPES[activation](slope_at.astype(product.dtype, copy=False))
    elif activation is not None:
        product = ACTIVATIONS[activation](product)
    if beta != 0:
        product += product.dtype.type(beta) * c.astype(product.dtype)
    if product is not out:
        with np.errstate(over="ignore"):
            out[...] = product.astype(out.dtype)
    return out


def _normal_share(x):
    if x.__class__ is np.ndarray:
        from scipy.special import erf
    else:
        from cupyx.scipy.special import erf
    return 0.5 + 0.5 * erf(x * x.dtype.type(0.5**0.5))


def _share_by_tanh(x):
    return 0.5 + 0.5 * np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))


def _slope_by_tanh(x):
    s = _share_by_tanh(x)
    return s + x * s * (1 - s) * ((8 / np.pi) ** 0.5 * (1 + 0.134145 * x**2))


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "gelu": lambda x: x * _normal_share(x),
    "gelu_tanh": lambda x: x * _share_by_tanh(x),
}
SLOPES = {
    "relu": lambda x: x > 0,
    "gelu": lambda x: _normal_share(x) + x * (np.exp(-0.5 * x**2) * (0.5 / np.pi) ** 0.5),
    "gelu_tanh": _slope_by_tanh,
}


def _bias(me, bias, m, n):
    """`bias` as a row or a column of a matrix (m, n)."""
    return None if bias is None else _line(me, bias, "bias", m, n)


def _line(me, x, argument, m, n):
    """A number for each column, or for each row, as a matrix."""
    x, one = me.columns(x, argument, None)
    if x.shape != ((n, 1) if one else (1, n)) and (one or x.shape != (m, 1)):
        me.illegal(argument, x.shape[:1] if one else x.shape, f"of shape ({n},) or ({m}, 1)")
    return x.T if one else x


def _activation(me, activation):
    if activation is None:
        return None
    if me.is_complex:
        me.illegal("activation", activation, "None for complex numbers")
    return me.choice(activation, "activation", tuple(ACTIVATIONS))


def gemm_int8(me, a, b, trans_a=0, trans_b=0, *, scale=None, bias=None, activation=None):
    """op(A) op(B) of bytes: exactly, or f(scale op(A) op(B) + bias) in single precision.

    Parameters
    ----------
    a, b : int8 arrays
        op(A) is (m, k), op(B) is (k, n).
    trans_a, trans_b : {0, 1, 2}
        op(X) = X, X^T.
    scale, bias : numbers, (n,) or (m, 1) arrays, optional
        One for all, for each column, for each row. Without a scale there is no bias and no f.
    activation : {None, 'relu', 'gelu', 'gelu_tanh'}
        f, as of gemm.

    Returns
    -------
    c : (m, n) array, row-major, int32, or float32 where there is a scale
        Integers wrap around, which they can from k = 131072 on.

    Notes
    -----
    2 m n k operations. CPU: a product of doubles, which is exact. GPU: on Hopper one kernel on the
    int8 tensor cores, of operands whose lines along k are in steps of 16 bytes, others are copied;
    elsewhere a product of doubles. No synchronisation.
    """
    for x, name in ((a, "a"), (b, "b")):
        if getattr(x, "dtype", None) != me.dtype:
            me.mistyped(name, getattr(x, "dtype", x.__class__.__name__), "an array of int8")
    a, b = me.matrix(a, "a"), me.matrix(b, "b")
    if me.choice(trans_a, "trans_a", TRANS):
        a = a.T
    if me.choice(trans_b, "trans_b", TRANS):
        b = b.T
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        me.illegal("b", b.shape, f"a matrix with {k} rows in op(b), as op(a) has columns")
    activation = _activation(me, activation)
    if scale is None and (bias is not None or activation is not None):
        me.illegal("scale", None, "given where bias or activation is")
    single = _called(me.name, "s")
    scale, bias = (_one_or_line(single, x, name, m, n) for x, name in (
        (scale, "scale"), (bias, "bias")))
    on_cpu = me.on_cpu(a, b, *(x for x in (scale, bias) if x.__class__ is not float))
    xp, dtype = np if on_cpu else gpu.cupy, np.int32 if scale is None else np.float32
    if not on_cpu and m and n and k:
        c = gpu.cupy.empty((m, n), dtype)
        if own_gemm().multiply_bytes(a, b, c, scale, bias, activation):
            return c
    c = dgemm(1.0, a.astype("f8"), b.astype("f8"))
    if scale is None:
        return xp.ascontiguousarray(c.astype(np.int64).astype(dtype))
    c = (scale * c).astype(dtype)
    if bias.__class__ is float:
        c, bias = c + dtype(bias), None
    return _follow(c, bias, activation, None, 0, None, xp.empty((m, n), dtype))


def _one_or_line(me, x, argument, m, n):
    """A number as it is, a number for each column or for each row as a matrix; None as it is."""
    if x is None:
        return None
    if isinstance(x, (int, float, np.number)):
        return float(me.number(x, argument))
    return _line(me, x, argument, m, n)


def _gemm_cublas(me, alpha, a, b, beta, c, trans_a, trans_b, precision="fp32"):
    if not column_major(c):  # C^T = op(B)^T op(A)^T, and op(X)^T is op of the view X.T
        return _gemm_cublas(me, alpha, b.T, a.T, beta, c.T, trans_b, trans_a, precision)
    k = a.shape[0] if trans_a else a.shape[1]
    pa, lda, ta, a = gpu.operand(a, trans_a)
    pb, ldb, tb, b = gpu.operand(b, trans_b)
    alpha, beta, short = gpu.scalar(me, alpha), gpu.scalar(me, beta), me.type.sums != me.letter
    if short or me.letter in "sc" and precision in gpu.COMPUTE:
        t = me.type.cuda
        gpu.blas("GemmStridedBatchedEx", ta, tb, *c.shape, k, alpha, pa, t, lda, 0, pb, t, ldb, 0,
                 beta, c.data.ptr, t, ld(c), 0, 1,
                 gpu.COMPUTE_32F if short else gpu.COMPUTE[precision], gpu.DEFAULT_ALGORITHM)
    else:
        gpu.blas(me.cublas, ta, tb, *c.shape, k, alpha, pa, lda, pb, ldb, beta, c.data.ptr, ld(c))


def _result(me, c, argument, shape, overwrite, **operands):
    """C checked, if there is one: a matrix of `shape`, apart from the operands if overwritten; True
    if the caller gave it as a vector, and is to be answered with one."""
    if c is None:
        me.allows(overwrite, argument)
        return c, False
    c, one = me.columns(c, argument, shape[0], overwrite)
    me.shaped(c, argument, shape)
    if overwrite:
        me.distinct(c, argument, **operands)
    return c, one


def scaled(me, beta, c, shape, overwrite_c):
    """beta C on the CPU, zeros without C: what a product of no terms leaves."""
    if c is None or beta == 0:
        out = c if overwrite_c and c is not None else np.empty(shape, me.dtype, order="F")
        out[...] = 0
        return out
    out = c if overwrite_c else c.copy(order="F")
    out *= me.dtype.type(beta)
    return out


# -- products with a symmetric or Hermitian matrix


def symm(me, alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """C := alpha A B + beta C or alpha B A + beta C, A symmetric.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and B unread, beta = 0 leaves C unread, whatever they hold.
    a : (m, m) array; (n, n) if `side`
        Symmetric; only the triangle that `lower` names is read.
    b : (m, n) array
    c : (m, n) array, optional
        Overwritten if `overwrite_c`: in place where column-major and aligned, views included.
    side : {0, 1}
        A to the left, to the right of B.

    Returns
    -------
    c : (m, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    2 m^2 n operations (2 m n^2 if `side`). CPU: SciPy's wrapper; GPU: cuBLAS symm, or where that
    is faster A is made whole, which takes its memory once more, and multiplied as in gemm; no
    synchronisation.
    """
    return _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c)


def hemm(me, alpha, a, b, beta=0.0, c=None, side=0, lower=0, overwrite_c=0):
    """C := alpha A B + beta C or alpha B A + beta C, A Hermitian.

    As `symm`; the imaginary parts of A's diagonal are taken as zero. On the GPU an A by rows is
    copied: as columns it would be conj(A).
    """
    return _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c)


def _symmetric_product(me, alpha, a, b, beta, c, side, lower, overwrite_c):
    a, b = me.square(a, "a"), me.matrix(b, "b")
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    side, lower = me.choice(side, "side", FLAG), me.choice(lower, "lower", FLAG)
    m, n = b.shape
    if a.shape[0] != b.shape[side]:
        me.illegal("a", a.shape, f"of shape ({b.shape[side]}, {b.shape[side]}), to multiply b")
    one = False
    if c is not None or overwrite_c.__class__ is not int:
        c, one = _result(me, c, "c", (m, n), overwrite_c, a=a, b=b)
    if me.on_cpu(a, b, c):
        if not (m and n):
            c = scaled(me, beta, c, (m, n), overwrite_c)
        elif c is not None and me.strided(c, overwrite_c):
            a, b = by_columns(a), by_columns(b)
            me.fortran(me.name[1:], "LR"[side], "UL"[lower], m, n, me.scalar(alpha), a, ld(a),
                       b, ld(b), me.scalar(beta), c, ld(c))
        else:
            if me.name[1:] == "symm":
                a, transposed = turned(a)
                lower ^= transposed
            c = me.scipy(alpha, a, b, beta, c, side, lower, overwrite_c)
    else:
        c = gpu.accumulator(me, c, (m, n), beta, overwrite_c)
        if alpha == 0:
            gpu.scale(c, beta)
        elif m and n:
            _symmetric_product_gpu(me, alpha, a, b, beta, c, side, lower)
    return c.reshape(-1) if one else c


def _symmetric_product_gpu(me, alpha, a, b, beta, c, side, lower):
    if not column_major(c):  # C^T = B^T A^T, and A^T is the view A.T with the other triangle
        return _symmetric_product_gpu(me, alpha, a.T, b.T, beta, c.T, 1 - side, 1 - lower)
    if not own_gemm().leaf(me, len(a), c.shape[1 - side]) or not (
            by_halves().symmetric_product(me, alpha, a, b, beta, c, side, lower)):
        _symmetric_product_cublas(me, alpha, a, b, beta, c, side, lower)


def _symmetric_product_cublas(me, alpha, a, b, beta, c, side, lower):
    a, b = by_columns(a) if me.name[1:] == "hemm" else a, by_columns(b)
    pa, lda, uplo, _, a = gpu.half(a, lower)
    gpu.blas(me.cublas, side, uplo, *c.shape, gpu.scalar(me, alpha), pa, lda,
             b.data.ptr, ld(b), gpu.scalar(me, beta), c.data.ptr, ld(c))


# -- rank-k and rank-2k updates of a symmetric or Hermitian matrix


def syrk(me, alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha A A^T + beta C, or alpha A^T A + beta C if `trans`; one triangle of C.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A unread, beta = 0 leaves the triangle of C unread, whatever they hold.
    a : (n, k) array; (k, n) if `trans`
    c : (n, n) array, optional
        Overwritten if `overwrite_c`: in place where column-major and aligned, views included.
    trans : {0, 1}; real types take 2 for 1
    lower : {0, 1}
        The triangle of C that is read and written; the other stays as it was, zero without `c`.

    Returns
    -------
    c : (n, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    n (n + 1) k operations. CPU: SciPy's wrapper; GPU: cuBLAS syrk, or products of single and of
    double precision as those of gemm, no synchronisation.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    return _rank_k(me, alpha, (a,), beta, c, trans, lower, overwrite_c)


def herk(me, alpha, a, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha A A^H + beta C, or alpha A^H A + beta C if `trans` = 2; one triangle of C.

    As `syrk`, with alpha and beta real and `trans` 0 or 2. On the GPU an A by rows is copied
    unless C lies by rows too.
    """
    alpha, beta = me.real_number(alpha, "alpha"), me.real_number(beta, "beta")
    return _rank_k(me, alpha, (a,), beta, c, trans, lower, overwrite_c)


def syr2k(me, alpha, a, b, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha (A B^T + B A^T) + beta C, or alpha (A^T B + B^T A) + beta C if `trans`; one
    triangle of C.

    As `syrk`, with B of the shape of A; 2 n (n + 1) k operations.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    return _rank_k(me, alpha, (a, b), beta, c, trans, lower, overwrite_c)


def her2k(me, alpha, a, b, beta=0.0, c=None, trans=0, lower=0, overwrite_c=0):
    """C := alpha A B^H + conj(alpha) B A^H + beta C, or alpha A^H B + conj(alpha) B^H A + beta C
    if `trans` = 2; one triangle of C.

    As `syr2k`, with beta real and `trans` 0 or 2. On the GPU operands by rows are copied unless
    C lies by rows too.
    """
    alpha, beta = me.number(alpha, "alpha"), me.real_number(beta, "beta")
    return _rank_k(me, alpha, (a, b), beta, c, trans, lower, overwrite_c)


def _rank_k(me, alpha, terms, beta, c, trans, lower, overwrite_c):
    """The four updates; `terms` is (A,) or (A, B)."""
    hermitian = me.name[1:3] == "he"
    terms = [me.matrix(x, name) for x, name in zip(terms, "ab")]
    trans = me.choice(trans, "trans", TRANS if not me.is_complex else (0, 2) if hermitian else FLAG)
    lower = me.choice(lower, "lower", FLAG)
    a, b = terms[0], terms[-1]
    if b.shape != a.shape:
        me.illegal("b", b.shape, f"of the shape of a, {a.shape}")
    n, k = a.shape[::-1] if trans else a.shape
    one = False
    if c is not None or overwrite_c.__class__ is not int:
        c, one = _result(me, c, "c", (n, n), overwrite_c, a=a, b=b)
    if me.on_cpu(*terms, c):
        if n and k and (c is None or not me.strided(c, overwrite_c)):
            if not hermitian and all(x.flags.c_contiguous for x in terms):
                terms, trans = [x.T for x in terms], 0 if trans else 1
            c = me.scipy(alpha, *terms, beta, c, trans, lower, overwrite_c)
        else:
            c = _rank_k_cpu(me, alpha, terms, beta, c, n, k, trans, lower, overwrite_c)
    else:
        c = gpu.triangle_of(me, c, n, overwrite_c)
        if k == 0 or alpha == 0:  # one term of zeros: leaves the scaling of the triangle
            terms, trans, alpha = [gpu.cupy.zeros((n, 1), me.dtype)] * len(terms), 0, 0
        if n and (alpha or beta != 1):
            _rank_k_gpu(me, alpha, terms, beta, c, trans, lower)
    return c.reshape(-1) if one else c


def _rank_k_cpu(me, alpha, terms, beta, c, n, k, trans, lower, overwrite_c):
    """In place of a column-major view, and what SciPy's wrapper refuses: no terms."""
    if c is None:
        c = np.zeros((n, n), me.dtype, order="F")
    elif not (overwrite_c and column_major(c)):
        c = c.copy(order="F")
    real = me.name[1:3] == "he"
    alpha = me.real_scalar(alpha) if real and len(terms) == 1 else me.scalar(alpha)
    beta = me.real_scalar(beta) if real else me.scalar(beta)
    terms = [by_columns(x) for x in terms]
    at = [y for x in terms for y in (x, ld(x))]
    me.fortran(me.name[1:], "UL"[lower], "NTC"[trans], n, k, alpha, *at, beta, c, ld(c))
    return c


def _rank_k_gpu(me, alpha, terms, beta, c, trans, lower):
    hermitian = me.name[1:3] == "he"
    if not column_major(c):  # C^T is C, of the other triangle; it is conj(C) if Hermitian
        if hermitian:
            terms, trans = [x.T for x in reversed(terms)], 2 - trans
        return _rank_k_gpu(me, alpha, terms, beta, c.T, trans, 1 - lower)
    if own_gemm().rank_k(me, alpha, [x.T for x in terms] if trans else terms, beta, c, lower,
                         (hermitian and trans > 0, hermitian and not trans)):
        return
    _rank_k_cublas(me, alpha, terms, beta, c, trans, lower)


def _rank_k_cublas(me, alpha, terms, beta, c, trans, lower):
    hermitian = me.name[1:3] == "he"
    n, k = terms[0].shape[::-1] if trans else terms[0].shape
    if hermitian or not all(gpu.by_rows(x) for x in terms):
        terms = [by_columns(x) for x in terms]
    at = [gpu.operand(x, trans) for x in terms]
    op = at[0][2]
    new_alpha = gpu.real_scalar if hermitian and len(terms) == 1 else gpu.scalar
    new_beta = gpu.real_scalar if hermitian else gpu.scalar
    addresses = [y for p, lda, _, _ in at for y in (p, lda)]
    gpu.blas(me.cublas, gpu.fill(lower), op, n, k, new_alpha(me, alpha), *addresses,
             new_beta(me, beta), c.data.ptr, ld(c))


# -- triangular matrices


def trmm(me, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """B := alpha op(A) B or alpha B op(A), A triangular.

    Parameters
    ----------
    alpha : number
        alpha = 0 leaves A and B unread, whatever they hold.
    a : (m, m) array; (n, n) if `side`
        Only the triangle that `lower` names is read, without its diagonal if `diag`. A larger A
        stands for its leading block.
    b : (m, n) array
        Overwritten if `overwrite_b`: in place where column-major and aligned, views included.
    side : {0, 1}
        op(A) to the left, to the right of B.
    trans_a : {0, 1, 2}
        op(A) = A, A^T, A^H.
    diag : {0, 1}
        1: the diagonal of A is taken as ones.

    Returns
    -------
    b : (m, n) array, column-major unless a GPU array was overwritten by rows

    Notes
    -----
    m^2 n operations (m n^2 if `side`). CPU: SciPy's wrapper; GPU: cuBLAS, of large ones on small
    triangles only: what lies between those are products as in gemm. No synchronisation.
    """
    a = me.matrix(a, "a")
    b, one = me.columns(b, "b", None, overwrite_b)
    side = me.choice(side, "side", FLAG)
    k = b.shape[side]
    if a.shape[0] < a.shape[1] or a.shape[1] < k:
        me.illegal("a", a.shape, f"of shape ({k}, {k}), to multiply b")
    return _triangular(me, alpha, a[:k, :k], b, one, side, lower, trans_a, diag, overwrite_b)


def trsm(me, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """Solve op(A) X = alpha B or X op(A) = alpha B, A triangular.

    As `trmm`, with A exactly (m, m), or (n, n) if `side`. B is overwritten by X if `overwrite_b`.
    A zero on the diagonal of A gives inf or nan: nothing is tested.
    """
    a = me.square(a, "a")
    b, one = me.columns(b, "b", None, overwrite_b)
    side = me.choice(side, "side", FLAG)
    k = b.shape[side]
    if a.shape[0] != k:
        me.illegal("a", a.shape, f"of shape ({k}, {k}), as b has {'columns' if side else 'rows'}")
    return _triangular(me, alpha, a, b, one, side, lower, trans_a, diag, overwrite_b)


def _triangular(me, alpha, a, b, one, side, lower, trans, diag, overwrite_b):
    alpha = me.number(alpha, "alpha")
    lower, diag = me.choice(lower, "lower", FLAG), me.choice(diag, "diag", FLAG)
    trans = me.choice(trans, "trans_a", TRANS)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    if me.on_cpu(a, b):
        if b.size and me.strided(b, overwrite_b):
            a = by_columns(a)
            me.fortran(me.name[1:], "LR"[side], "UL"[lower], "NTC"[trans], "NU"[diag], *b.shape,
                       me.scalar(alpha), a, ld(a), b, ld(b))
        elif b.size:
            a, op = turned(a, trans)
            lower = lower if op == trans else 1 - lower
            b = me.scipy(alpha, a, b, side, lower, op, diag, overwrite_b)
        elif not overwrite_b:
            b = b.copy(order="F")
    else:
        b = _triangular_gpu(me, alpha, a, b, side, lower, trans, diag, overwrite_b)
    return b.reshape(-1) if one else b


def _triangular_gpu(me, alpha, a, b, side, lower, trans, diag, overwrite_b):
    product = me.name[1:] == "trmm"
    if product and not overwrite_b and column_major(b):  # cuBLAS's trmm is out of place
        x = gpu.cupy.empty(b.shape, me.dtype, order="F")
    else:
        x = b = gpu.accumulator(me, b, b.shape, 1, overwrite_b)
    if alpha == 0:
        x.fill(0)
    elif x.size:
        of = (a, b, x, side, lower)
        if not column_major(x):  # X^T = B^T op(A)^T, and op(A)^T is op of the view A.T
            of = (a.T, b.T, x.T, 1 - side, 1 - lower)
        a, b, xc, side, lower = of
        leaf = own_gemm().leaf(me, len(a), xc.shape[1 - side])
        if leaf:
            if xc is not b:
                xc[...] = b
            by_halves().triangular(me, alpha, a, xc, side, lower, trans, diag, leaf)
        else:
            _triangular_cublas(me, alpha, a, b, xc, side, lower, trans, diag)
    return x


def solve_triangle(me, t, x, lower, trans, diag):
    """Solve op(T) X = B in place of a column-major x on the GPU."""
    me = _called(me.letter + "trsm", me.letter)
    leaf = own_gemm().leaf(me, *x.shape)
    if leaf:
        by_halves().triangular(me, 1, t, x, 0, lower, trans, diag, leaf)
    else:
        _triangular_cublas(me, 1, t, x, x, 0, lower, trans, diag)


def _triangular_cublas(me, alpha, a, b, x, side, lower, trans, diag):
    pa, lda, uplo, op, a = gpu.half(a, lower, trans)
    to = (b.data.ptr, ld(b), x.data.ptr, ld(x)) if me.name[1:] == "trmm" else (x.data.ptr, ld(x))
    gpu.blas(me.cublas, side, uplo, op, diag, *x.shape, gpu.scalar(me, alpha), pa, lda, *to)


gemm, sgemm, dgemm, cgemm, zgemm, hgemm, bgemm = typed(gemm, "sdczhb")
_, igemm = typed(gemm_int8, "i", "igemm")
symm, ssymm, dsymm, csymm, zsymm = typed(symm, "sdcz")
hemm, chemm, zhemm = typed(hemm, "cz")
syrk, ssyrk, dsyrk, csyrk, zsyrk = typed(syrk, "sdcz")
herk, cherk, zherk = typed(herk, "cz")
syr2k, ssyr2k, dsyr2k, csyr2k, zsyr2k = typed(syr2k, "sdcz")
her2k, cher2k, zher2k = typed(her2k, "cz")
trmm, strmm, dtrmm, ctrmm, ztrmm = typed(trmm, "sdcz")
trsm, strsm, dtrsm, ctrsm, ztrsm = typed(trsm, "sdcz")

__all__ = public(globals())
