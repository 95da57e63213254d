"""One large matrix by CPU and GPU together, without a GPU (tests/sim/run_hybrid.py)."""

import subprocess
import sys

from test_kernels import ROOT, sanitized


def test_factors_are_lapacks(simulated):
    """getrf, geqrf, potrf; tall, wide, singular, not definite; the host waits as late as it may."""
    run = subprocess.run([sys.executable, "-m", "tests.sim.run_hybrid", simulated, "z"], cwd=ROOT,
                         env=sanitized(), capture_output=True, text=True)
    assert run.returncode == 0 and "ok" in run.stdout, run.stdout + run.stderr[-3000:]
