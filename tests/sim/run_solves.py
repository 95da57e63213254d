"""trsv_blocks, permutation and lag2s on a GPU that is simulated; for a process that has the
sanitizers:

    python -m tests.sim.run_solves FOLDER

Both triangles, all transposes, with and without a unit diagonal, one and several right-hand sides;
and by the factors of an LU.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy.linalg import lapack

from .gpu import Array, install


def solves(big, me, rng, n, nrhs):
    def random(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if me.is_complex else x

    t, x = (Array(shape, me.dtype, order="F") for shape in ((n + 1, n), (n, nrhs)))
    t = t[1:]
    t[...] = 0.05 * random(n, n) + np.diag(2 + rng.random(n))
    b = random(n, nrhs).astype(me.dtype)
    for lower, trans, unit in product((0, 1), (0, 1, 2), (0, 1)):
        x[...] = b
        big.solve(me, t, x, lower, trans, unit)
        a = np.asarray(np.tril(t) if lower else np.triu(t)).astype(complex)
        if unit:
            np.fill_diagonal(a, 1)
        a = (a, a.T, a.T.conj())[trans]
        error = abs(a @ np.asarray(x) - b).max() / (abs(a).sum(1).max() * abs(x).max())
        assert error < n * np.finfo(me.dtype).eps, (me.letter, n, nrhs, lower, trans, unit, error)


def closed(big, me, rng):
    """What is not wanted any more stays as it is."""
    t, x, state = Array((80, 80), me.dtype, order="F"), Array((80, 1), me.dtype), Array((), "i4")
    t[...], x[...], state[...] = 2 * np.eye(80), 3, 2
    big.solve(me, t, x, 1, 0, 0, state, -31)
    assert (x == 3).all()
    big.solve(me, t, x, 1, 0, 0, state, 2)
    assert (x == 1.5).all()


def factors(big, me, rng, n, nrhs):
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if me.is_complex else 0)
    a, b = a.astype(me.dtype), rng.standard_normal((n, nrhs)).astype(me.dtype)
    lu, pivots, _ = getattr(lapack, me.letter + "getrf")(a)
    t, x, piv = Array((n, n), me.dtype, order="F"), Array((n, nrhs), me.dtype, order="F"), Array(
        n, "i4")
    t[...], piv[...] = lu, pivots
    for trans in (0, 1, 2):
        x[...] = b
        big.getrs(me, t, big.permutation(piv, n), x, trans)
        wanted = getattr(lapack, me.letter + "getrs")(lu, pivots, b, trans)[0]
        error = abs(np.asarray(x) - wanted).max() / abs(wanted).max()
        assert error < 100 * n * np.finfo(me.dtype).eps, (me.letter, n, nrhs, trans, error)


def lowered(big, me, low, rng):
    """Of a view, each number rounded, and the norm, in several chunks and with some that do not
    fit; what is beside the view is not looked at."""
    for m, n in ((300, 137), (1, 1), (5, 300), (0, 3)):
        a = rng.standard_normal((m, n)) + (1j * rng.standard_normal((m, n)) if me.is_complex else 0)
        room = Array((m + 2, n), me.dtype, order="F")
        room[...], room[1:-1] = np.inf, a
        made, size = big.lag2s(me, low, room[1:-1])
        assert np.array_equal(made, a.astype(low.dtype))
        norm = abs(a).sum(axis=1).max() if m else 0
        assert abs(size - norm) <= 1e-15 * n * norm
        for bad in (1e39, -np.inf, np.nan)[:3 * (m > 1)]:
            room[3, n - 1] = bad
            assert not np.isfinite(big.lag2s(me, low, room[1:-1])[1])


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    from blasx._routine import Typed
    from blasx._tuned import using
    from blasx.large import triangular as big
    rng = np.random.default_rng(0)
    for letter, n, nrhs, sides in (
            ("s", 150, 1, 4), ("s", 129, 6, 4), ("d", 100, 2, 4), ("c", 70, 3, 2),
            ("z", 70, 3, 2)):
        me = Typed(letter + "trsv", letter)
        assert not big.serves(me, n, nrhs)  # cuSOLVER's is as fast
        with using(letter, trsv_blocks=dict(WARPS=8, SIDES=sides, upto=8)):
            assert big.serves(me, n, nrhs) and not big.serves(me, n, 9)
            solves(big, me, rng, n, nrhs)
            closed(big, me, rng)
            factors(big, me, rng, n, nrhs)
    piv, rows = Array(500, "i4"), np.arange(600)
    piv[...] = [rng.integers(i, 600) for i in range(500)]
    source = np.asarray(big.permutation(piv, 600))
    for k, p in enumerate(np.asarray(piv)):
        rows[[k, p]] = rows[[p, k]]
    assert np.array_equal(source, rows)
    for letter, low in ("ds", "zc"):
        lowered(big, Typed(letter + "gesv", letter), Typed(low + "gesv", low), rng)
    assert set(kernels.launched) == {"trsv_blocks", "permutation", "lag2s"}
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
