"""trsm's and trmm's kernels for a batch without a GPU (as test_kernels.py)."""

import json
import subprocess
import sys

import pytest
from test_kernels import ROOT, every_letter, folder, sanitized  # noqa: F401
from test_kernels_cholesky import drift

from blasx import _spaces, _tuned

KERNELS = "trsm_block", "trmm_block"
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@every_kernel
@every_letter
def test_rows_reach_every_order_and_fit(kernel, letter):
    rows = _tuned.table(90)[kernel][letter]
    assert rows[-1]["to"] == _spaces.MOST
    for row in rows:
        assert _spaces.fits(kernel, letter, row["to"], _tuned.capitals(row), _spaces.HOPPER)


@every_kernel
@pytest.mark.parametrize("letter", "dc")
def test_compiles_without_drift_or_spills(kernel, letter):
    wrong = drift(kernel, letter)
    assert not wrong, "\n".join(wrong)


def simulate(folder, kernel, letter, shapes, plant=None):  # noqa: F811
    from tests.sim import build, run_lu
    values = {"WARPS": 2, "NB": 8 if letter in "sz" else 16, "R": 8 if letter == "z" else 16}
    if kernel == "trmm_block":
        del values["NB"]
    library = build.build(folder, kernel, letter, values, plant, run_lu.ENTRY)
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.run_triangular", library, kernel, letter,
         json.dumps(values), *shapes], cwd=ROOT, env=sanitized(), capture_output=True, text=True)


@every_kernel
@every_letter
def test_runs_on_the_cpu(folder, kernel, letter):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (run_triangular.py)."""
    run = simulate(folder, kernel, letter, ("5x17", "33x18", "50x17", "1x1"))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: kernel, what the text says, what it shall say, what is reported
    "a row past the end": ("trmm_block", "sum.each(n - i, columns", "sum.each(n - i + 1, columns",
                           "AddressSanitizer"),
    "a missing barrier": ("trsm_block", "solve_rows(d, divisors, part(x, j, 0), nb, columns, "
                          "L.unit);\n        __syncthreads();",
                          "solve_rows(d, divisors, part(x, j, 0), nb, columns, L.unit);",
                          "AssertionError"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):  # noqa: F811
    kernel, *plant, seen = PLANTED[bug]
    run = simulate(folder, kernel, "c", ("5x17",), tuple(plant))
    assert run.returncode and seen in run.stderr, run.stderr[-3000:]
