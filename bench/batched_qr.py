"""QR of many matrices on the GPU: geqrf, qr (geqrf and orgqr: Q and R), gels with one right-hand
side, by rows as NumPy's users have them.

Peers have members by columns, their own layout: torch.geqrf, linalg.qr and linalg.lstsq out of
place; cuBLAS's geqrfBatched in place, with the arrays of pointers made before.
"""

from functools import partial

from blasx import _errors as errors

from . import timing
from .timing import Row, Side

ROUTINES = ("geqrf", "qr", "gels")
SIZES = ((4, 100_000), (8, 100_000), (16, 50_000), (32, 20_000), (64, 5000), (128, 1000),
         (256, 500), (512, 100), (1024, 50))
DTYPES = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}


def rows(letters, quick, family):
    """The rows of the family; their kernels are compiled first, several at once."""
    timing.gpu()
    timing.compile_ahead(letters, {n for n, _ in SIZES}, {*ROUTINES, "orgqr", "ormqr", "trsm"})
    for routine in ROUTINES:
        for letter in letters:
            for n, batch in SIZES:
                yield row(routine, letter, n, max(1, batch // 10) if quick else batch)


def row(routine, letter, n, batch):
    a, b = problem(letter, n, batch)
    check = {"geqrf": lambda r: errors.triangular_of_qr(a, r),
             "qr": lambda qr: errors.product(*qr, a, like=a),
             "gels": lambda x: errors.solution(a, b, x)}[routine]
    peers = {"torch": partial(torch_side, routine, a, b)}
    if routine == "geqrf":
        peers["cuBLAS"] = partial(cublas_side, letter, a)
    return Row(routine, letter, f"{batch}x{n}x{n}",
               {"blasx": partial(blasx_side, routine, letter, a, b)}, peers, check,
               timing.gpu_clock(2 * a.nbytes), floor_bytes=2 * a.nbytes)


def problem(letter, n, batch):
    """A (batch, n, n) and B (batch, n, 1), normal."""
    cupy = timing.gpu()
    random = cupy.random.RandomState(n)

    def normal(*shape):
        x = random.standard_normal(shape)
        x = x + 1j * random.standard_normal(shape) if letter in "cz" else x
        return x.astype(DTYPES[letter])

    return normal(batch, n, n), normal(batch, n, 1)


def columns(x):
    """A copy of a stack with its members by columns."""
    return x.swapaxes(1, 2).copy().swapaxes(1, 2)


def blasx_side(routine, letter, a, b):
    import blasx
    cupy = timing.gpu()
    factor, gels = (getattr(blasx, f"{letter}{x}_batched") for x in ("geqrf", "gels"))
    if routine == "geqrf":
        return Side(lambda: (a.copy(),), factor, lambda r: r[0])
    if routine == "gels":
        return Side(lambda: (a.copy(), b.copy()), gels, lambda r: r[1])

    def both(a):
        qr, tau, _ = factor(a)
        return blasx.orgqr_batched(qr, tau)[0], cupy.triu(qr)

    return Side(lambda: (a.copy(),), both)


def torch_side(routine, a, b):
    import cupy
    import torch
    run = {"geqrf": lambda a, b: torch.geqrf(a)[0], "qr": lambda a, b: torch.linalg.qr(a),
           "gels": lambda a, b: torch.linalg.lstsq(a, b)[0]}[routine]

    def answer(result):
        if routine == "qr":
            return tuple(map(cupy.from_dlpack, result))
        return cupy.from_dlpack(result)

    return Side(lambda: (torch.from_dlpack(columns(a)), torch.from_dlpack(columns(b))), run, answer)


def cublas_side(letter, a):
    """cublas<t>geqrfBatched, which CuPy does not bind."""
    import numpy as np

    from blasx import _cuda
    from blasx.batched._gpu import pointers
    cupy = timing.gpu()
    batch, n = a.shape[:2]
    f = _cuda._cublas.function(f"cublas{letter.upper()}geqrfBatched", "piipippi")
    status = np.zeros(1, "i4")

    def operands():
        mine, tau = columns(a), cupy.empty((batch, n, 1), a.dtype)
        return mine, tau, pointers(mine), pointers(tau)

    def run(a, tau, pa, ptau):
        f(_cuda._cublas.handle(), n, n, pa.data.ptr, n, ptau.data.ptr, status.ctypes.data, batch)
        return a

    return Side(operands, run, overwrites=(0,))
