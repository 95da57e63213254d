"""The block LU's kernels without a GPU (as test_kernels.py), and its routines that have no Case."""

import json

import numpy as np
import pytest
from test_kernels import constants, every_letter, folder  # noqa: F401

import blasx
from blasx import _spaces, _tuned
from blasx._types import TYPES
from blasx.batched._block import lu_bytes, solve_bytes
from tests.sim.process import under_sanitizers

FACTOR, SOLVE = ("getrf_block", "getrf_nopiv"), ("getrs_block",)
ROOM = 232448 - 8192  # what a block of Hopper has, without what the kernels declare themselves


@pytest.mark.parametrize("kernel", FACTOR + SOLVE)
@every_letter
def test_rows_reach_every_order_and_fit(kernel, letter):
    rows, dtype = _tuned.table(90)[kernel][letter], TYPES[letter].dtype
    assert rows[-1]["to"] == _spaces.MOST
    for row in rows:
        n = row["to"]
        if kernel in FACTOR:
            assert 32 * row["WARPS"] * row["ROWS"] >= n
            assert lu_bytes(dtype, n, n, row) <= ROOM
        else:
            assert solve_bytes(dtype, n, row) <= ROOM


@pytest.mark.parametrize("kernel, letter, order", [
    *((k, letter, 200) for k in FACTOR + SOLVE for letter in "dc"),
    ("getrf_shared", "d", 64), ("gesv_shared", "c", 64), ("laswp_identity", "d", 64),
    *((kernel, letter, n) for kernel, n in (("getri_small", 24), ("getri_shared", 80))
      for letter in "sdcz")])
def test_compiles_without_drift_or_spills(kernel, letter, order):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    key = resources.label(kernel, letter, constants(kernel, letter, order))
    wrong = list(resources.complaints(resources.measure([key], ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kernel, order", [("getrf_small", 24), ("getrf_shared", 128)])
@every_letter
def test_without_pivots_it_spills_no_more(kernel, letter, order):
    """By the rows of getrf, whose constants ration registers."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    values = constants(kernel, letter, order)
    with_pivots = resources.recorded()[resources.label(kernel, letter, values)]
    found = resources.resources(kernel, letter, values | {"UNPIVOTED": 1}, "sm_90a")
    assert found[1] <= with_pivots["sm_90a"][1]


LU = dict(CHUNK=16, TM=16, TN=16, UNROLL=1, BLOCKS=1, NB=8)
SHARED = dict(TN=16, BLOCKS=1)
SMALL = (("getrf_block", "d", LU | dict(WARPS=2, ROWS=1, RESIDENT=1)),
         ("getrf_block", "c", LU | dict(WARPS=1, ROWS=2, RESIDENT=0)),
         ("getrf_nopiv", "s", LU | dict(WARPS=2, ROWS=1, RESIDENT=0)),
         ("getrf_shared", "d", SHARED | dict(N=40, WINDOW=40, WARPS=2, PANEL=2)),
         ("gesv_shared", "s", SHARED | dict(N=40, WINDOW=40, WARPS=1, PANEL=1)),
         # of the warps that factor a panel some have no row
         ("getrf_shared", "d", SHARED | dict(N=40, WINDOW=40, WARPS=5, PANEL=4)),
         ("gesv_shared", "c", SHARED | dict(N=40, WINDOW=40, WARPS=4, PANEL=3)),
         *(("getrf_shared", x, SHARED | dict(N=72, WINDOW=32, WARPS=4, PANEL=2)) for x in "sd"),
         *(("gesv_shared", x, SHARED | dict(N=72, WINDOW=32, WARPS=8, PANEL=2)) for x in "sd"),
         ("getrs_block", "z", dict(WARPS=2, NB=32, DEEP=32, WIDTH=4, TM=16, TN=8, BLOCKS=1)),
         *(("getrs_warp", x, dict(N=64, WARPS=1, BLOCKS=1, UPTO=8)) for x in "sdcz"),
         *(("getrs_lines", x, dict(LINES=n, CHUNKS=1 + n // 16, WARPS=2, BLOCKS=1, UPTO=8))
           for x, n in zip("sdcz", (32, 16, 8, 16))),
         *(("getrf_shared", x, SHARED | v | dict(UNPIVOTED=1)) for x in "sdcz" for v in (
             dict(N=40, WINDOW=40, WARPS=1, PANEL=1), dict(N=72, WINDOW=32, WARPS=4, PANEL=2))),
         ("laswp_identity", "z", dict(WARPS=2)),
         *(("getri_shared", x, dict(N=n, R=r, WARPS=w, BLOCKS=1, GROUP=g))
           for x, n, r, w, g in (("s", 40, 32, 2, 4), ("s", 72, 16, 3, 1), ("d", 48, 16, 3, 2),
                                 ("c", 40, 16, 2, 1), ("z", 40, 32, 1, 4))),
         ("getri_shared", "d", dict(N=48, R=32, WARPS=2, BLOCKS=1, GROUP=4, TIGHT=1)),
         ("getri_small", "d", dict(N=48, C=1, WARPS=2, BLOCKS=1)),
         ("getri_small", "s", dict(N=72, C=2, WARPS=3, BLOCKS=1)),
         *(("getri_small", x, dict(N=32, C=2, WARPS=1, BLOCKS=1)) for x in "sc"),
         *(("getri_small", x, dict(N=8, C=1, WARPS=2, BLOCKS=1)) for x in "dz"))


@pytest.mark.parametrize("kernel, letter, values", SMALL, ids=lambda x: x if str(x) == x else "")
def test_runs_on_the_cpu(folder, kernel, letter, values):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (tests/sim/run_lu.py)."""
    from tests.sim import build, run_lu
    library = build.build(folder, kernel, letter, values, entry=run_lu.ENTRY)
    orders = ("35", "11") if kernel.startswith("getrf") else ("37", "20")
    if values.get("WINDOW") == 32:
        orders = "70", "33", "11"
    if kernel == "getrs_warp":  # rows as one line, columns, no unit stride, rows of even length
        orders = "37", "20", "34", "38"
    if kernel.startswith("getri"):  # of strips as many in the second
        n = values["N"]
        orders = str(n), str(n - 5 if kernel == "getri_shared" else n // 2 + 1), "3"
    run = under_sanitizers("run_lu", library, kernel, letter, json.dumps(values), *orders)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("n", (0, 1, 5, 40))
@every_letter
def test_determinants_are_numpys(letter, n):
    t, rng = TYPES[letter], np.random.default_rng(n)
    a = rng.standard_normal((4, n, n)).astype(t.dtype)
    if t.is_complex:
        a += 1j * rng.standard_normal(a.shape).astype(t.real)
    a[1:2] = 0
    close = dict(rtol=2000 * np.finfo(t.dtype).eps, atol=2000 * np.finfo(t.dtype).eps)
    for got, right in zip((*blasx.slogdet_batched(a), blasx.det_batched(a)),
                          (*np.linalg.slogdet(a), np.linalg.det(a)), strict=True):
        assert got.dtype == right.dtype and got.shape == (4,)
        np.testing.assert_allclose(got, right, **close)


@every_letter
def test_solutions_without_factors(letter):
    t, rng = TYPES[letter], np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(t.dtype) for s in ((3, 40, 40), (3, 40, 2)))
    a[1] = 0
    _, _, x, info = blasx.gesv_batched(a, b)
    lu, piv, y, same = blasx.gesv_batched(a, b, compute_lu=0)
    assert lu is None and piv is None and list(info) == list(same) == [0, 1, 0]
    assert np.array_equal(x, y)
