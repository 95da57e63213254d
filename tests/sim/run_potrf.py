"""The driver of kernels/potrf_panel.cu on a GPU that is simulated; for a process that has the
sanitizers:  python -m tests.sim.run_potrf FOLDER

Both triangles, views, orders that are and are not whole panels, numbers of all sizes, and what is
not positive definite in a later panel. Products of single precision by pairs are a model in NumPy,
of those of double precision by remainders the sums of bytes are.
"""

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from tests.cublas_on_cpu import call

from .gpu import Array, install
from .run_crt import JOIN, PRODUCT, SPLITS, products

PANEL = {"TILES": 2, "WARPS": 2, "WR": 1, "GROUPS": 1, "DEPTH": 1, "STAGES": 3, "BLOCKS": 1,
         "TWOFOLD": 0}
WIDTH = {"s": 32, "d": 128}


def blas(name, *arguments):
    """cuBLAS's batched product is one product after the other."""
    if not name.endswith("gemmStridedBatched"):
        return call(name, *arguments)
    item = {"S": 4, "D": 8, "C": 8, "Z": 16}[name[0]]
    ta, tb, m, n, k, alpha, a, lda, next_a, b, ldb, next_b, beta, c, ldc, next_c, count = arguments
    for i in range(count):
        call(name[0] + "gemm", ta, tb, m, n, k, alpha, a + i * next_a * item, lda,
             b + i * next_b * item, ldb, beta, c + i * next_c * item, ldc)


class Lines:
    """What `split` makes, not split."""

    def __init__(self, x):
        self.x = np.array(x)

    def part(self, first, last):
        return Lines(self.x[first:last])


def multiply_pairs(alpha, a, b, beta, c, half=0):
    assert c.strides[1] == c.itemsize
    m, n = c.shape
    wanted = (np.ones((m, n)), np.tri(m, n), np.tri(n, m).T)[half]
    c[...] = np.where(wanted, alpha * (a.x @ b.x.T) + (beta * c if beta else 0), c)


def problem(big, kernel, me, rng, n, lower, bad, graded=False, rest=0, clean=0):
    x = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if me.is_complex else 0)
    full = (x @ x.conj().T / n + np.eye(n)).astype(me.dtype)
    sizes = 2.0 ** rng.integers(-400, 400, n) if graded else np.ones(n)
    full *= np.outer(sizes, sizes).astype(me.dtype)
    whole = Array((n + 3, n + 1), me.dtype, order="F")
    c = whole[2:n + 2, :n]
    whole[...] = np.nan
    half = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    np.copyto(c, full, where=half)
    wrong = 0
    if bad is not None:
        i, j, value = bad
        c[(i, j) if lower else (j, i)] = value
        wrong = i + 1
    with np.errstate(all="ignore"):
        info = int(big.potrf_by(me, c, lower, clean, kernel, WIDTH.get(me.letter, n), rest))
    assert info == wrong, (me.letter, n, lower, bad, info)
    frame = np.array(whole)
    frame[2:n + 2, :n] = np.nan
    other = np.asarray(c)[~half]
    assert np.isnan(frame).all() and ((other == 0) if clean else np.isnan(other)).all()
    if bad is None:
        factor = np.where(half, np.asarray(c), 0)
        factor = (factor if lower else factor.conj().T) / sizes[:, None]
        exact = full / np.outer(sizes, sizes)
        error = abs(factor @ factor.conj().T - exact).max() / abs(exact).max()
        assert error < 3 * n**0.5 * np.finfo(me.dtype).eps, (me.letter, n, lower, error)


def no_memory(big, kernel, me, n):
    """The matrix is as it was where memory is short, whenever it is asked for."""
    import cupy
    alloc, empty = cupy.cuda.alloc, cupy.empty
    cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    for asked in range(1, {"s": 3, "d": 4}[me.letter]):  # of a pool, which has it later, too
        left = [asked]

        def short(ask):
            def asks(*of, **how):
                left[0] -= 1
                if not left[0]:
                    raise MemoryError
                return ask(*of, **how)
            return asks

        c = Array((n, n), me.dtype, order="F")
        c[...] = np.eye(n)
        c[1, 0] = 0.5
        before = np.array(c)
        with (mock.patch.object(cupy.cuda, "alloc", short(alloc)),
              mock.patch.object(cupy, "empty", short(empty), create=True)):
            info = big.potrf_by(me, c, 1, 1, kernel, WIDTH[me.letter])
        assert info is None and np.array_equal(c, before), asked


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    from blasx import _tuned
    from blasx._kernel import kernel_of
    from blasx._routine import Typed
    from blasx.large import cholesky as big
    rng = np.random.default_rng(0)
    nan, inf = np.nan, np.inf
    with (mock.patch.object(big, "split", lambda x: [Lines(x)]),
          mock.patch.object(big, "multiply_pairs", multiply_pairs), products(kernels),
          _tuned.using("d", gemm_crt=PRODUCT, crt_split=SPLITS[0] | {"fewer": 1}, crt_join=JOIN)):
        for letter, orders in (("s", (5, 32, 64, 75, 133)), ("d", (100, 128, 261, 300)),
                               ("z", (75,))):
            me = Typed(letter + "potrf", letter)
            kernel = kernel_of("potrf_panel", letter, **PANEL | {"TWOFOLD": int(letter == "s")})
            for lower in (0, 1):
                for n in orders:
                    for rest in (0, n - 20) if letter in WIDTH else (0,):
                        problem(big, kernel, me, rng, n, lower, None, rest=rest,
                                clean=(n + lower) % 2)
                n, last = orders[-1], orders[-1] - 20
                for bad in ((last, last, -1), (last, last, nan), (last, last, 0), (last, 3, 1e9),
                            (last, 3, nan), (last, 3, -inf), (last, 3, 2 * 1.5), (last, 3, 1e200)):
                    if letter == "d" or abs(bad[2]) < 1e20:
                        problem(big, kernel, me, rng, n, lower, bad, rest=lower * 40,
                                clean=lower)
        for letter in "sd":
            no_memory(big, kernel_of("potrf_panel", letter, **PANEL),
                      Typed(letter + "potrf", letter), 300)
        problem(big, kernel_of("potrf_panel", "d", **PANEL), Typed("dpotrf", "d"), rng, 261, 1,
                None, True)
    assert set(kernels.launched) == {"potrf_panel", "crt_split", "crt_join"}
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
