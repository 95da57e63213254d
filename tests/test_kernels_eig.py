"""The eigenvalue kernel without a GPU: compiled; run on the CPU under sanitizers."""

import json
import subprocess
import sys

import pytest
from test_kernels import ROOT, sanitized

from blasx import _tuned

KERNEL = "syevd_block"
SMALL = {"ROWS": 2, "LANES": 4, "WIDTH": 4, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
BLOCK = {"ROWS": 2, "LANES": 8, "WIDTH": 2, "GROUPS": 8, "WARPS": 2, "SHARED": 1, "BLOCKS": 1}
FAR = {"ROWS": 1, "LANES": 32, "WIDTH": 1, "GROUPS": 2, "WARPS": 2, "SHARED": 0, "BLOCKS": 1}


@pytest.mark.parametrize("letter", "dz")
def test_compiles_without_drift_or_spills(letter):
    """One row on Hopper; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    values = _tuned.constants(KERNEL, letter, 64, 90)
    found = resources.measure([resources.label(KERNEL, letter, values)], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("letter, values, orders", [
    ("d", SMALL, ("8", "5", "3", "1")), ("z", SMALL, ("7", "8", "2", "5")),
    ("s", BLOCK, ("13", "9")), ("c", FAR, ("8", "6", "5"))])
def test_runs_on_the_cpu(tmp_path, letter, values, orders):
    """A few members to a warp, a member to a block, columns in global memory."""
    from tests.sim import build, run_svd
    library = build.build(tmp_path, KERNEL, letter, values, entry=run_svd.ENTRY)
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.run_eig", library, KERNEL, letter, json.dumps(values),
         *orders], cwd=ROOT, env=sanitized(), capture_output=True, text=True)
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-3000:]
