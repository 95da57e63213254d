"""Singular values on the GPU without one: kernels compiled, and run on the CPU under sanitizers."""

import json
from itertools import product

import pytest

from blasx import _tuned
from blasx._types import TYPES
from blasx.batched._block import svd_column, teams_of
from tests.sim.process import under_sanitizers

KERNELS = "gesvd_vectors", "gesvd_values"
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_letter = pytest.mark.parametrize("letter", "sdcz")
SMALL = {"ROWS": 2, "LANES": 4, "WIDTH": 4, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
BLOCK = {"ROWS": 3, "LANES": 8, "WIDTH": 2, "GROUPS": 12, "WARPS": 3, "SHARED": 1, "BLOCKS": 1}
FAR = {"ROWS": 1, "LANES": 32, "WIDTH": 1, "GROUPS": 2, "WARPS": 2, "SHARED": 0, "BLOCKS": 1}
FIVES = {"ROWS": 3, "LANES": 4, "WIDTH": 5, "GROUPS": 2, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
SIXES = {"ROWS": 4, "LANES": 2, "WIDTH": 6, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
THREES = {"ROWS": 2, "LANES": 4, "WIDTH": 3, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
ODD = {"ROWS": 5, "LANES": 2, "WIDTH": 1, "GROUPS": 5, "WARPS": 2, "SHARED": 1, "BLOCKS": 1}
SEVENS = {"ROWS": 4, "LANES": 4, "WIDTH": 1, "GROUPS": 7, "WARPS": 1, "SHARED": 0, "BLOCKS": 1}
WHOLE = {"ROWS": 9, "LANES": 1, "WIDTH": 1, "GROUPS": 5, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
TWOS = {"ROWS": 8, "LANES": 1, "WIDTH": 2, "GROUPS": 2, "WARPS": 2, "SHARED": 1, "BLOCKS": 1}
TILES = {"ROWS": 2, "LANES": 32, "WIDTH": 8, "GROUPS": 2, "WARPS": 2, "BLOCKS": 1}
RUNS = [(SMALL, ("8,8", "7,5", "8,3", "1,1")), (BLOCK, ("13,11", "16,9")), (FAR, ("17,6",)),
        (FIVES, ("12,11", "10,5")), (SIXES, ("8,8", "7,2")), (THREES, ("6,6", "8,5")),
        (ODD, ("10,9", "9,9", "7,3")), (SEVENS, ("14,13", "16,14", "9,2")),
        (WHOLE, ("9,9", "9,8", "5,2")), (TWOS, ("8,8", "8,5")),
        *((shape | {"SPREAD": 1}, sizes) for shape, sizes in (
            (ODD, ("10,9", "5,3")), (FIVES, ("12,11", "10,5")), (WHOLE, ("9,9", "7,2")),
            (BLOCK, ("13,11",)), (SMALL, ("8,7",)))),
        *((shape | {"STAY": 1}, sizes) for shape, sizes in (
            (ODD, ("10,9", "9,9", "7,3")), (WHOLE | {"SPREAD": 1}, ("9,9", "9,8", "5,2")),
            (FIVES, ("12,12", "11,9")), (SMALL, ("8,7", "5,1")), (TWOS, ("8,8", "8,5")),
            (SEVENS, ("14,13", "16,14")), (BLOCK, ("13,11", "24,20")),
            (FAR, ("4,4",)), (BLOCK | {"WIDTH": 3, "GROUPS": 8, "WARPS": 2}, ("13,11",)))),
        *((TILES | {"SHARED": shared, "TILED": tiles}, sizes) for shared, tiles, sizes in (
            (1, 1, ("35,33", "17,5")), (0, 2, ("64,9", "27,26")), (1, 4, ("30,17",))))]


@every_kernel
@every_letter
def test_rows_fit(kernel, letter):
    """A row's lanes hold its longest columns, and what lies in shared memory fits there."""
    word = {"s": 4, "d": 8, "c": 8, "z": 16}[letter]
    for row in _tuned.table(90)[kernel][letter]:
        if not _tuned.capitals(row):   # past which the polar factor is faster
            continue
        assert row["LANES"] * row["ROWS"] >= row["to"]
        width = 2 * row["WIDTH"]
        columns = -(-row["to"] // width) * width
        column = (row["LANES"] * row["ROWS"] * (1 + (kernel == "gesvd_vectors"))) * word + 36
        members = teams_of(row)
        assert members >= 1 and (not row["SHARED"] or members * columns * column <= 227 * 1024)


@every_letter
def test_spread_columns_meet_no_bank_twice(letter):
    """The packs that groups of a team read together, of blocks that follow each other."""
    for lanes, width, rows, vectors in product((1, 2, 4, 8, 16), range(1, 7), range(1, 19), (0, 1)):
        values = {"LANES": lanes, "WIDTH": width, "ROWS": rows, "SPREAD": 1}
        pack, long = svd_column(letter, vectors, values)
        nbytes = pack * TYPES[letter].dtype.itemsize
        assert long % pack == 0 and long >= lanes * rows * (1 + vectors)
        banks, twice = 128 // nbytes, max(1, (width & -width) // lanes)
        groups = range(banks // lanes // twice)
        met = {(g * width * long // pack + lane) % banks for g in groups for lane in range(lanes)}
        assert lanes >= banks or len(met) == lanes * len(groups)


@every_kernel
@pytest.mark.parametrize("letter", "dz")
def test_compiles_without_drift_or_spills(kernel, letter):
    """One row on Hopper; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    values = _tuned.constants(kernel, letter, 64, 90)
    found = resources.measure([resources.label(kernel, letter, values)], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("svd")


@pytest.mark.parametrize("kernel, letter, run", [
    ("gesvd_vectors", "s", 0), ("gesvd_vectors", "d", 1), ("gesvd_vectors", "z", 0),
    ("gesvd_vectors", "c", 2), ("gesvd_values", "d", 0), ("gesvd_values", "c", 1),
    ("gesvd_vectors", "d", 3), ("gesvd_vectors", "s", 4), ("gesvd_vectors", "c", 5),
    ("gesvd_vectors", "z", 6), ("gesvd_values", "s", 6), ("gesvd_vectors", "c", 7),
    ("gesvd_vectors", "d", 8), ("gesvd_values", "c", 8), ("gesvd_vectors", "s", 9),
    ("gesvd_vectors", "s", 10), ("gesvd_vectors", "d", 11), ("gesvd_vectors", "c", 12),
    ("gesvd_values", "z", 13), ("gesvd_vectors", "s", 14), ("gesvd_vectors", "d", 15),
    ("gesvd_vectors", "c", 16), ("gesvd_values", "s", 17), ("gesvd_vectors", "z", 18),
    ("gesvd_vectors", "s", 19), ("gesvd_values", "d", 20), ("gesvd_vectors", "d", 21),
    ("gesvd_values", "c", 22), ("gesvd_vectors", "d", 23), ("gesvd_vectors", "d", 24),
    ("gesvd_vectors", "z", 25), ("gesvd_values", "c", 25), ("gesvd_vectors", "s", 26),
    ("gesvd_vectors", "c", 26)])
def test_runs_on_the_cpu(folder, kernel, letter, run):
    """Members of a warp, of a block, columns of a lane each, columns in global memory."""
    from tests.sim import build, run_svd
    values, shapes = RUNS[run]
    library = build.build(folder, kernel, letter, values, entry=run_svd.ENTRY)
    done = under_sanitizers("run_svd", library, kernel, letter, json.dumps(values), *shapes)
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-3000:]


def test_vectors_of_a_batch(simulated):
    """Jacobi of A times the eigenvectors of A^H A, and the polar factor, on a simulated GPU
    (tests/sim/run_gesvd.py)."""
    run = under_sanitizers("run_gesvd", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_polar_way_of_one_matrix(simulated):
    """gesdd of one matrix on a simulated GPU (tests/sim/run_gesdd.py)."""
    run = under_sanitizers("run_gesdd", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
