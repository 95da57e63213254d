"""cuBLAS answered by the CPU's BLAS: the GPU branches run without a GPU, and every argument they
pass is used. What the arrays on "the GPU" are: NumPy's, of a class of their own.
"""

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import numpy as np

from blasx import _cuda, _lapack, blas3
from blasx._routine import NATIVE
from blasx._types import TYPES


class Array(np.ndarray):
    """An array that says where it is as CuPy's do."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, device_id=0)


def _made(make):
    return lambda *args, **kw: make(*args, **kw).view(Array)


def _dirty(shape, dtype=float, order="C"):
    """`empty`, full of what nobody must read."""
    return np.full(shape, np.nan, dtype, order).view(Array)


cupy = SimpleNamespace(ndarray=Array, empty=_dirty, zeros=_made(np.zeros), full=_made(np.full),
                       asarray=_made(np.asarray), tri=np.tri, copyto=np.copyto,
                       conjugate=np.conjugate,
                       asnumpy=lambda x, order="K": np.array(x, order=order))


def never(*operands):
    """No product is so small that it would not go to cuBLAS."""
    return False


@contextmanager
def device(leaf=0):
    """A GPU for the length of a with block; with a `leaf` triangles above that order go to cuBLAS
    by halves (blasx/large/halves.py)."""
    NATIVE.add(Array)
    own = SimpleNamespace(multiply=never, rank_k=never,
                          leaf=lambda me, n, other: leaf if n > leaf else 0)
    try:
        with (mock.patch.multiple(_cuda, cupy=cupy, blas=call, blas_on_device=call,
                                  current_device=lambda: 0),
              mock.patch.object(blas3, "_gpu_gemm", own)):
            yield
    finally:
        NATIVE.discard(Array)


# The flags of each routine, in order: t(rans), s(ide), u(plo), d(iag), as cuBLAS numbers them.
LETTERS = {"t": "NTC", "s": "LR", "u": "LU", "d": "NU"}
FLAGS = {"gemm": "tt", "gemv": "t", "gbmv": "t",
         **dict.fromkeys("symm hemm".split(), "su"),
         **dict.fromkeys("syrk herk syr2k her2k".split(), "ut"),
         **dict.fromkeys("trmm trsm".split(), "sutd"),
         **dict.fromkeys("trmv trsv tbmv tbsv tpmv tpsv".split(), "utd"),
         **dict.fromkeys("symv hemv sbmv hbmv spmv hpmv syr her spr hpr syr2 her2 spr2 hpr2"
                         .split(), "u")}
REAL_ONLY = set("sbmv spmv spr spr2 ger dot rotm".split())  # what cuBLAS has not for C and Z
COMPLEX_ONLY = set("hemv hbmv hpmv geru gerc her hpr her2 hpr2 dotu dotc herk hemm her2k".split())


def call(name, *arguments):
    """The cuBLAS routine `name` ("Dgemm") on the CPU."""
    base = name if name in _cuda.CUBLAS else name[1:]
    kinds = _cuda.CUBLAS[base]
    assert len(kinds) == len(arguments), name
    letter = name[1 if base == name else 0].lower()  # Dgemm, but Idamax, Dznrm2
    assert name[0].isupper(), name
    assert not (base in REAL_ONLY and letter in "cz" or base in COMPLEX_ONLY and letter in "sd")
    if kinds[-1] == "p" and base.lower().endswith(("dot", "dotu", "dotc", "nrm2", "asum", "amax")):
        return _to_scalar(base, TYPES[letter], arguments)
    if base == "geam":
        return _turned(TYPES[letter].dtype, *arguments)
    if base in ("syrkx", "herkx"):
        return _rank_k_of_two(TYPES[letter], base == "herkx", *arguments)
    if base == "trmm":
        arguments = _trmm_in_place(TYPES[letter].dtype, *arguments)
    flags = iter(FLAGS.get(base, ""))
    keep = []
    for kind, x in zip(kinds, arguments):
        assert kind == "h" or type(x) is int, (name, x)
        keep.append(_lapack._pointer(LETTERS[next(flags)][x]) if kind == "i" else
                    _lapack._pointer(x) if kind == "n" else
                    _lapack.ffi.cast("void *", x))
    _lapack.function(name.lower())(*keep)


def _to_scalar(base, t, arguments):
    n, *at, result = arguments
    x, *y = [_vector(p, n, inc, t.dtype) for p, inc in zip(at[::2], at[1::2])]
    if y:
        value, dtype = (x.conj() if base == "dotc" else x) @ y[0], t.dtype
    else:
        assert at[1] > 0  # with another increment cuBLAS answers 0
        size = abs(x.real) + abs(x.imag)
        value, dtype = {"nrm2": (np.linalg.norm(x), t.real), "asum": (size.sum(), t.real),
                        "amax": (size.argmax() + 1, np.dtype("i8"))}[base[-4:]]
    _vector(result, 1, 1, dtype)[0] = value


def _vector(address, n, inc, dtype):
    memory = (ctypes.c_char * (((n - 1) * abs(inc) + 1) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)[::abs(inc)][::1 if inc > 0 else -1]


def _turned(dtype, op, none, m, n, alpha, a, lda, beta, b, ldb, c, ldc):
    """C := op(A), the only use of geam that there is."""
    assert op and not none and m == n
    rows = [_vector(a + i * dtype.itemsize, n, lda, dtype) for i in range(m)]
    for j, row in enumerate(rows):
        _vector(c + j * ldc * dtype.itemsize, n, 1, dtype)[:] = row.conj() if op == 2 else row


def _rank_k_of_two(t, hermitian, uplo, none, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """One triangle of C := alpha A B^T + beta C, or with B^H; the diagonal is real then."""
    assert not none
    left, right = (np.array([_vector(p + j * ld * t.dtype.itemsize, n, 1, t.dtype)
                             for j in range(k)]).T for p, ld in ((a, lda), (b, ldb)))
    real = np.dtype(t.real).char if hermitian else t.dtype.char
    factors = [np.frombuffer(_cuda.ffi.buffer(x), dtype)[0]
               for x, dtype in ((alpha, t.dtype), (beta, real))]
    product = factors[0] * (left @ (right.conj() if hermitian else right).T)
    for j in range(n):
        rows = slice(0, j + 1) if uplo else slice(j, n)
        column = _vector(c + j * ldc * t.dtype.itemsize, n, 1, t.dtype)
        column[rows] = product[rows, j] + factors[1] * column[rows]
        if hermitian:
            column[j] = column[j].real


def _trmm_in_place(dtype, *arguments):
    """cuBLAS's trmm leaves B and writes C, which may be B: BLAS's arguments, with B in C."""
    *head, b, ldb, c, ldc = arguments
    m, n = head[4:6]
    for j in range(n):
        column = _vector(b + j * ldb * dtype.itemsize, m, 1, dtype).copy()
        _vector(c + j * ldc * dtype.itemsize, m, 1, dtype)[:] = column
    return (*head, c, ldc)
