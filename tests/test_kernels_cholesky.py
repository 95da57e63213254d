"""The block Cholesky's kernel without a GPU (as test_kernels.py)."""

import json
import subprocess
import sys

import pytest
from test_kernels import ROOT, every_letter, folder, sanitized  # noqa: F401

from blasx import _spaces, _tuned

KERNEL = "potrf_block"


def rows(letter, kernel=KERNEL):
    """Those of a kernel's rows that do not leave the work to another."""
    return [row for row in _tuned.table(90)[kernel][letter] if _tuned.capitals(row)]


@every_letter
def test_rows_fit(letter):
    for row in rows(letter):
        assert _spaces.fits(KERNEL, letter, row["to"], _tuned.capitals(row), _spaces.HOPPER)


def drift(kernel, letter):
    """The first row on every architecture, the last on Hopper; all of them is
    `python -m tests.sim.resources`. Where the rows were not measured a spill is on record only."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    found = rows(letter, kernel)
    small, large = (resources.label(kernel, letter, _tuned.capitals(found[i])) for i in (0, -1))
    numbers = resources.measure([small])
    if large != small:
        numbers |= resources.measure([large], ["sm_90a"])
    return [x for x in resources.complaints(numbers, resources.recorded())
            if "nothing justifies" not in x or " sm_90a: " in x]


@pytest.mark.parametrize("letter", "dc")
def test_compiles_without_drift_or_spills(letter):
    wrong = drift(KERNEL, letter)
    assert not wrong, "\n".join(wrong)


RUNS = (("s", 16, 1), ("d", 8, 1), ("d", 16, 0), ("c", 16, 1), ("c", 32, 0), ("z", 8, 0))


def simulate(folder, letter, panel, resident, orders, plant=None):  # noqa: F811
    from tests.sim import build, run_lu
    values = {"WARPS": 2, "NB": panel, "RESIDENT": resident}
    library = build.build(folder, KERNEL, letter, values, plant, run_lu.ENTRY)
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.run_cholesky", library, KERNEL, letter,
         json.dumps(values), *map(str, orders)], cwd=ROOT, env=sanitized(), capture_output=True,
        text=True)


@pytest.mark.parametrize("letter, panel, resident", RUNS)
def test_runs_on_the_cpu(folder, letter, panel, resident):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (run_cholesky.py)."""
    run = simulate(folder, letter, panel, resident, (33, 50, 20))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: resident, what the text says, what it shall say, what is reported
    "nan is a pivot": (1, "!(pivot > 0) && !bad", "pivot <= 0 && !bad", "AssertionError"),
    "a missing barrier": (0, "if (warp() == 0) factor_diagonal(panel, nb, first, diagonal);\n"
                          "    __syncthreads();",
                          "if (warp() == 0) factor_diagonal(panel, nb, first, diagonal);",
                          "AssertionError"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):  # noqa: F811
    resident, *plant, seen = PLANTED[bug]
    run = simulate(folder, "d", 16, resident, (33,), tuple(plant))
    assert run.returncode and seen in run.stderr, run.stderr[-3000:]
