"""The eigenvalue kernels without a GPU: compiled; run on the CPU under sanitizers."""

import json

import pytest

from blasx import _tuned
from tests.sim.process import under_sanitizers

KERNEL = "syevd_block"
SMALL = {"ROWS": 2, "LANES": 4, "WIDTH": 4, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
QL = {"LANES": 4, "WARPS": 1, "PARTS": 2}
ALONE = {"ROWS": 8, "EACH": 1, "WAVE": 2, "WARPS": 1}
PAIRS = {"ROWS": 16, "EACH": 2, "WAVE": 4, "WARPS": 1}
STEPS = "sytrd_rows", "sytrd_block", "sytrd_cluster", "steqr_lane", "lasr_rows"


@pytest.mark.parametrize("kernel, letter, n", [
    (KERNEL, "d", 16), (KERNEL, "z", 12), *((k, "d", 64) for k in STEPS), ("sytrd_rows", "z", 32),
    ("stedc_leaf", "d", 128), ("stedc_merge", "s", 128), ("stedc_merge", "d", 1024)])
def test_compiles_without_drift_or_spills(kernel, letter, n):
    """One row on Hopper; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    values = _tuned.constants(kernel, letter, n, 90)
    found = resources.measure([resources.label(kernel, letter, values)], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("letter, values, orders", [
    ("d", SMALL, ("8", "3")), ("z", SMALL, ("7", "1")),
    ("c", SMALL | {"ROWS": 7, "LANES": 2, "WIDTH": 1, "GROUPS": 7}, ("13", "9")),
    ("s", SMALL | {"ROWS": 9, "LANES": 1, "WIDTH": 1, "GROUPS": 5, "SPREAD": 1}, ("9", "8")),
    ("c", SMALL | {"ROWS": 9, "LANES": 1, "WIDTH": 1, "GROUPS": 5, "STAY": 1}, ("9", "8", "2"))])
def test_runs_on_the_cpu(tmp_path, letter, values, orders):
    """A few members to a warp; what else svd.cuh can is run by the singular values."""
    from tests.sim import build, run_svd
    library = build.build(tmp_path, KERNEL, letter, values, entry=run_svd.ENTRY)
    done = under_sanitizers("run_eig", library, KERNEL, letter, json.dumps(values), *orders)
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize("letter, reduce, values, turns, orders", [
    ("d", "sytrd_rows", {"N": 8, "EACH": 1, "WARPS": 1, "BLOCKS": 1}, ALONE, ("8", "5")),
    ("c", "sytrd_rows", {"N": 64, "EACH": 1, "WARPS": 2, "BLOCKS": 1}, PAIRS, ("7",)),
    ("d", "sytrd_rows", {"N": 24, "EACH": 3, "WARPS": 1, "BLOCKS": 1}, ALONE, ("7",)),
    ("s", "sytrd_rows", {"N": 96, "EACH": 1, "WARPS": 3, "BLOCKS": 1},
     {"ROWS": 72, "EACH": 1, "WAVE": 4, "WARPS": 3}, ("9",)),
    ("z", "sytrd_block", {"NB": 1, "WARPS": 1, "BLOCKS": 1}, ALONE, ("6", "1")),
    ("s", "sytrd_block", {"NB": 2, "WARPS": 4, "BLOCKS": 1}, PAIRS, ("34",))])
def test_tridiagonal_on_the_cpu(tmp_path, letter, reduce, values, turns, orders):
    """In registers and in shared memory, by panels or not; QL in more than one pass."""
    tridiagonal(tmp_path, letter, reduce, values, turns, orders)


@pytest.mark.parametrize("letter, panel, warps, clusters, turns, orders", [
    ("d", 2, 1, (1, 2, 4), ALONE, ("1", "2", "7")), ("z", 1, 1, (1, 2), ALONE, ("6",)),
    ("c", 4, 2, (1, 4), ALONE, ("8",)), ("s", 4, 2, (1, 2), PAIRS, ("33",))])
def test_tridiagonal_by_clusters(tmp_path, letter, panel, warps, clusters, turns, orders):
    """The same bits of one block, and of two, or of four that have next to nothing to do."""
    found = {tridiagonal(tmp_path, letter, "sytrd_cluster",
                         {"NB": panel, "WARPS": warps, "CLUSTER": blocks}, turns, orders)
             for blocks in clusters}
    assert len(found) == 1


def tridiagonal(folder, letter, reduce, values, turns, orders):
    from tests.sim import build, run_large
    kernels = {name: (str(build.build(folder, name, letter, v, entry=run_large.ENTRY)), v)
               for name, v in ((reduce, values), ("steqr_lane", QL), ("lasr_rows", turns))}
    done = under_sanitizers("run_tridiagonal", letter, json.dumps(kernels), *orders)
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-3000:]
    return done.stdout
