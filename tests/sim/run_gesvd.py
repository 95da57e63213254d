"""Singular vectors of a batch on a simulated GPU, by its own routines, for a process that has the
sanitizers: Jacobi of A times the eigenvectors of A^H A, and the polar factor.

    python -m tests.sim.run_gesvd FOLDER
"""

import sys
from pathlib import Path

import numpy as np

from .gpu import Array, install
from .run_gesdd import is_svd, some_of_every_kind


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    import blasx
    from blasx._tuned import table, using
    from blasx._types import TYPES
    rng = np.random.default_rng(0)

    def by_jacobi(letter):
        """The first row that ships of those that take A V."""
        return next(r for r in table(90)["gesvd_vectors"][letter] if r.get("gram"))

    def by_tiles(letter):
        return next(r for r in table(90)["gesvd_vectors"][letter] if r.get("TILED"))

    for letter, way, (m, n), full in (("d", by_jacobi("d"), (18, 18), 1),
                                      ("d", by_jacobi("d"), (18, 15), 0),
                                      ("z", by_jacobi("z"), (16, 17), 1),
                                      ("s", by_jacobi("s"), (25, 25), 0),
                                      ("s", by_tiles("s"), (25, 25), 0),
                                      ("c", by_jacobi("c"), (20, 20), 0),  # V by reflectors
                                      ("z", by_tiles("z"), (33, 20), 1),
                                      ("d", None, (18, 18), 1), ("s", None, (17, 18), 0)):
        a = some_of_every_kind(rng, TYPES[letter], m, n)
        a[4] = a[4][:, rng.permutation(n)]
        given = Array(a.shape, a.dtype)
        given[...] = a
        routine = getattr(blasx, letter + "gesvd_batched")
        with using(letter, gesvd_vectors=way):
            u, s, vt, info = (np.array(x) for x in routine(given, 1, full))
        assert info.tolist() == [0, 0, 0, 1, 0, 0, 0]
        assert np.isnan(u[3]).all() and np.isnan(s[3]).all() and np.isnan(vt[3]).all()
        for i in (0, 1, 2, 4, 5, 6):
            is_svd(a[i], u[i], s[i], vt[i])
            with using(letter, gesvd_vectors=way):
                alone = routine(given[i:i + 1], 1, full)
            assert all((np.array(x)[0] == y[i]).all() for x, y in zip(alone, (u, s, vt)))
        if letter in "sc" and way:  # columns of 1 ... 1e-12 lose no digits
            right = np.linalg.svd(a[4].astype(complex), compute_uv=False)
            assert abs(s[4] / right - 1).max() < {"s": 1e-3, "c": 5e-6}[letter]
        assert ("gesvd_vectors" in kernels.launched) == (way is not None)
        assert ("gram_level" in kernels.launched) == bool(way and way.get("gram"))
        kernels.launched.clear()
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
