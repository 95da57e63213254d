"""Matrices of the host's memory on the GPU, without one (tests/sim/run_host.py)."""

import subprocess
import sys

import numpy as np
import pytest
from test_kernels import ROOT, sanitized

import blasx


def test_factors_solutions_products(tmp_path):
    """Whole and by windows; pieces and streams early and late; LAPACK's pivots and info; an
    allocation that fails leaves the matrix; the testers with --host."""
    run = subprocess.run([sys.executable, "-m", "tests.sim.run_host", tmp_path, "z"], cwd=ROOT,
                         env=sanitized(), capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith("ok z\n"), run.stdout + run.stderr[-3000:]


@pytest.mark.parametrize("call", [
    lambda a, **kw: blasx.dgetrf(a, 1, **kw), lambda a, **kw: blasx.dgesv(a, a[:, 0] + 1, 1, **kw),
    lambda a, **kw: blasx.dpotrf(a, overwrite_a=1, **kw),
    lambda a, **kw: blasx.dposv(a, a[:, 0] + 1, 0, 1, **kw),
    lambda a, **kw: blasx.dgemm(1, a + 1, a + 1, 1, a, overwrite_c=1, **kw)])
def test_what_cannot_be_is_refused_first(call, monkeypatch):
    a = np.asfortranarray(np.eye(5))
    monkeypatch.setattr("blasx._arrays.no_gpu", lambda: "nobody has one")
    for asked, message in (({"device": "gpu"}, "device.*nobody has one, got 'gpu'"),
                           ({"device": "tpu"}, "device.*None, 'cpu', 'gpu', got 'tpu'"),
                           ({"memory": 2**30}, "memory must be None"),
                           ({"device": "cpu", "memory": 2**30}, "memory must be None")):
        with pytest.raises(ValueError, match=message):
            call(a, **asked)
    assert np.array_equal(a, np.eye(5))
    monkeypatch.setattr("blasx._arrays.no_gpu", lambda: "")
    for memory, error in ((0, ValueError), ("much", TypeError)):
        with pytest.raises(error, match="memory"):
            call(a, device="gpu", memory=memory)
    call(a, device="cpu")
