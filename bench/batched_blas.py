"""Products of many matrices on the GPU, gemm gemv symm syrk, and triangular solves, trsm, by rows
as NumPy's users have them.

Sides: blasx into a C that is there; torch.bmm and CuPy's matmul (cuBLAS's strided batched gemm)
likewise. torch and CuPy have no symm or syrk of a batch: their full product stands beside ours.
trsm: a lower triangle and n right-hand sides, blasx in place of B; cuBLAS's trsmBatched likewise,
torch.linalg.solve_triangular out of place, both by columns, their own layout.
"""

from functools import partial

from . import timing
from .batched import columns, pointers
from .timing import Row, Side

ROUTINES = ("gemm", "gemv", "symm", "syrk", "trsm")
SIZES = ((4, 100_000), (8, 100_000), (16, 50_000), (32, 20_000), (64, 5000), (128, 1000),
         (256, 500), (512, 100))
DTYPES = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}


def rows(letters, quick, family):
    """The rows of the family; their kernels are compiled first, several at once."""
    timing.gpu()
    timing.compile_ahead(letters, {n for n, _ in SIZES}, ROUTINES)
    for routine in ROUTINES:
        for letter in letters:
            for n, batch in SIZES:
                yield row(routine, letter, n, max(1, batch // 10) if quick else batch)


def row(routine, letter, n, batch):
    a, b = problem(routine, letter, n, batch)
    columns = b.shape[2]
    nbytes = {"gemm": 3, "gemv": 1, "symm": 3, "syrk": 2, "trsm": 2.5}[routine] * a.nbytes
    shape = f"{batch}x{n}x{n}" + ("x1" if columns == 1 else "")
    peers = {"torch": partial(torch_side, a, b), "CuPy": partial(cupy_side, a, b)}
    if routine == "trsm":
        peers = {"torch": partial(torch_trsm, a, b), "cuBLAS": partial(cublas_trsm, letter, a, b)}
    return Row(routine, letter, shape,
               {"blasx": partial(blasx_side, routine, letter, a, b)}, peers,
               partial(error, routine, a, b), timing.gpu_clock(nbytes),
               floor_bytes=nbytes + 2 * b.nbytes * (routine == "gemv"))


def problem(routine, letter, n, batch):
    """A (batch, n, n), symmetric for symm, its diagonal large for trsm, and B: of one column for
    gemv, A^T for syrk."""
    cupy = timing.gpu()
    random = cupy.random.RandomState(n)

    def normal(*shape):
        x = random.standard_normal(shape)
        x = x + 1j * random.standard_normal(shape) if letter in "cz" else x
        return x.astype(DTYPES[letter])

    a = normal(batch, n, n)
    if routine == "symm":
        a = cupy.tril(a) + cupy.tril(a, -1).swapaxes(1, 2)
    if routine == "syrk":
        return a, a.swapaxes(1, 2)
    if routine == "trsm":
        a = a / n + 2 * cupy.eye(n, dtype=a.dtype)
    return a, normal(batch, n, 1 if routine == "gemv" else n)


def error(routine, a, b, c):
    """The largest error of a few members, relative to |A| |B|, in units of n eps."""
    import numpy as np
    cupy = timing.gpu()
    some = slice(None, None, max(1, len(a) // 50))
    x, y, c = a[some], b[some], c[some]
    if routine == "trsm":  # the product of the triangle and X is B
        x, y, c = cupy.tril(x), c, y
    wide = np.result_type(a.dtype, np.float64)
    wrong = abs(c - x.astype(wide) @ y.astype(wide))
    if routine == "syrk":
        wrong = cupy.tril(wrong)
    bound = (abs(x) @ abs(y)).max() * np.finfo(a.dtype).eps * a.shape[-1]
    return float(wrong.max() / bound)


def blasx_side(routine, letter, a, b):
    import blasx
    cupy = timing.gpu()
    f = getattr(blasx, f"{letter}{routine}_batched")

    def operands():
        out = cupy.zeros((len(a), a.shape[1], b.shape[2]), a.dtype)
        if routine == "syrk":
            return a.copy(), out
        if routine == "gemv":
            return a.copy(), b[:, :, 0].copy(), out[:, :, 0]
        return (a.copy(), b.copy()) if routine == "trsm" else (a.copy(), b.copy(), out)

    run = {"gemm": lambda a, b, c: f(1.0, a, b, 0.0, c, overwrite_c=1),
           "gemv": lambda a, x, y: f(1.0, a, x, 0.0, y, overwrite_y=1),
           "symm": lambda a, b, c: f(1.0, a, b, 0.0, c, lower=1, overwrite_c=1),
           "syrk": lambda a, c: f(1.0, a, 0.0, c, lower=1, overwrite_c=1),
           "trsm": lambda a, b: f(1.0, a, b, lower=1, overwrite_b=1)}[routine]
    return Side(operands, run, lambda c: c[:, :, None] if routine == "gemv" else c,
                (1,) if routine == "trsm" else ())


def copies(a, b):
    """A and B as they lie, and room for the product."""
    cupy = timing.gpu()
    right = b.swapaxes(1, 2).copy().swapaxes(1, 2) if b.strides[1] < b.strides[2] else b.copy()
    return a.copy(), right, cupy.empty((len(a), a.shape[1], b.shape[2]), a.dtype)


def torch_side(a, b):
    import cupy
    import torch
    return Side(lambda: tuple(map(torch.from_dlpack, copies(a, b))),
                lambda a, b, c: torch.bmm(a, b, out=c), cupy.from_dlpack)


def cupy_side(a, b):
    cupy = timing.gpu()
    return Side(lambda: copies(a, b), lambda a, b, c: cupy.matmul(a, b, out=c))


def torch_trsm(a, b):
    import cupy
    import torch
    return Side(lambda: (torch.from_dlpack(columns(a)), torch.from_dlpack(columns(b))),
                lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), cupy.from_dlpack)


def cublas_trsm(letter, a, b):
    """cublas<t>trsmBatched, the arrays of pointers made before."""
    from blasx import _cuda
    n, batch = a.shape[1], len(a)
    one = _cuda.ffi.new({"s": "float[]", "d": "double[]", "c": "float[]", "z": "double[]"}[letter],
                        [1, 0])

    def operands():
        triangle, x = columns(a), columns(b)
        return triangle, x, pointers(triangle), pointers(x)

    def run(triangle, x, of_triangle, of_x):
        _cuda.blas(letter.upper() + "trsmBatched", _cuda.LEFT, _cuda.LOWER, 0, _cuda.NON_UNIT, n, n,
                   one, of_triangle.data.ptr, n, of_x.data.ptr, n, batch)
        return x

    return Side(operands, run, overwrites=(1,))
