"""trsm's and trmm's kernels for a batch without a GPU (as test_kernels.py)."""

import json

import pytest
from test_kernels import every_letter, folder, in_turn  # noqa: F401
from test_kernels_cholesky import drift

from blasx import _spaces, _tuned
from tests.sim.process import under_sanitizers

KERNELS = "trsm_small", "trmm_small", "trsm_block", "trmm_block"
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@every_kernel
@every_letter
def test_rows_reach_every_order_and_fit(kernel, letter):
    rows = _tuned.table(90)[kernel][letter]
    assert rows[-1]["to"] == _spaces.MOST
    for row in filter(_tuned.capitals, rows):
        assert _spaces.fits(kernel, letter, row["to"], _tuned.capitals(row), _spaces.HOPPER)


@every_kernel
@pytest.mark.parametrize("letter", "dc")
def test_compiles_without_drift_or_spills(kernel, letter):
    wrong = drift(kernel, letter)
    assert not wrong, "\n".join(wrong)


def simulate(folder, kernel, letter, shapes, resident=0, plant=None, values=None):  # noqa: F811
    from tests.sim import build, run_lu
    if values:
        pass
    elif kernel.endswith("small"):
        values = {"WARPS": 1, "N": 8, "LANES": 4, "C": 2, "BLOCKS": 1}
    else:
        deep = 1 + (letter in "sz")  # eights of a slice, of which a strip is a multiple
        values = {"WARPS": 2, "N": 16 if deep == 2 else 24, "R": 32 if letter == "s" else 16,
                  "STAGES": 2, "BLOCKS": 1, "DEEP": deep, "RESIDENT": resident,
                  "GROUP": 1 if letter == "s" else 4}
    library = build.build(folder, kernel, letter, values, plant, run_lu.ENTRY)
    return under_sanitizers("run_triangular", library, kernel, letter, json.dumps(values), *shapes)


@in_turn(KERNELS)
def test_runs_on_the_cpu(folder, kernel, letter):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (run_triangular.py)."""
    small = kernel.endswith("small")
    shapes = ("5x7", "8x8", "1x1") if small else ("5x17", "34x18", "50x17", "1x1")
    run = simulate(folder, kernel, letter, shapes)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize(("lanes", "warps"), [(16, 1), (64, 2)])
@pytest.mark.parametrize("kernel", ("trmm_small", "trsm_small"))
def test_more_rows_than_a_warp_has_lanes(folder, kernel, lanes, warps):  # noqa: F811
    values = {"WARPS": warps, "N": 40, "LANES": lanes, "C": 1, "BLOCKS": 1}
    run = simulate(folder, kernel, "s", ("33x5", "40x17", "3x2", "36x40"), values=values)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_on_the_tensor_cores_in_parts(folder):  # noqa: F811
    run = simulate(folder, "trsm_split", "c", ("5x17", "34x18", "50x17"))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@every_letter
def test_a_column_to_a_warp(folder, letter):  # noqa: F811
    values = {"LINES": 8, "CHUNKS": 2, "WARPS": 2, "BLOCKS": 1, "UPTO": 32}
    run = simulate(folder, "trsm_lines", letter, ("35x3", "70x2", "8x9", "1x1"), values=values)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("kernel", ("trmm_block", "trsm_block"))
def test_bits_do_not_depend_on_how_strips_lie(folder, kernel, letter):  # noqa: F811
    """A row for few columns has other strips than that for many: a column is the same in both."""
    bits = set()
    for N, R, deep, resident, warps in ((40, 32, 1, 1, 1), (40, 16, 1, 1, 2), (16, 16, 2, 0, 2)):
        values = {"WARPS": warps, "N": N, "R": R, "STAGES": 2, "BLOCKS": 1, "DEEP": deep,
                  "RESIDENT": resident, "GROUP": 2}
        run = simulate(folder, kernel, letter, ("34x18", "9x33"), values=values)
        assert run.returncode == 0, run.stderr[-3000:]
        bits.add(run.stdout.split()[-1])
    assert len(bits) == 1


def test_a_strip_of_all_rows(folder):  # noqa: F811
    run = simulate(folder, "trsm_block", "d", ("11x16", "16x9"), resident=1)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: kernel, what the text says, what it shall say, what is reported
    "a row past the end": ("trmm_block", "first + i < m && j < n", "first + i <= m && j < n",
                           "AddressSanitizer"),
    "a missing barrier": ("trsm_block", "give(strip.x[0], block);\n        __syncwarp();",
                          "give(strip.x[0], block);", "AssertionError"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):  # noqa: F811
    kernel, *plant, seen = PLANTED[bug]
    run = simulate(folder, kernel, "c", ("5x17",), plant=tuple(plant))
    assert run.returncode and seen in run.stderr, run.stderr[-3000:]
