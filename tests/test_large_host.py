"""Matrices of the host's memory on the GPU, without one (tests/sim/run_host.py)."""

import io
import json
import sys

import numpy as np
import pytest

import blasx
from blasx._progress import Progress
from tests.sim.process import under_sanitizers


def test_factors_solutions_products(simulated):
    """Whole and by windows; pieces and streams early and late; LAPACK's pivots and info; an
    allocation that fails leaves the matrix; the testers with --host."""
    run = under_sanitizers("run_host", simulated, "z")
    assert run.returncode == 0 and run.stdout.endswith("ok z\n"), run.stdout + run.stderr[-3000:]


@pytest.mark.gpu
@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("name", ["getrf", "gesv", "potrf", "posv", "gemm"])
def test_testers_pass_on_the_gpu(name, letter):
    """Whole, and within 16 MB."""
    from testing.__main__ import main
    asked = f"{letter}{name} -n 70 -n 1500 --nrhs 3 --check --host --device gpu --nowarmup"
    assert main(asked.split()) == main([*asked.split(), "--memory", str(2**24)]) == 0


def test_a_timeline_without_steps_and_without_matplotlib(tmp_path, monkeypatch):
    with blasx.trace() as t:
        blasx.dgetrf(np.eye(3))
    t.timeline(tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text())["traceEvents"] == []
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"blasx\[plot\]"):
        t.timeline(tmp_path / "none.png")


def test_a_bar_waits_two_seconds_and_wants_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for to, seen in ((Terminal(), ["1/3 dgetrf", "2/3 dgetrf", "3/3 dgetrf"]), (io.StringIO(), [])):
        now = iter((0.0, 1.0, 2.5, 3.0, 4.0))
        progress = Progress(to, lambda: next(now), patience=2)
        for done in range(4):
            progress(done, 3, "dgetrf")
        assert [x for x in seen if x in to.getvalue()] == seen and "0/3" not in to.getvalue()
        assert bool(to.getvalue()) == bool(seen)


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
