"""The teaching ladder's kernels: without a GPU under the sanitizers and compiled; with one, answers
of both through the launcher (-m gpu)."""

import json

import numpy as np
import pytest

from blasx import _errors, _ladder, _tuned
from blasx._types import TYPES
from tests.sim.process import under_sanitizers

every_letter = pytest.mark.parametrize("letter", "sdcz")
TILES = {  # small ones that reach every branch: BM BN TM TN, BK STAGES STEP AHEAD
    "s": ((32, 64, 16, 32), (8, 2, 1, 1)), "d": ((32, 32, 16, 16), (32, 3, 16, 1)),
    "c": ((32, 64, 16, 32), (16, 3, 1, 0)), "z": ((32, 32, 16, 16), (8, 2, 8, 0))}


@pytest.mark.parametrize(("kernel", "letter"), [
    ("gemm_naive", "c"), *(("gemm_tiled", letter) for letter in "sdcz")])
def test_runs_on_the_cpu(tmp_path, kernel, letter):
    """Under AddressSanitizer and UBSan, four schedules (tests/sim/run_ladder.py)."""
    from tests.sim import build, run_ladder
    (bm, bn, tm, tn), (deep, stages, step, ahead) = TILES[letter]
    values = dict(DIM_X=32, DIM_Y=2) if kernel == "gemm_naive" else dict(
        BM=bm, BN=bn, TM=tm, TN=tn, WARPS=bm // tm * (bn // tn), BK=deep, STAGES=stages,
        STEP=step, AHEAD=ahead, GROUP=2, BLOCKS=1)
    library = build.build(tmp_path, kernel, letter, values, entry=run_ladder.ENTRY)
    run = under_sanitizers("run_ladder", library, kernel, letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@every_letter
@pytest.mark.parametrize("kernel", _ladder.RUNGS)
def test_compiles_without_drift_or_spills(kernel, letter):
    """The largest on Hopper; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    key = resources.label(kernel, letter, _tuned.capitals(_tuned.table(90)[kernel][letter][-1]))
    found = resources.measure([key], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


LAUNCHES = """
import sys
import numpy as np
from tests.sim import gpu
kernels = gpu.install(sys.argv[1])
from blasx import _ladder
rng = np.random.default_rng(0)
for kernel, dtype in (("gemm_tiled", "d"), ("gemm_naive", "F")):
    for number, (trans_a, trans_b) in enumerate(((0, 0), (1, 2), (2, 0))):
        m, n, k = 37, 20, 41
        a, b, c = ((rng.standard_normal(x) + (1j * rng.standard_normal(x) if dtype == "F" else 0)
                    ).astype(dtype) for x in (((m, k), (k, m))[trans_a > 0],
                                              ((k, n), (n, k))[trans_b > 0], (m, n)))
        op = lambda x, trans: (x, x.T, x.T.conj())[trans]
        right = 2 * op(a, trans_a) @ op(b, trans_b) - 0.5 * c
        A, B, C = (gpu.copied(x, order="CF"[x is c and number % 2]) for x in (a, b, c))
        assert _ladder.multiply(kernel, 2, A, B, -0.5, C, trans_a, trans_b) is C
        error = abs(np.array(C) - right).max() / abs(right).max()
        assert error < 50 * np.finfo(dtype).eps, (kernel, number, error)
    assert set(kernels.launched) == {kernel}, kernels.launched
    kernels.launched.clear()
print("ok")
"""


def test_launches_on_a_simulated_gpu(simulated):
    """Transposes, and a C by columns, with the rows that ship (tests/sim/gpu.py)."""
    run = under_sanitizers(LAUNCHES, simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]


def test_numpy_arrays_are_the_cpus():
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape) for shape in ((4, 3), (4, 5), (3, 5)))
    right = 2 * a.T @ b - c
    assert _ladder.multiply("gemm_tiled", 2, a, b, -1, c, trans_a=1) is c
    assert np.allclose(c, right)


SHAPES = [*((n, n, n) for n in (1, 7, 16, 31, 32, 33, 64, 100, 127, 128, 129, 200, 255, 256, 300)),
          (1000, 1000, 1000), (1024, 1024, 1024), (1001, 999, 1003), (1, 1000, 500), (1000, 1, 500),
          (2000, 40, 8), (40, 2000, 1000)]


@pytest.mark.gpu
@every_letter
@pytest.mark.parametrize("kernel", _ladder.RUNGS)
def test_products(kernel, letter):
    """All shapes and transposes, layouts by turns, with beta and over nan without."""
    cupy = pytest.importorskip("cupy")
    t, rng = TYPES[letter], cupy.random.RandomState(0)

    def random(m, n, layout):
        x = rng.standard_normal((2 * m, 2 * n + 3))
        x = (x + 1j * x[::-1] if t.is_complex else x).astype(t.dtype)[::2, 3::2]
        return x if layout == 2 else cupy.array(x, order="CF"[layout])

    for number, (m, n, k) in enumerate(SHAPES):
        for trans_a, trans_b in ((i, j) for i in range(3) for j in range(3)):
            layouts = [(number + x) // 3**i % 3 for i, x in enumerate((trans_a, trans_b, 1))]
            a = random(*((k, m) if trans_a else (m, k)), layouts[0])
            b = random(*((n, k) if trans_b else (k, n)), layouts[1])
            c = random(m, n, layouts[2])
            beta = (0, 0.5)[number % 2]
            left, right = ((x, x.T, x.T.conj())[trans] for x, trans in ((a, trans_a), (b, trans_b)))
            old = c.copy()
            if not beta:
                c[...] = np.nan
            _ladder.multiply(kernel, 1.5, a, b, beta, c, trans_a, trans_b)
            if beta:  # the part of C that is the product alone
                c = (_errors.wide(c) - beta * _errors.wide(old)).astype(t.dtype)
            assert _errors.product(left, right, c / t.dtype.type(1.5), left) < _errors.PASS, (
                m, n, k, trans_a, trans_b)
