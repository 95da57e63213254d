"""geqp3 of one matrix on a simulated GPU, products by the CPU's BLAS:

    python -m tests.sim.run_geqp3 FOLDER LETTER
"""

import os
import sys

import numpy as np
from scipy.linalg import lapack

from . import gpu
from .run_qr import check_factors

VALUES = ((dict(WARPS=8, NB=8, EACH=1, COLUMNS=2, TALL=2),
           ((24, 24), (13, 30), (1, 9), (9, 1), (300, 11))),
          (dict(WARPS=8, NB=16, EACH=2, COLUMNS=2, TALL=1),
           ((40, 20), (13, 30), (300, 9))))


def matrices(rng, dtype, m, n, strange):
    """(matrix, whether its pivots are those of LAPACK)."""
    a = rng.standard_normal((m, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((m, n))
    a, order = a.astype(dtype), min(m, n)
    yield a, True
    if not strange:
        return
    rank, single = a[:, :5] @ a[:5], dtype.char in "fF"
    yield rank, False
    rest = a[:, ::-1] * np.linspace(1, 9, n)  # which the norms of the others hide
    yield (rank + (1e-3 if single else 1e-9) * rest).astype(dtype), not single
    steep = a * np.logspace(0, -6 if single else -12, n).astype(dtype)
    yield np.asfortranarray(steep[:, rng.permutation(n)]), True
    yield np.zeros_like(a), True
    ties = np.zeros_like(a)
    ties[range(order), range(order)] = 2
    yield ties, True
    small = np.finfo(dtype).tiny
    yield a * small * 16, False
    yield a * (np.finfo(dtype).max / 64), True
    lost = a.copy()
    lost[3, 7] = np.nan
    yield lost, False


def main(folder, letter):
    kernels = gpu.install(folder)
    import cupy

    import blasx
    from blasx import _cuda, _tuned
    from tests import cublas_on_cpu
    _cuda.blas = cublas_on_cpu.call
    geqp3, rng = getattr(blasx, letter + "geqp3"), np.random.default_rng(3)
    for values, shapes in VALUES:
        with _tuned.using(letter, geqp3_panel=values):
            for m, n in shapes:
                for a, same in matrices(rng, np.dtype(geqp3.dtype), m, n,
                                        (m, n) in ((24, 24), (40, 20))):
                    outputs = []
                    for _ in range(2):  # another schedule at every launch
                        room = cupy.array(np.full((m + 3, n + 2), 7, a.dtype, "F"))
                        view = room[2:-1, 1:-1]
                        view[...] = a
                        qr, jpvt, tau, _, info = geqp3(view, overwrite_a=1)
                        assert qr is view and int(info) == 0
                        frame = np.array(room)
                        frame[2:-1, 1:-1] = 7
                        assert (frame == 7).all()
                        outputs.append([np.array(x) for x in (qr, tau, jpvt)])
                    assert all(np.array_equal(*x, equal_nan=x[0].dtype.kind in "fc")
                               for x in zip(*outputs))
                    check(letter, a, *outputs[0], same)
    assert set(kernels.launched) == {"geqp3_panel"}
    print("ok", letter)


def check(letter, a, qr, tau, jpvt, same):
    """The factors of A P, whose diagonal falls; LAPACK's pivots."""
    assert sorted(jpvt) == list(range(1, a.shape[1] + 1))
    if not np.isfinite(a).all():
        assert not np.isfinite(qr).all()
        return
    with np.errstate(all="ignore"):
        check_factors(letter, a[:, jpvt - 1], qr, tau, signs=False)
    d, eps = abs(qr.diagonal()), np.finfo(a.dtype).eps
    assert (d[1:] <= d[:-1] * (1 + 50 * eps) + 50 * eps * d[:1]).all(), d
    if same:
        right = getattr(lapack, letter + "geqp3")(a)
        assert np.array_equal(jpvt, right[1]), (a.shape, jpvt, right[1])
        assert np.allclose(abs(d), abs(right[0].diagonal()), rtol=1e3 * eps, atol=1e3 * eps * d[0])


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_geqp3", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
