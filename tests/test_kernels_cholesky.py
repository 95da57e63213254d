"""The kernels of Cholesky for orders above 32 without a GPU (as test_kernels.py)."""

import json

import pytest
from test_kernels import every_letter, folder  # noqa: F401

from blasx import _spaces, _tuned
from blasx.batched._block import upper_bytes
from tests.sim.process import under_sanitizers

KERNELS = ("potrf_block", "posv_block", "potrf_columns", "posv_columns", "potrs_block",
           "potrs_lines", "potrf_panel", "potri_small", "potri_shared", "potri_parts")


def rows(letter, kernel):
    """Those of a kernel's rows that do not leave the work to another."""
    return [row for row in _tuned.table(90)[kernel].get(letter, []) if _tuned.capitals(row)]


@pytest.mark.parametrize("kernel", KERNELS)
@every_letter
def test_rows_fit(kernel, letter):
    for row in rows(letter, kernel):
        assert _spaces.fits(kernel, letter, row["to"], _tuned.capitals(row), _spaces.HOPPER)


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


@pytest.mark.parametrize("kernel, letter", [("potrf_block", "d"), ("posv_block", "s"),
                                            ("potrs_block", "c"),
                                            ("potri_parts", "z"),
                                            *((f"potri_{x}", letter) for x in ("small", "shared")
                                              for letter in "sdcz")])
def test_compiles_without_drift_or_spills(kernel, letter):
    wrong = drift(kernel, letter)
    assert not wrong, "\n".join(wrong)


def test_the_panel_of_one_matrix_compiles_without_drift_or_spills():
    """potrf_panel, one row of double precision, on Hopper: it is a long compilation."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    label = resources.label("potrf_panel", "d", _tuned.capitals(rows("d", "potrf_panel")[0]))
    wrong = list(resources.complaints(resources.measure([label], ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)


def panels(columns, rows, warps):
    return {"COLUMNS": columns, "ROWS": rows, "WARPS": warps, "BLOCKS": 1}


def warps(count):
    return {"WARPS": count, "BLOCKS": 1, "UPTO": 32}


def large(N, CV=2, WARPS=1):  # noqa: N803
    return {"N": N, "LR": 8, "LC": 4, "CV": CV, "WARPS": WARPS, "BLOCKS": 1}


def panel(tiles, WR, GROUPS, DEPTH, TWOFOLD=0):  # noqa: N803
    return {"TILES": tiles, "WARPS": tiles, "WR": WR, "GROUPS": GROUPS, "DEPTH": DEPTH,
            "STAGES": 3, "BLOCKS": 1, "TWOFOLD": TWOFOLD}


RUNS = (("potrf_small", "s", large(64)), ("potrf_small", "d", large(64, WARPS=2)),
        ("potrf_small", "s", large(88)), ("potrf_small", "c", large(56)),
        ("potrf_small", "s", large(48, WARPS=2)), ("potrf_small", "d", large(48)),
        ("potrf_small", "c", large(40)), ("potrf_small", "z", large(40, 1)),
        *((f"{routine}_columns", x, dict(N=n, WARPS=w, BLOCKS=1, AHEAD=ahead) | more)
          for routine in ("potrf", "posv")
          for x, n, w, ahead in (("s", 64, 2, 1), ("d", 72, 2, 0), ("d", 40, 4, 1), ("c", 40, 3, 0),
                                 ("z", 40, 2, 0))
          for more in ({}, {"ODD_ROWS": 1})[:1 + (x != "z")]),
        ("potrf_block", "s", panels(5, 5, 1)), ("potrf_block", "d", panels(6, 3, 2)),
        ("potrf_block", "d", panels(2, 2, 3)), ("potrf_block", "s", panels(2, 2, 3)),
        ("potrf_block", "z", panels(6, 2, 3)),
        *(("posv_small", x, large(n, 1 if x == "z" else 2, w) | more)
          for x, n, w in (("s", 64, 2), ("d", 48, 1), ("c", 40, 1), ("z", 40, 2))
          for more in ({}, {"ONE_LINE": 1})),
        ("posv_block", "s", panels(6, 3, 2)), ("posv_block", "d", panels(5, 5, 1)),
        ("posv_block", "c", panels(6, 2, 3)), ("posv_block", "z", panels(8, 2, 4)),
        ("potrs_block", "d", warps(2)),
        ("potrs_block", "c", warps(3)), ("potrs_block", "z", warps(1)),
        *(("potrs_warp", x, dict(N=64, WARPS=1, BLOCKS=1, UPTO=8)) for x in "sdcz"),
        *(("potrs_lines", x, dict(LINES=n, CHUNKS=1 + n // 16, WARPS=2, BLOCKS=1, UPTO=8))
          for x, n in zip("sdcz", (32, 16, 16, 8))),
        *(("potri_shared", x, dict(N=n, R=r, WARPS=w, BLOCKS=1, GROUP=g))
          for x, n, r, w, g in (("s", 40, 32, 2, 4), ("s", 72, 16, 3, 1), ("d", 48, 16, 3, 2),
                                ("c", 40, 16, 2, 1), ("z", 40, 32, 1, 4))),
        ("potri_shared", "d", dict(N=48, R=32, WARPS=2, BLOCKS=1, GROUP=4, TIGHT=1)),
        ("potri_small", "d", dict(N=48, C=1, WARPS=2, BLOCKS=1)),
        ("potri_small", "s", dict(N=72, C=2, WARPS=3, BLOCKS=1)),
        *(("potri_small", x, dict(N=32, C=2, WARPS=1, BLOCKS=1)) for x in "sc"),
        *(("potri_small", x, dict(N=8, C=1, WARPS=2, BLOCKS=1)) for x in "dz"),
        *(("potri_parts", x, dict(LINES=8, WARPS=2)) for x in "dc"),
        ("potrf_panel", "d", panel(4, 2, 2, 2)), ("potrf_panel", "c", panel(2, 1, 1, 2)),
        ("potrf_panel", "s", panel(2, 1, 1, 2)), ("potrf_panel", "s", panel(4, 2, 2, 2, 1)))


def simulate(folder, kernel, letter, values, plant=None, orders=None):  # noqa: F811
    from tests.sim import build, run_lu
    orders = orders or (("33", "20", "37") if "N" not in values else
                        (str(values["N"]), "33", str(values["N"] - 7)))
    module = "run_cholesky"
    if kernel.endswith("_columns"):  # rows, columns, no unit stride, rows by pairs, columns apart;
        orders = [str(values["N"] - less)  # lines that begin anywhere
                  for less in (0, 3, 7, 2, 5, 1, 3, 0, 1, 0, 6)]
    if "ONE_LINE" in values:  # members begin in the midst of 16 bytes; the first are out of place
        orders = orders[::-1]
    if kernel == "potrs_warp":  # rows as one line, columns, no unit stride, rows of even length
        orders = "57", "64", "34", "38"
    if kernel == "potrs_lines":  # rows, columns, no unit stride
        orders = "33", "100", "65"
    if kernel == "potri_small":  # rows, columns, no unit stride
        orders = str(values["N"]), str(values["N"] // 2 + 1), "3"
    if kernel == "potri_shared":  # the same, of strips as many in the second
        orders = str(values["N"]), str(values["N"] - 5), "3"
    if kernel == "potrf_panel":
        module, orders = "run_panels", ("1", str(24 * values["TILES"] + 3))
    library = build.build(folder, kernel, letter, values, plant, run_lu.ENTRY)
    return under_sanitizers(module, library, kernel, letter, json.dumps(values), *orders)


@pytest.mark.parametrize("kernel, letter, values", RUNS)
def test_runs_on_the_cpu(folder, kernel, letter, values):  # noqa: F811
    """Under AddressSanitizer and UBSan, four schedules, results judged (run_cholesky.py)."""
    run = simulate(folder, kernel, letter, values)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, n", [("s", 223), ("d", 223), ("c", 215)])
def test_the_rows_of_large_members_run_on_the_cpu(folder, letter, n):  # noqa: F811
    """potrf_block with the constants that serve members of order n on Hopper."""
    row = next(x for x in rows(letter, "potrf_block") if n <= x["to"])
    run = simulate(folder, "potrf_block", letter, _tuned.capitals(row), orders=(str(n),))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_one_large_matrix_by_panels(simulated):
    """potrf of one matrix on a simulated GPU, cuBLAS's products by the CPU (run_potrf.py)."""
    run = under_sanitizers("run_potrf", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter", "ds")
def test_a_ragged_batch_gives_members_what_they_give_alone(folder, letter):  # noqa: F811
    """potrf_small compiled RAGGED, members of all orders up to 48 (tests/sim/run_ragged.py)."""
    from tests.sim.build import build
    values = large(48, WARPS=2)
    libraries = [build(folder / name, "potrf_small", letter, values | more,
                       shared=upper_bytes(letter, values))
                 for name, more in (("equal", {}), ("ragged", {"RAGGED": 1}))]
    run = under_sanitizers("run_ragged", *libraries, "potrf_small", letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: what the text says, what it shall say, what is reported
    "nan is a pivot": ("!(pivot > 0) && !failed", "pivot <= 0 && !failed", "AssertionError"),
    "a missing barrier": ("barrier();\n        const int info = w.diagonal.info;",
                          "const int info = w.diagonal.info;", "barrier is not reached"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):  # noqa: F811
    *plant, seen = PLANTED[bug]
    run = simulate(folder, "potrf_block", "d", panels(6, 3, 2), tuple(plant))
    assert run.returncode and seen in run.stderr, run.stderr[-3000:]
