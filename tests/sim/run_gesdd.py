"""Singular vectors by the polar factor of one matrix on a GPU that is simulated, the routines of
which it is made answered by the CPU; for a process that has the sanitizers:

    python -m tests.sim.run_gesdd FOLDER
"""

import sys
from pathlib import Path
from unittest import mock

import numpy as np

from .gpu import Array, install


def some_of_every_kind(rng, t, m, n):
    """Random, zero, rank one, nan, graded, of low rank, triangular."""
    a = rng.standard_normal((7, m, n)) + t.is_complex * 1j * rng.standard_normal((7, m, n))
    a[1], a[2] = 0, 1
    a[4] *= 10.0 ** (-np.arange(n) / 2)
    a[5] = a[5, :, :3] @ a[5, :3]
    a[6] = np.triu(a[6])
    a = (a if t.is_complex else a.real).astype(t.dtype)
    a[3, 0, 0] = np.nan
    return a


def is_svd(a, u, s, vt):
    bound = 30 * max(a.shape) * np.finfo(a.dtype).eps
    right = np.linalg.svd(a.astype(complex), compute_uv=False)
    k, size = min(a.shape), max(right[0], 1e-30)
    assert (np.diff(s) <= 0).all() and np.abs(s - right).max() <= bound * size
    assert np.abs(u[:, :k] * s @ vt[:k] - a).max() <= bound * size
    for q in (u, vt.conj().T):
        assert np.abs(q.conj().T @ q - np.eye(q.shape[1])).max() <= bound


def by_the_cpu(f):
    """A routine of CuPy arrays: the CPU's."""
    def back(x):
        y = Array(x.shape, x.dtype, order="F")
        y[...] = x
        return y

    def run(*of, overwrite_a=0, overwrite_b=0, overwrite_c=0, **how):
        of = [np.array(x) if isinstance(x, Array) else x for x in of]
        with np.errstate(all="ignore"):
            found = f(*of, **how)
        return tuple(map(back, map(np.asarray, found))) if type(found) is tuple else back(found)

    return run


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    import blasx
    from blasx._tuned import using
    from blasx._types import TYPES
    from blasx.batched import _gpu_svd
    from blasx.large import svd
    rng = np.random.default_rng(0)
    names = "gemm trsm potrf syevd heevd geqrf ormqr unmqr".split()
    answers = {name: by_the_cpu(getattr(svd, name)) for name in names}
    for letter, (m, n), full in (("s", (20, 20), 1), ("d", (20, 20), 1), ("d", (17, 12), 0),
                                 ("d", (17, 12), 1), ("z", (12, 17), 1), ("c", (9, 14), 0)):
        gesdd = getattr(blasx, letter + "gesdd")
        for i, a in enumerate(some_of_every_kind(rng, TYPES[letter], m, n)):
            given = Array((m, n), a.dtype, order="F")
            given[...] = a
            with (using(letter, gesdd_polar=dict(POLAR=1)),
                  mock.patch.multiple(svd, **answers)):
                u, s, vt, info = (np.array(x) for x in gesdd(given, 1, full))
            assert info == (i == 3) and (given == a).all() == (i != 3)
            k = min(m, n)
            assert u.shape == (m, m if full else k) and vt.shape == (n if full else k, n)
            if i == 3:
                assert all(np.isnan(x).any() for x in (u, s, vt))
            else:
                is_svd(a, u, s, vt)
    assert set(kernels.launched) == {"lascl_batched"}
    for real, bound in (("f", np.finfo("f").eps), ("d", 1e-5)):  # r eps of the largest weight
        steps = _gpu_svd._weights(1024, float(np.finfo(real).eps), _gpu_svd.LEAST[real])
        assert max(r for *_, r in steps) * _gpu_svd.EPS < bound
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
