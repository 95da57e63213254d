"""QR of one large matrix without a GPU: its kernels under sanitizers, its launches and look-ahead
on a simulated GPU (tests/sim/run_large.py, run_geqrf.py)."""

import json

import pytest
from test_kernels import constants, every_letter, folder  # noqa: F401

from blasx import _spaces, _tuned
from tests.sim.process import under_sanitizers

KERNELS = (("geqrf_leaf", "c", dict(CLUSTER=2, WARPS=3, ROWS=1, COLUMNS=4)),
           ("geqrf_apply", "z", dict(CLUSTER=2, WARPS=2, ROWS=8, COLUMNS=2, BATCH=8)),
           ("geqrf_t", "s", dict(WARPS=2)))


@pytest.mark.parametrize("kernel, letter, values", KERNELS, ids=lambda x: x if str(x) == x else "")
def test_runs_on_the_cpu(folder, kernel, letter, values):  # noqa: F811
    """LAPACK's factors and signs, zero, tiny, huge by columns, triangular, nan; four schedules."""
    from tests.sim import build, run_large
    library = build.build(folder, kernel, letter, values, entry=run_large.ENTRY)
    run = under_sanitizers("run_large", library, kernel, letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_every_order_of_the_streams_gives_lapacks_factors(simulated):
    """Tall, wide, singular, one row, one column, inside a frame that stays as it is."""
    run = under_sanitizers("run_geqrf", simulated, "s")
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]


@every_letter
def test_rows_reach_as_far_as_registers_do(letter):
    """Panels and blocks are of whole leaves; what applies a leaf is as wide and as high."""
    plans, leaves, appliers = (_tuned.table(90)[k][letter]
                               for k in ("geqrf_t", "geqrf_leaf", "geqrf_apply"))
    assert plans[-1]["to"] == leaves[-1]["to"] == appliers[-1]["to"]
    for row, applier in zip(leaves, appliers, strict=True):
        for kernel, its in (("geqrf_leaf", row), ("geqrf_apply", applier)):
            values = _tuned.capitals(its)
            assert _spaces.fits(kernel, letter, its["to"], values, _spaces.HOPPER)
        assert row["to"] == applier["to"] and row["COLUMNS"] <= applier["COLUMNS"]
    widest = 4 * max(row["COLUMNS"] for row in leaves)
    assert widest == 32  # WIDEST of geqrf_t.cu
    for plan in plans:
        assert plan["panel"] % widest == plan["block"] % widest == 0


@pytest.mark.parametrize("kernel, letter", [("geqrf_leaf", "z"), ("geqrf_apply", "d")])
def test_compiles_without_drift_or_spills(kernel, letter):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    key = resources.label(kernel, letter, constants(kernel, letter, 8192))
    wrong = list(resources.complaints(resources.measure([key], ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)


def test_a_planted_bug_is_caught(tmp_path):
    """An x whose squares vanish is lifted by half of what it takes."""
    from tests.sim import build, run_large
    values = dict(CLUSTER=2, WARPS=3, ROWS=1, COLUMNS=2)
    library = build.build(tmp_path, "geqrf_leaf", "d", values,
                          ("mul(mul(x[q], by), by)", "mul(x[q], by)"), run_large.ENTRY)
    run = under_sanitizers("run_large", library, "geqrf_leaf", "d", json.dumps(values))
    assert run.returncode and "AssertionError" in run.stderr
