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


RUNS = (("s", 5, 5, 1), ("d", 6, 3, 2), ("d", 2, 2, 3), ("s", 2, 2, 3), ("c", 2, 2, 3),
        ("z", 6, 2, 3))


def simulate(folder, letter, columns, rows, warps, orders, plant=None):  # noqa: F811
    from tests.sim import build, run_lu
    values = {"COLUMNS": columns, "ROWS": rows, "WARPS": warps, "BLOCKS": 1}
    library = build.build(folder, KERNEL, letter, values, plant, run_lu.ENTRY)
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.run_cholesky", library, KERNEL, letter,
         json.dumps(values), *map(str, orders)], cwd=ROOT, env=sanitized(), capture_output=True,
        text=True)


@pytest.mark.parametrize("letter, columns, rows, warps", RUNS)
def test_runs_on_the_cpu(folder, letter, columns, rows, warps):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (run_cholesky.py)."""
    run = simulate(folder, letter, columns, rows, warps, (33, 20))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: what the text says, what it shall say
    "nan is a pivot": ("!(pivot > 0) && !failed", "pivot <= 0 && !failed"),
    "a missing barrier": ("        update_diagonals(w, k);\n        barrier();",
                          "        update_diagonals(w, k);"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):  # noqa: F811
    run = simulate(folder, "d", 6, 3, 2, (33, 40, 20), PLANTED[bug])
    assert run.returncode and "AssertionError" in run.stderr, run.stderr[-3000:]
