"""The kernels without a GPU: compiled for every architecture; run on the CPU under sanitizers."""

import json
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

from blasx import _sources, _spaces, _tuned
from blasx.batched._block import upper_bytes
from tests.sim.process import under_sanitizers

ROOT = Path(__file__).parent.parent
KERNELS = sorted(kernel for kernel, letters in _tuned.table(90).items()
                 if "LR" in next(iter(letters.values()))[0])  # those of lanes.cuh
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_letter = pytest.mark.parametrize("letter", "sdcz")


def in_turn(kernels):
    """Each kernel in a real and in a complex type, now these, now those: all would take twice as
    long, and what the types do differently is the same in all kernels."""
    return pytest.mark.parametrize("kernel, letter", [
        (kernel, letter) for kernel, pair in zip(kernels, cycle(("sz", "dc"))) for letter in pair])


def constants(kernel, letter, n):
    return _tuned.constants(kernel, letter, n, 90)


# -- the tuned table


@every_kernel
@every_letter
def test_rows_reach_every_order_and_fit(kernel, letter):
    for n in range(1, _tuned.LARGEST + 1):
        if kernel == "gesv_small" and not _tuned.row(kernel, letter, n, 90):
            continue  # getrf_small and getrs_small
        row = constants(kernel, letter, n)
        assert n <= row["N"] and _spaces.fits(kernel, letter, n, row, _spaces.HOPPER)


def test_an_unknown_architecture_uses_the_nearest_table():
    assert _tuned.table(80) == _tuned.table(90) == _tuned.table(100)


def test_every_kernel_waits_for_the_stream_first():
    """Launches overlap (kernels/launch.cuh): before that word nothing may touch memory."""
    for file in (ROOT / "kernels").glob("*.cu"):
        entry = _sources.source(file.name).partition('extern "C"')[2]
        assert entry.partition("\n{\n")[2].startswith("    wait_for_stream();\n"), file.name


def test_headers_are_spliced_once():
    for file in _sources.FOLDER.glob("*.cu"):
        text = _sources.source(file.name)
        assert "#include" not in text and text.count("struct complex {") <= 1


# -- compiled


@in_turn(KERNELS)
def test_compiles_without_drift_or_spills(kernel, letter):
    """The smallest team on every architecture, the largest on Hopper; all of them is
    `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    small, large = (resources.label(kernel, letter, constants(kernel, letter, n)) for n in (4, 32))
    found = resources.measure([small])
    found.setdefault(large, {}).update(resources.measure([large], ["sm_90a"])[large])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("kernel", "letter"), [
    ("getrf_small", "d"), ("potrf_small", "c"), ("getrf_shared", "s"), ("geqrf_small", "z"),
    ("gesvd_vectors", "d"), ("trsm_small", "s"), ("gemm_tiled", "s"), ("gemm_split", "s"),
    ("gemm_block", "h"), ("attention_forward", "b"), ("softmax_rows", "h"), ("activation", "s")])
def test_compiles_for_gpus_before_ampere(kernel, letter):
    """Nothing has been run there: kernels/turing.cuh has what tensor cores and copies do else."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    row = next(r for r in _tuned.table(90)[kernel][letter] if _tuned.capitals(r))
    registers, _ = resources.resources(kernel, letter, _tuned.capitals(row), "sm_75")
    assert registers <= 255


# -- run, on the CPU


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("sim")
    for name in ("equal", "ragged"):
        (made / name).mkdir()
    return made


def simulate(folder, kernel, letter, values, orders, plant=None):
    """Build the variant of these constants, or for an order, and run it; the finished process."""
    from tests.sim.build import build
    if isinstance(values, int):
        values = constants(kernel, letter, values)
    shared = upper_bytes(letter, values) if kernel == "potrf_small" else 0
    library = build(folder, kernel, letter, values, plant, shared=shared)
    return under_sanitizers("run", library, kernel, letter, json.dumps(values), *orders)


@in_turn(KERNELS[::-1])
def test_runs_on_the_cpu(folder, kernel, letter):
    """Under AddressSanitizer and UBSan, four schedules, results judged (tests/sim/run.py)."""
    for n, orders in ((8, (8, 5, 7)), (32, (32, 17))):
        run = simulate(folder, kernel, letter, n, orders)
        assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@every_letter
@pytest.mark.parametrize("n", [8, 15, 24])  # packs of columns, lines, tiles
def test_getrf_small_runs_on_the_cpu_without_pivots(folder, letter, n):
    values = constants("getrf_small", letter, n) | {"UNPIVOTED": 1}
    run = simulate(folder, "getrf_small", letter, values, (n, n - 3, 4))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("kernel", ["getrf_small", "gesv_small", "posv_small"])
@pytest.mark.parametrize("letter, CV", [("s", 2), ("d", 1)])
def test_members_stored_as_one_line(folder, kernel, letter, CV):  # noqa: N803
    """lanes.cuh's ONE_LINE: right, and taken: what is wrong with the line is seen."""
    values = dict(N=12, LR=4, LC=2, CV=CV, WARPS=2, BLOCKS=1, ONE_LINE=1)
    for plant in (None, ("line().x + whole.of_member()", "line().x")):
        run = simulate(folder, kernel, letter, values, (9, 11, 8), plant)
        assert ("ok" in run.stdout) == (plant is None), run.stderr[-3000:]


@every_kernel
@pytest.mark.parametrize("letter, N, LR", [("s", 9, 3), ("d", 11, 6)])
def test_members_loaded_as_one_line(folder, kernel, letter, N, LR):  # noqa: N803
    """The same of 2, by teams with whole rows, of which lanes may be left over."""
    values = dict(N=N, LR=LR, LC=1, CV=1, WARPS=2, BLOCKS=1, ONE_LINE=2)
    for plant in (None, ("line().x + whole.of_member()", "line().x")):
        run = simulate(folder, kernel, letter, values, (N, N - 2, 1), plant)
        assert ("ok" in run.stdout) == (plant is None), run.stderr[-3000:]


STAGED = {"a lane alone": ("getrf_small", "s", dict(N=8, LR=1, CV=4)),
          "a lane alone, in doubles": ("getrf_small", "d", dict(N=4, LR=1, CV=2)),
          "a lane alone, without pivots": ("getrf_small", "c", dict(N=4, LR=1, CV=2, UNPIVOTED=1)),
          "a lane alone, by a line": ("getrf_small", "s", dict(N=7, LR=1, CV=1, ONE_LINE=2)),
          "packs": ("getrf_small", "s", dict(N=16, LR=8, CV=4)),
          "a row to a lane": ("gesv_small", "d", dict(N=8, LR=8, CV=2)),
          "a member to a lane": ("potrf_small", "s", dict(N=8, LR=1, CV=4)),
          "without pivots": ("getrf_small", "d", dict(N=16, LR=16, CV=2, UNPIVOTED=1)),
          "the triangle": ("posv_small", "c", dict(N=8, LR=2, CV=2)),
          "lanes left over": ("getrf_small", "z", dict(N=7, LR=7, CV=1, ONE_LINE=2)),
          "more, packs": ("getrf_small", "s", dict(N=16, LR=8, CV=4, STAGED=2)),
          "more, in doubles": ("gesv_small", "d", dict(N=8, LR=2, CV=2, STAGED=2)),
          "more, a row to a lane": ("gesv_small", "c", dict(N=8, LR=8, CV=2, STAGED=2)),
          "more, a warp": ("getrf_small", "s", dict(N=32, LR=32, CV=4, STAGED=2)),
          "more, without pivots": ("getrf_small", "d",
                                   dict(N=16, LR=16, CV=2, STAGED=2, UNPIVOTED=1)),
          "more, lanes left over": ("gesv_small", "z", dict(N=7, LR=7, CV=1, STAGED=2, ONE_LINE=2)),
          "more, rows past the last": ("getrf_small", "s",
                                       dict(N=17, LR=9, CV=1, STAGED=2, ONE_LINE=2))}


@pytest.mark.parametrize("kernel, letter, values", STAGED.values(), ids=STAGED.keys())
def test_rows_by_shared_memory(folder, kernel, letter, values):
    """lanes.cuh's STAGED, and lanes alone: right, and what is wrong is seen."""
    values = dict(LC=1, WARPS=2, BLOCKS=1, STAGED=1) | values
    N, LR = values["N"], values["LR"]  # noqa: N806
    plants = [None]
    if LR > 1:
        indent = (12 if kernel.startswith("po") else 4) * " "
        plants += [(f"__syncwarp();\n{indent}read_row(staged", "read_row(staged")]
        if "UNPIVOTED" in values:  # nothing else holds lanes up from one step to the next
            plants += [("[threadIdx.x / 32][k % 2]", "[threadIdx.x / 32][0]")]
        elif values["STAGED"] == 2 and LR < N:
            plants += [("inverse, pick(tag, at)", "inverse, tag[0]")]
            if N % (2 * LR) == 0:  # rows 0 and N / 2, which tie, are one lane's
                plants += [("at = i, inverse = near_reciprocal(c[i])", "at = i")]
    elif kernel == "getrf_small" and "UNPIVOTED" not in values:
        plants += [("(hi > most)", "(hi >= most)")]  # a tie to the last
    if "ONE_LINE" not in values:
        plants += [("apart_row(e / N) + e % N, A + e", "apart_row(e / N) + e % N, A")]
    for plant in plants:
        run = simulate(folder, kernel, letter, values, (N, N - 3), plant)
        assert ("ok" in run.stdout) == (plant is None), (plant, run.stderr[-3000:])


@every_kernel
@pytest.mark.parametrize("letter, N", [("d", 32), ("c", 24)])
def test_members_of_tiles_loaded_as_one_line(folder, kernel, letter, N):  # noqa: N803
    """The same where a warp has tiles (tiles.cuh), rows and columns past the member zero."""
    values = dict(N=N, LR=8, LC=4, CV=2, WARPS=2, BLOCKS=1, ONE_LINE=2)
    plants = [None, ("line().x + whole.of_member()", "line().x")]
    if kernel in ("getrf_small", "gesv_small"):  # a row past the member would be a pivot's
        plants += [("!TILES || wanted(row(i), col(s))", "true")]
    for plant in plants:
        run = simulate(folder, kernel, letter, values, (N - 1, N - 7), plant)
        assert ("ok" in run.stdout) == (plant is None), run.stderr[-3000:]


@pytest.mark.parametrize("letter, N, WARPS", [("s", 40, 2), ("d", 40, 1), ("s", 72, 2)])
def test_a_warps_member_as_one_line(folder, letter, N, WARPS):  # noqa: N803
    """cholesky_large.cuh's ONE_LINE: right, and taken."""
    values = dict(N=N, LR=8, LC=4, CV=2, WARPS=WARPS, BLOCKS=1, ONE_LINE=1)
    for plant in (None, ("upper().line + before(A.p)", "upper().line")):
        run = simulate(folder, "potrf_small", letter, values, (N - 7, N - 1, N - 4), plant)
        assert ("ok" in run.stdout) == (plant is None), run.stderr[-3000:]


RAGGED = {"a lane alone": ("getrf_small", "d", dict(N=5, LR=1, STAGED=1)),
          "staged": ("gesv_small", "s", dict(N=8, LR=4, STAGED=1)),
          "staged, more": ("getrf_small", "d", dict(N=8, LR=8, STAGED=2)),
          "staged, more, lanes left over": ("gesv_small", "c", dict(N=11, LR=6, STAGED=2)),
          "staged, more, without pivots": ("getrf_small", "s",
                                           dict(N=8, LR=4, STAGED=2, UNPIVOTED=1)),
          **{f"{kernel} {letter}": (kernel, letter, {}) for kernel in KERNELS for letter in "dc"}}


@pytest.mark.parametrize("kernel, letter, values", RAGGED.values(), ids=RAGGED.keys())
def test_a_ragged_batch_gives_members_what_they_give_alone(folder, kernel, letter, values):
    """The same kernel compiled RAGGED, members of all orders (tests/sim/run_ragged.py)."""
    from tests.sim.build import build
    values = dict(LC=1, CV=1, WARPS=2, BLOCKS=1) | values if values else constants(
        kernel, letter, 8)
    libraries = [build(folder / name, kernel, letter, values | more)
                 for name, more in (("equal", {}), ("ragged", {"RAGGED": 1}))]
    run = under_sanitizers("run_ragged", *libraries, kernel, letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@every_letter
def test_small_products_run_on_the_cpu(folder, letter):
    """gemm_small under the same sanitizers and schedules (tests/sim/run_gemm.py)."""
    from tests.sim import build, run_gemm
    for row in _tuned.table(90)["gemm_small"][letter]:
        library = build.build(folder, "gemm_small", letter, {"TILE": row["TILE"]},
                              entry=run_gemm.ENTRY)
        run = under_sanitizers("run_gemm", library, letter, row["TILE"])
        assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


FACTOR = "lu(a, tag, f, m, n);"
PLANTED = {  # bug: what the text says, what it shall say, what is reported
    "a row past the end": ("i < rows && j < cols", "i <= rows && j < cols", "AddressSanitizer"),
    "a lane that leaves": (FACTOR, "{ if (row(RN - 1) == N - 1) return; " + FACTOR + " }",
                           "a warp is split"),
    "a tie to the last": ("team_min(low == second ? tag : ALL)",
                          "team_max(low == second && tag != ALL ? tag : 0)", "AssertionError"),
    "a shift past the word": ("unsigned(u.tiny) << k", "unsigned(u.tiny) << (k + 32)",
                              "shift exponent"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(folder, bug):
    *plant, seen = PLANTED[bug]
    run = simulate(folder, "getrf_small", "d", 8, (5,), tuple(plant))
    assert run.returncode and seen in run.stderr, run.stderr[-2000:]


BARRIER = """
extern "C" __global__ void turn(const double* a, double* b)
{
    __shared__ double s[64];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    b[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" void sim_turn(int schedule, const uint64_t* numbers) {
    sim::launch(turn, 1, 64, schedule, numbers);
}
"""


@pytest.mark.parametrize("barrier", [True, False])
def test_a_missing_barrier_is_seen(tmp_path, barrier):
    """Shared memory starts as nan, and some schedule reads it before it is written."""
    import numpy as np
    from cffi import FFI

    from tests.sim.build import SCHEDULER, SHIM
    text = BARRIER if barrier else BARRIER.replace("__syncthreads();", "")
    cpp, library = tmp_path / "turn.cpp", tmp_path / "turn.so"
    cpp.write_text(f'#include "{SHIM}"\n{text}')
    subprocess.run(["g++", "-std=c++17", "-fPIC", "-shared", cpp, SCHEDULER, "-o", library],
                   check=True)
    ffi = FFI()
    ffi.cdef("void sim_turn(int, const uint64_t *);")
    dll = ffi.dlopen(str(library))
    a, right = np.arange(64.0), []
    for schedule in range(4):
        b = np.zeros(64)
        dll.sim_turn(schedule, ffi.new("uint64_t[]", [a.ctypes.data, b.ctypes.data]))
        right.append(np.array_equal(b, a[::-1]))
    assert all(right) is barrier


# -- the disk cache, which needs CuPy's NVRTC but no GPU

COMPILE = """
import hashlib, sys
from blasx import _sources
from blasx._kernel import compiled
text = _sources.program("potrf_small", "double", dict(N=4, LR=2, LC=2, CV=2, WARPS=1, BLOCKS=1))
print(hashlib.sha256(compiled(text, "sm_90a")).hexdigest())
"""


def test_processes_share_the_cache_and_mend_it(tmp_path):
    """Four at once compile the same kernel into an empty cache; a damaged file is replaced."""
    pytest.importorskip("cupy")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def start():
        return subprocess.Popen([sys.executable, "-c", COMPILE], cwd=ROOT, env=environment,
                                stdout=subprocess.PIPE, text=True)

    found = {p.communicate()[0] for p in [start() for _ in range(4)]}
    (file,) = (tmp_path / "blasx").iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:100], whole[:-1], whole[:40] + b"\xff" + whole[41:], b""):
        file.write_bytes(damaged)
        found.add(start().communicate()[0])
        assert file.read_bytes() == whole
    assert len(found) == 1 and len(found.pop().strip()) == 64
