"""The driver of kernels/potrf_panel.cu on a GPU that is simulated, cuBLAS answered by the CPU's
BLAS; for a process that has the sanitizers:  python -m tests.sim.run_potrf FOLDER

Both triangles, views, orders that are and are not whole panels, and what is not positive definite
in a later panel. Products of single precision by pairs are a model in NumPy.
"""

import sys
from pathlib import Path
from unittest import mock

import numpy as np

from tests.cublas_on_cpu import call

from .gpu import Array, install

PANEL = {"TILES": 2, "WARPS": 2, "WR": 1, "GROUPS": 1, "DEPTH": 1, "STAGES": 3, "BLOCKS": 1}
WIDTH = 32


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


def multiply_pairs(alpha, a, b, beta, c):
    assert c.strides[1] == c.itemsize
    c[...] = alpha * (a.x @ b.x.T) + (beta * c if beta else 0)


def problem(big, kernel, me, rng, n, lower, bad):
    x = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if me.is_complex else 0)
    full = (x @ x.conj().T / n + np.eye(n)).astype(me.dtype)
    whole = Array((n + 3, n + 1), me.dtype, order="F")
    c = whole[2:n + 2, :n]
    whole[...] = np.nan
    half = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    np.copyto(c, full, where=half)
    if bad is not None:
        c[bad, bad] = -1
    info = int(big.potrf_by(me, c, lower, kernel, WIDTH))
    assert info == (0 if bad is None else bad + 1), (me.letter, n, lower, bad, info)
    assert np.isnan(np.asarray(whole)[:2]).all() and np.isnan(np.asarray(c)[~half]).all()
    if bad is None:
        factor = np.where(half, np.asarray(c), 0)
        factor = factor if lower else factor.conj().T
        error = abs(factor @ factor.conj().T - full).max() / abs(full).max()
        assert error < 3 * n**0.5 * np.finfo(me.dtype).eps, (me.letter, n, lower, error)


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    from blasx import _cuda
    from blasx._kernel import kernel_of
    from blasx._routine import Typed
    from blasx.large import cholesky as big
    rng = np.random.default_rng(0)
    with (mock.patch.object(_cuda, "blas", blas),
          mock.patch.object(big, "split", lambda x: [Lines(x)]),
          mock.patch.object(big, "multiply_pairs", multiply_pairs),
          mock.patch.object(big, "by_pairs", lambda m, n, k, is_complex, device: min(m, n) > 8)):
        for letter in "sz":
            me = Typed(letter + "potrf", letter)
            kernel = kernel_of("potrf_panel", letter, **PANEL)
            for n, bad in ((5, None), (32, 31), (64, None), (75, None), (133, None), (75, 40)):
                for lower in (0, 1):
                    problem(big, kernel, me, rng, n, lower, bad)
    assert set(kernels.launched) == {"potrf_panel"}
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
