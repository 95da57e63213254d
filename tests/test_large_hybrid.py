"""One large matrix by CPU and GPU together, without a GPU (tests/sim/run_hybrid.py)."""

from tests.sim.process import under_sanitizers


def test_factors_are_lapacks(simulated):
    """getrf, geqrf, potrf; tall, wide, singular, not definite; the host waits as late as it may."""
    run = under_sanitizers("run_hybrid", simulated, "z")
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]
