"""LU of one large matrix without a GPU: its kernels under sanitizers, its launches and look-ahead
on a simulated GPU (tests/sim/run_large.py, run_getrf.py, run_windows.py)."""

import json

import numpy as np
import pytest
from test_kernels import constants, every_letter, folder  # noqa: F401

from blasx import _spaces, _tuned
from blasx._types import TYPES
from blasx.batched._block import shared_bytes
from blasx.large._bytes import moved_bytes, panel_bytes, rows_bytes, wide_bytes
from tests.sim.process import under_sanitizers

KERNELS = (("getrf_panel", "d", dict(CLUSTER=2, WARPS=1, ROWS=1, W=16)),
           ("getrf_panel", "c", dict(CLUSTER=3, WARPS=2, ROWS=2, W=4)),
           ("getrf_top", "z", dict(WARPS=4)),
           ("getrf_rows", "s", dict(COLUMNS=8, WARPS=2, BLOCKS=1)),
           ("getrf_window", "s", dict(N=48, WINDOW=24, WARPS=2, PANEL=1, TN=8, BLOCKS=1)),
           ("getrf_below", "s", dict(COLUMNS=8, WARPS=2, BLOCKS=1)),
           ("getrf_wide", "s", dict(COLUMNS=8, WARPS=2, BLOCKS=1)),
           ("getrf_wide", "s", dict(COLUMNS=16, WARPS=4, BLOCKS=1)),
           ("getrf_order", "s", dict(WARPS=1)),
           ("getrf_moved", "s", dict(WARPS=2, STAGES=3, COLUMNS=4)),
           ("getrf_moved", "z", dict(WARPS=1, STAGES=2, COLUMNS=3)),
           ("getrf_columns", "s", dict(BYTES=2, WARPS=1)),
           ("getrf_columns", "z", dict(BYTES=16, WARPS=2)))


@pytest.mark.parametrize("kernel, letter, values", KERNELS, ids=lambda x: x if str(x) == x else "")
def test_runs_on_the_cpu(folder, kernel, letter, values):  # noqa: F811
    """Blocks of a cluster side by side, four schedules, LAPACK's pivots, nan, ties, singular."""
    from tests.sim import build, run_large
    library = build.build(folder, kernel, letter, values, entry=run_large.ENTRY)
    run = under_sanitizers("run_large", library, kernel, letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_every_order_of_the_streams_gives_lapacks_factors(simulated):
    """Tall, wide, singular, one row, one column, inside a frame that stays as it is."""
    run = under_sanitizers("run_getrf", simulated, "s")
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]


def test_pivots_from_windows_whatever_the_order_of_the_streams(simulated):
    """Between butterflies; several blocks, one, some rows."""
    run = under_sanitizers("run_windows", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]


def test_windows_fit_their_kernels():
    """Panels have tiles of 32, windows at least two rows to a column."""
    table = _tuned.table(90)
    for plan in table["getrf_windows"]["s"]:
        kernel = _tuned.row("getrf_window", "s", plan["WINDOW"], _spaces.HOPPER)
        assert 2 * plan["block"] <= plan["WINDOW"] <= kernel["N"]
        assert plan["block"] <= kernel["WINDOW"] and not {"panel", "strip"} & {*plan}
        assert plan["joined"] % plan["block"] == plan["block"] % 32 == 0
        assert shared_bytes(np.dtype("f4"), kernel["N"], kernel) <= _spaces.HOPPER.shared
        for row in table["getrf_below"]["s"]:
            assert rows_bytes(np.dtype("f4"), plan["block"], row) <= _spaces.HOPPER.shared
        for row in table["getrf_wide"]["s"] if "whole" in plan else ():
            below = plan["WINDOW"] - plan["block"]
            assert plan["whole"] <= row["to"] and plan["whole"] % plan["block"] == 0
            assert wide_bytes(np.dtype("f4"), row["to"], below, row) <= _spaces.HOPPER.shared
            assert row["to"] + below <= 32 * 36  # kernels/getrf_wide.cu: MOST


@every_letter
def test_rows_reach_as_far_as_registers_do(letter):
    """A panel of any height up to the last row, and blocks beside it, fit a multiprocessor."""
    dtype = TYPES[letter].dtype
    plans, panels = (_tuned.table(90)[k][letter] for k in ("getrf_rows", "getrf_panel"))
    assert plans[-1]["to"] == panels[-1]["to"] == _tuned.table(90)["getrf_top"][letter][-1]["to"]
    for row in panels:
        assert 32 * row["CLUSTER"] * row["WARPS"] * row["ROWS"] >= row["to"]
        for plan in plans:
            assert panel_bytes(dtype, plan["panel"], row) <= _spaces.HOPPER.shared
    for plan in plans:
        part, even = plan["block"], plan.get("even", plan["block"])
        assert plan.get("strip", 0) < plan["panel"] <= min(part, even)
        assert plan.get("joined", part) % part == part % 32 == 0
        assert rows_bytes(dtype, max(part, even), plan) <= _spaces.HOPPER.shared
        assert even % plan.get("part", even) == 0 and plan["panel"] <= plan.get("part", even)
        if "joined" in plan:
            moved, most = _tuned.table(90)["getrf_moved"][letter], 2 * plan["joined"]
            assert all(moved_bytes(dtype, x["to"], most, x) <= _spaces.HOPPER.shared for x in moved)


@pytest.mark.parametrize("kernel, letter", [
    ("getrf_panel", "d"), ("getrf_rows", "z"), ("getrf_columns", "z"), ("getrf_order", "s"),
    ("getrf_moved", "s"), ("getrf_window", "s"), ("getrf_below", "s"),
    ("getrf_wide", "s"), ("getrf_top", "s"), ("gerbt", "d"), ("gerbt_rows", "s")])
def test_compiles_without_drift_or_spills(kernel, letter):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    order = min(8192, _tuned.table(90)[kernel][letter][-1]["to"])
    key = resources.label(kernel, letter, constants(kernel, letter, order))
    wrong = list(resources.complaints(resources.measure([key], ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)
