"""Members of different sizes on the GPU: gesv, potrf, geqrf and syevd (with vectors) of 1000
matrices of random order up to 256, and one of order 512 beside a thousand of order 16.

Peers: a Python loop over cupy.linalg; a batch of equal members with the same operations
(`equal flops`); and of the two orders each alone (`the 512`, `the 16s`). They do not give our
answer: their errors are those of their own members.
"""

from functools import partial

import numpy as np

from blasx import _errors as errors

from . import timing
from .timing import Row, Side

ROUTINES = ("gesv", "potrf", "geqrf", "syevd")


def rows(letters, quick, family):
    """The rows of the family."""
    timing.gpu()
    random = np.random.default_rng(256).integers(1, 257, 100 if quick else 1000)
    for routine in ROUTINES:
        for letter in letters:
            yield row(routine, letter, "1..256", random)
            yield row(routine, letter, "512 and 16s", np.array([512] + [16] * 1000))


def row(routine, letter, name, orders):
    given = problem(routine, letter, orders)
    parts = ({"the 512": orders[:1], "the 16s": orders[1:]} if name != "1..256" else {})
    equal = int(round(float((orders**3.0).mean()) ** (1 / 3)))
    peers = {"cupy loop": partial(loop_side, routine, given)}
    peers["equal flops"] = partial(equal_side, routine, letter, equal, len(orders))
    for part, members in parts.items():
        peers[part] = partial(blasx_side, routine, letter, problem(routine, letter, members))
    nbytes = 2 * sum(a.nbytes for a, _ in given)
    return Row(routine + "_vbatched", letter, f"{len(orders)}x{name}",
               {"blasx": partial(blasx_side, routine, letter, given)}, peers,
               partial(worst, routine), timing.gpu_clock(nbytes), floor_bytes=nbytes)


def problem(routine, letter, orders):
    """[(A, B)], A definite or Hermitian where the routine wants it, B with one column."""
    cupy = timing.gpu()
    dtype = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter]
    random = cupy.random.RandomState(7)

    def normal(*shape):
        x = random.standard_normal(shape)
        return (x + 1j * random.standard_normal(shape) if letter in "cz" else x).astype(dtype)

    members = []
    for n in map(int, orders):
        a, b = normal(n, n), normal(n, 1)
        if routine == "potrf":
            a = a @ a.conj().T / n + cupy.eye(n, dtype=dtype)
        elif routine == "syevd":
            a = a + a.conj().T
        members.append((a, b))
    return members


def worst(routine, answer):
    """The largest error of some members of an answer, (A, B, result) each."""
    check = {"gesv": lambda a, b, x: errors.solution(a[None], b[None], x[None]),
             "potrf": lambda a, b, c: errors.cholesky(a[None], c[None]),
             "geqrf": lambda a, b, qr: errors.triangular_of_qr(a[None], qr[None]),
             "syevd": lambda a, b, found: errors.eigen(a, *found)}[routine]
    return max(check(*member) for member in answer[::max(1, len(answer) // 20)])


def blasx_side(routine, letter, given):
    import blasx
    a, b = (blasx.Ragged.pack([member[k] for member in given]) for k in (0, 1))
    return Side(lambda: (copied(a), copied(b)), calling(letter, routine, "_vbatched"),
                partial(answer, routine, given))


def calling(letter, routine, suffix):
    """What is timed, of (A, B)."""
    import blasx
    name = "heevd" if routine == "syevd" and letter in "cz" else routine
    run = getattr(blasx, letter + name + suffix)
    return {"gesv": lambda a, b: run(a, b)[2], "potrf": lambda a, b: run(a, 1)[0],
            "geqrf": lambda a, b: run(a)[0], "syevd": lambda a, b: run(a)[:2]}[routine]


def answer(routine, given, r):
    """(A, B, result) of every member."""
    return [(*x, y) for x, y in zip(given, zip(*r) if routine == "syevd" else r)]


def copied(r):
    import blasx
    return blasx.Ragged(r.data.copy(), r.shapes, r.offsets)


def loop_side(routine, given):
    """cupy.linalg, one member after the other."""
    import cupy
    one = {"gesv": cupy.linalg.solve, "potrf": lambda a, b: cupy.linalg.cholesky(a),
           "geqrf": lambda a, b: cupy.linalg.qr(a, mode="r"),
           "syevd": lambda a, b: cupy.linalg.eigh(a)}[routine]
    return Side(lambda: ([(a.copy(), b.copy()) for a, b in given],),
                lambda members: [one(*member) for member in members],
                lambda r: [(*x, y) for x, y in zip(given, r)])


def equal_side(routine, letter, n, batch):
    """The same operations in a batch of equal members."""
    import cupy

    given = problem(routine, letter, [n] * batch)
    a, b = (cupy.stack([member[k] for member in given]) for k in (0, 1))
    return Side(lambda: (a.copy(), b.copy()), calling(letter, routine, "_batched"),
                partial(answer, routine, given))
