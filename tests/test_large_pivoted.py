"""QR with column pivoting, and Bunch and Kaufman's factorization, of one large matrix without a
GPU: kernels, launches and products on a simulated one (tests/sim/run_geqp3.py, run_hetrf.py)."""

import pytest
from test_kernels import ROOT, constants

from tests.sim.process import under_sanitizers

RUNS = (("geqp3", "z"), ("geqp3", "s"), ("hetrf", "c"), ("hetrf", "d"))
KERNELS = (("geqp3_panel", "d"), ("geqp3_panel", "z"), ("hetrf_panel", "z"), ("hetrf_undo", "c"),
           ("hetrs_rows", "d"), ("hetrs_diagonal", "z"))


@pytest.mark.parametrize("routine, letter", RUNS)
def test_lapacks_pivots_and_factors(routine, letter, simulated):
    """Tall, wide, ties, zeros, lost norms, tiny, huge, nan, blocks of D of order 2 alone and across
    the end of a panel; inside a frame that stays as it is, the same bits in two schedules."""
    run = under_sanitizers(f"run_{routine}", simulated, letter)
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]


@pytest.mark.parametrize("kernel, letter", KERNELS)
def test_compiles_without_drift_or_spills(kernel, letter):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    key = resources.label(kernel, letter, constants(kernel, letter, 4096))
    wrong = list(resources.complaints(resources.measure([key], ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)


PLANTED = {  # routine, in which file, what the text says, what it shall say
    "nobody waits for the pivot column": (
        "geqp3", "geqp3_panel.cu", "meeting.hear(p.parts, [](const unsigned (&)[1]) {});", ";"),
    "norms are never taken anew": ("geqp3", "geqp3_panel.cu", "<= SAFE;", "< 0;"),
    "a pivot is read as it is overwritten": ("hetrf", "grid.cuh", "best[WARPS]", "best[0]"),
    "rows change places while others use them": (
        "hetrf", "hetrf_panel.cu", "meeting.hear(gridDim.x, [](const unsigned (&)[BITS + 1]) {});",
        ";"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug, simulated):
    routine, file, old, new = PLANTED[bug]
    code = ("import sys; from blasx import _sources; whole = _sources.program; "
            f"old, new = {old!r}, {new!r}\n"
            "def planted(*of):\n"
            "    text = whole(*of)\n"
            "    return text.replace(old, new)\n"
            "_sources.program = planted\n"
            f"from tests.sim import run_{routine} as run\n"
            f"run.main(sys.argv[1], 'd' if run.__name__.endswith('geqp3') else 's')")
    run = under_sanitizers(code, simulated)
    assert run.returncode and "ok" not in run.stdout, run.stdout + run.stderr[-3000:]
    assert old in (ROOT / "kernels" / file).read_text()
