"""hetrf, hetrs and hesv, and their symmetric relatives, on a simulated GPU, products by the CPU's
BLAS:

    python -m tests.sim.run_hetrf FOLDER LETTER
"""

import os
import sys
from types import SimpleNamespace

import numpy as np
from scipy.linalg import lapack

from testing.indefinite_checks import factored

from . import gpu
from .run_qr import random

VALUES = dict(hetrf_undo=dict(WARPS=1), hetrs_rows=dict(WARPS=1), hetrs_diagonal=dict(WARPS=1))
PANELS = ((dict(WARPS=2, NB=4, TALL=1), (45, 13, 4, 2, 1)),
          (dict(WARPS=4, NB=40, TALL=1), (95,)))


def matrices(rng, dtype, n, turn, strange):
    """(matrix, whether its pivots are LAPACK's, whether it can be solved with)."""
    a = random(rng, dtype, n, n)
    a = a + turn(a)
    yield a, True, True
    if not strange:
        return
    steps = 5 * np.diag(np.arange(n) % 3)
    yield (a - 3 * np.diag(np.diag(a)) + steps).astype(dtype), True, True
    zero = a - np.diag(np.diag(a))  # all blocks of order 2
    yield zero.astype(dtype), True, True
    yield np.zeros_like(a), True, False
    yield np.fliplr(np.eye(n, dtype=dtype)), True, True
    yield (a * np.finfo(dtype).tiny * 16).astype(dtype), False, False
    yield a * (np.finfo(dtype).max / 2**20), True, True
    singular = a.copy()
    singular[n // 2] = singular[:, n // 2] = 0
    yield singular, True, False
    strange = a.copy()
    strange[n // 2, n // 3] = strange[n // 3, n // 2] = np.nan
    yield strange, False, False


def main(folder, letter):
    kernels = gpu.install(folder)
    import cupy

    import blasx
    from blasx import _cuda, _tuned
    from blasx.large import indefinite
    from tests import cublas_on_cpu
    _cuda.blas = cublas_on_cpu.call
    eps, rng = np.finfo(blasx._types.TYPES[letter].dtype).eps, np.random.default_rng(3)
    for kind in ("he", "sy") if letter in "cz" else ("sy",):
        trf, trs, sv = (getattr(blasx, letter + kind + x) for x in ("trf", "trs", "sv"))
        turn = (lambda x: x.T.conj()) if kind == "he" else np.transpose
        for panel, orders in PANELS:
            with _tuned.using(letter, hetrf_panel=panel, **VALUES):
                for n in orders:
                    for a, same, solved in matrices(rng, np.dtype(trf.dtype), n, turn,
                                                    n == 45):
                        for lower in (0, 1):
                            check(cupy, trf, trs, sv, a, lower, same, solved, eps, kind)
    assert set(kernels.launched) == {"hetrf_panel", *VALUES} and indefinite.MEETINGS == 3
    print("ok", letter)


def check(cupy, trf, trs, sv, a, lower, same, solved, eps, kind):
    n, rng = len(a), np.random.default_rng(1)
    other = np.triu(np.ones((n, n), bool), 1) if lower else np.tril(np.ones((n, n), bool), -1)
    stored = np.where(other, 7, a).astype(a.dtype)
    outputs = []
    for _ in range(2):  # another schedule at every launch
        room = cupy.array(np.full((n + 3, n + 2), 7, a.dtype, "F"))
        view = room[2:-1, 1:-1]
        view[...] = stored
        ldu, ipiv, info = trf(view, lower, overwrite_a=1)
        frame = np.array(room)
        assert ldu is view, (n, lower)
        assert (frame[2:-1, 1:-1][other] == 7).all()
        frame[2:-1, 1:-1] = 7
        assert (frame == 7).all()
        outputs.append([np.array(x) for x in (ldu, ipiv, info)])
    assert all(np.array_equal(*x, equal_nan=x[0].dtype.kind in "fc") for x in zip(*outputs))
    ldu, ipiv, info = outputs[0]
    if not np.isfinite(a).all():
        return
    p = SimpleNamespace(uplo="UL"[lower], A=a, n=n, stored=stored)
    found = factored(p, ldu, ipiv, info, kind == "he")
    assert found.pop("|A-LDL^H|/(N*|A|)") < 30 * eps, (n, lower)
    assert all(found.values()), (found, n, lower, info)
    right = getattr(lapack, trf.__name__)(stored, lower)
    if same:
        assert np.array_equal(ipiv, right[1]), (ipiv, right[1])
        assert info == right[2]
    if not solved:
        return
    b = random(rng, a.dtype, n, 3)
    steps = cupy.array(np.repeat(ipiv.astype("i8"), 2))[::2]
    x, _ = trs(cupy.array(ldu), steps, cupy.array(b), lower)
    # whatever ipiv says, nothing outside the matrix is read or written
    wrong = np.where(rng.random(n) < 0.5, ipiv, rng.choice([0, -1, 2**31 - 1, -(2**31)], n))
    trs(cupy.array(ldu), cupy.array(wrong.astype("i4")), cupy.array(b), lower)
    answer = sv(cupy.array(stored), cupy.array(b), lower=lower)
    scale = max(1, np.linalg.cond(a.astype("D")))
    wide = a.astype("D") / abs(a).max()
    for y in (x, answer[2]):
        y = np.array(y).astype("D") * abs(a).max()
        assert abs(wide @ y - b).max() < 100 * n * eps * min(scale, 1e3) * abs(y).max()
    assert int(answer[3]) == 0 and np.array_equal(answer[1], ipiv)


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_hetrf", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
