"""The CPU: what a call costs, batches beside NumPy's stacks and loops over SciPy, large n."""

from functools import partial

import numpy as np
from scipy.linalg import blas, lapack

import blasx

from . import errors, timing
from .timing import Row, Side

BATCHED = ("getrf", "getrs", "gesv", "potrf", "potrs", "posv")
SIZES = {2: 20_000, 4: 20_000, 8: 10_000, 16: 5_000, 32: 2_000}
LARGE = (200, 1000, 2000)


def rows(letters, quick, family):
    """The rows of the family; --quick takes doubles only, smaller batches, and n up to 200."""
    letters = "d" if quick else letters
    for letter in letters:
        yield one(letter, 8)
    for routine in BATCHED:
        for letter in letters:
            for n, batch in SIZES.items():
                yield batched(routine, letter, n, batch // 20 if quick else batch)
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
               {"SciPy": partial(side, lapack)}, lambda r: errors.lu(a, *r), timing.cpu_clock)


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
               lambda c: errors.product(a, b, c, a), timing.cpu_clock)


def batched(routine, letter, n, batch):
    """The batched names beside NumPy's function of a stack and a loop over SciPy's routine."""
    a = matrices(letter, batch, n, n, definite=routine[:2] == "po")
    b = matrices(letter, batch, n, 1)
    make = partial(Side, answer=ANSWER[routine])
    given = operands(routine, a, b)
    ours = getattr(blasx, f"{letter}{routine}_batched")
    theirs = getattr(lapack, letter + routine)
    flags = {"getrf": (), "gesv": (), "getrs": ()}.get(routine, (1,))
    clean = (0,) if routine == "potrf" else ()  # leave the other triangle, as the batched name does

    def loop(*stacks):
        return [theirs(*members, *flags, *clean) for members in zip(*stacks, strict=True)]

    peers = {"SciPy loop": lambda: make(lambda: given, loop,
                                        answer=lambda r: ANSWER[routine](stacked(r)))}
    if routine == "potrf":
        peers["NumPy"] = lambda: Side(lambda: (a,), np.linalg.cholesky)
    elif routine in ("gesv", "posv"):
        peers["NumPy"] = lambda: Side(lambda: (a, b), np.linalg.solve)
    check = {"getrf": lambda r: errors.lu(a, *r), "potrf": lambda c: errors.cholesky(a, c)}
    return Row(routine + "_batched", letter, f"{batch}x{n}x{n}",
               {"stack": lambda: make(lambda: given, lambda *x: ours(*x, *flags))}, peers,
               check.get(routine, lambda x: errors.solution(a, b, x)), timing.cpu_clock)


ANSWER = {"getrf": lambda r: r[:2], "potrf": lambda r: r[0], "gesv": lambda r: r[2],
          "posv": lambda r: r[1], "getrs": lambda r: r[0], "potrs": lambda r: r[0]}


def operands(routine, a, b):
    """What the routine takes before its flags."""
    if routine == "getrs":
        return *blasx.getrf_batched(a)[:2], b
    if routine == "potrs":
        return blasx.potrf_batched(a, 1)[0], b
    return (a,) if routine.endswith("trf") else (a, b)


def stacked(results):
    return [np.stack(x) for x in zip(*results, strict=True)]
