"""The CPU: what a call costs, batches beside NumPy's stacks and loops over SciPy, large n."""

from functools import partial

import numpy as np
from scipy.linalg import blas, lapack

import blasx
from blasx import _errors as errors

from . import timing
from .timing import Row, Side

BATCHED = ("getrf", "getrs", "gesv", "potrf", "potrs", "posv", "geqrf", "syevd", "gesvd")
ORDERS = (2, 3, 4, 8, 16, 32, 64)
BATCHES = (1, 100, 10_000)
NUMBERS = 4_000_000  # the most that a stack has
LARGE = (200, 1000, 2000)
# NumPy and SciPy have an OpenBLAS each, whose threads wait busily for 20 ms after a product
PAUSING = partial(timing.cpu_clock, least_ms=20.0, pause=0.05)
THREADED = 32  # orders from which OpenBLAS has threads at work on one member


def rows(letters, quick, family):
    """The rows of the family; --quick takes doubles only, every second order, no large batches, and
    n up to 200."""
    letters = "d" if quick else letters
    for letter in letters:
        yield one(letter, 8)
    for routine in BATCHED:
        if not hasattr(blasx, routine + "_batched"):
            continue
        for letter in letters:
            for n in ORDERS[1::2] if quick else ORDERS:
                for batch in BATCHES[:2] if quick else BATCHES:
                    yield batched(routine, letter, n, min(batch, NUMBERS // n**2))
    for n in LARGE[:1] if quick else LARGE:
        for letter in letters:
            yield gemm(letter, n)
            yield one(letter, n)


def matrices(letter, *shape, definite=False):
    """Normal random matrices; `definite`: X X^H / n + I."""
    dtype = np.dtype({"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter])
    random = np.random.default_rng(shape[-1])
    a = random.standard_normal(shape)
    a = (a + 1j * random.standard_normal(shape) if letter in "cz" else a).astype(dtype)
    if definite:
        a = a @ a.conj().swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1], dtype=dtype)
    return a


def one(letter, n):
    """getrf of one matrix by columns."""
    a = np.asfortranarray(matrices(letter, n, n))
    name = letter + "getrf"

    def side(module):
        return Side(lambda: (a,), getattr(module, name), lambda r: r[:2])

    return Row("getrf", letter, f"{n}x{n}", {"one call": partial(side, blasx)},
               {"SciPy": partial(side, lapack)}, lambda r: errors.lu(a, *r), PAUSING)


def gemm(letter, n):
    """C = A B of matrices by columns."""
    a = np.asfortranarray(matrices(letter, n, n))
    b = np.asfortranarray(matrices(letter, n, n) + 1)
    name = letter + "gemm"

    def side(run):
        return Side(lambda: (a, b), run)

    return Row("gemm", letter, f"{n}x{n}x{n}",
               {"one call": lambda: side(partial(getattr(blasx, name), 1.0))},
               {"SciPy": lambda: side(partial(getattr(blas, name), 1.0)),
                "NumPy": lambda: side(np.matmul)},
               lambda c: errors.product(a, b, c, a), PAUSING)


def batched(routine, letter, n, batch):
    """The batched names beside NumPy's function of a stack and a loop over SciPy's routine."""
    a = matrices(letter, batch, n, n, definite=routine[:2] == "po")
    if routine == "syevd":
        a = a + a.conj().transpose(0, 2, 1)
    b = matrices(letter, batch, n, 1)
    make = partial(Side, answer=ANSWER[routine])
    given = operands(routine, a, b)
    base = {"syevd": "heevd"}.get(routine, routine) if letter in "cz" else routine
    ours = getattr(blasx, f"{letter}{base}_batched")
    theirs = getattr(lapack, letter + {"gesvd": "gesdd"}.get(base, base))
    flags = (1,) if routine[:2] == "po" else ()
    clean = (0,) if routine == "potrf" else ()  # leave the other triangle, as the batched name does

    def loop(*stacks):
        return [theirs(*members, *flags, *clean) for members in zip(*stacks, strict=True)]

    peers = {"SciPy loop": lambda: make(lambda: given, loop,
                                        answer=lambda r: ANSWER[routine](stacked(r)))}
    if routine in NUMPY:
        peers["NumPy"] = lambda: Side(lambda: (a, b)[:2 if routine in ("gesv", "posv") else 1],
                                      *NUMPY[routine])
    return Row(routine + "_batched", letter, f"{batch}x{n}x{n}",
               {"stack": lambda: make(lambda: given, lambda *x: ours(*x, *flags))}, peers,
               partial(CHECK.get(routine, solved), a, b),
               timing.cpu_clock if n < THREADED else PAUSING)


def turned(r):
    return r[0].swapaxes(1, 2)


NUMPY = {"gesv": (np.linalg.solve,), "posv": (np.linalg.solve,), "potrf": (np.linalg.cholesky,),
         "geqrf": (partial(np.linalg.qr, mode="raw"), turned), "syevd": (np.linalg.eigh,),
         "gesvd": (np.linalg.svd,)}
ANSWER = {"getrf": lambda r: r[:2], "potrf": lambda r: r[0], "gesv": lambda r: r[2],
          "posv": lambda r: r[1], "getrs": lambda r: r[0], "potrs": lambda r: r[0],
          "geqrf": lambda r: r[0], "syevd": lambda r: r[:2], "gesvd": lambda r: r[:3]}
CHECK = {"getrf": lambda a, b, r: errors.lu(a, *r), "potrf": lambda a, b, c: errors.cholesky(a, c),
         "geqrf": lambda a, b, r: errors.triangular_of_qr(a, r),
         "syevd": lambda a, b, r: errors.eigen(a, r[0][:, None], r[1]),
         "gesvd": lambda a, b, r: errors.singular(a, r[0], r[1][:, None], r[2])}


def solved(a, b, x):
    return errors.solution(a, b, x)


def operands(routine, a, b):
    """What the routine takes before its flags."""
    if routine == "getrs":
        return *blasx.getrf_batched(a)[:2], b
    if routine == "potrs":
        return blasx.potrf_batched(a, 1)[0], b
    return (a,) if routine[2:] in ("trf", "qrf", "evd", "svd") else (a, b)


def stacked(results):
    return [np.stack(x) for x in zip(*results, strict=True)]
