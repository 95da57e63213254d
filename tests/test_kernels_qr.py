"""The kernels of QR without a GPU: compiled, and run on the CPU under sanitizers."""

import json
from pathlib import Path

import pytest
from test_kernels import in_turn

from blasx import _tuned
from blasx.batched._block import dealt
from tests.sim.process import under_sanitizers

ROOT = Path(__file__).parent.parent
KERNELS = ("geqrf_small", "geqrf_block", "ormqr_small", "ormqr_block", "ormqr_warp", "orgqr_block",
           "orgqr_small", "gels_small", "gels_warp", "gels_solve", "lascl_batched", "gram_level")
MOST = {"geqrf_small": 16, "gels_small": 16, "ormqr_small": 16, "orgqr_small": 16, "ormqr_warp": 64,
        "gels_solve": 1024, "lascl_batched": 1024, "gram_level": 512}
# gels_warp begins at 33 rows
every_kernel = pytest.mark.parametrize("kernel", [k for k in KERNELS if k != "gels_warp"])
every_letter = pytest.mark.parametrize("letter", "sdcz")
# one block for 8 members, with room for 12
LANES = {"N": 8, "LANES": 8, "KEPT": 1, "WARPS": 3, "BLOCKS": 1}
PANELS = {"NB": 8, "ROWS": 2, "WARPS": 2, "BLOCKS": 1}
WARP = {"N": 40, "UPTO": 8, "LANES": 32, "NB": 8, "WARPS": 2, "BLOCKS": 1}
BLOCKS = {"COLUMNS": 4, "WARPS": 2, "BLOCKS": 1}
PROBLEMS = {  # constants that are quick to build, and sizes
    "geqrf_small": (LANES, ("8,8", "5,7", "7,4")),
    "geqrf_block": (PANELS, ("19,11", "9,12")),
    "geqrf_left": (PANELS | {"NB": 16}, ("37,29", "21,60")),
    "ormqr_block": (PANELS, ("19,18", "26,9")),
    "ormqr_strips": (dict(NB=16, COLUMNS=16, WARPS=2, BLOCKS=1), ("48,40", "37,29")),
    "ormqr_small": (dict(N=20, LANES=8, WARPS=1, BLOCKS=1), ("20,20", "17,9", "3,21")),
    "ormqr_warp": (WARP, ("40,1", "33,6", "9,4")),
    "orgqr_block": (PANELS, ("19,18", "26,9")),
    "orgqr_small": (dict(N=20, PARTS=1, WARPS=2, BLOCKS=1), ("20,20", "17,9", "19,3")),
    "gels_small": (LANES | {"C": 1}, ("8,8", "7,5", "6,1")),
    "gels_warp": (WARP, ("40,37", "33,9", "35,1", "36,36")),
    "gels_solve": (BLOCKS, ("37,5", "1,1")),
    "lascl_batched": ({"WARPS": 2}, ("9,9", "5,17", "13,13")),
    "gram_level": ({"WARPS": 2}, ("57,55", "41,35", "70,67")),
}


@every_kernel
@every_letter
def test_rows_reach_every_order_and_fit(kernel, letter):
    for n in range(1, MOST.get(kernel, 1024) + 1):
        row = _tuned.constants(kernel, letter, n, 90)
        if "ROWS" in row and kernel == "geqrf_block":
            assert 32 * row["WARPS"] * row["ROWS"] >= n
        assert 32 * row["WARPS"] <= 1024


@in_turn(KERNELS)
def test_compiles_without_drift_or_spills(kernel, letter):
    drift(kernel, letter, MOST.get(kernel, 128))


@pytest.mark.parametrize("kernel, letter, order", [
    *zip(["geqrf_shared"] * 4, "sdcz", (48, 96, 80, 56)), ("gels_shared", "d", 48),
    *zip(["geqrf_left"] * 5, "ssdcz", (160, 512, 256, 512, 256)),
    *zip(["ormqr_strips"] * 5, "sddcz", (300, 160, 1000, 300, 600)), ("larft_panels", "z", 300),
    *zip(["orgqr_strips"] * 4, "sdcz", (800, 300, 500, 300))])
def test_tiles_and_panels_compile_without_drift_or_spills(kernel, letter, order):
    drift(kernel, letter, order)


@pytest.mark.parametrize("room", [0, 16, 5000, 40000])
@pytest.mark.parametrize("multiple", [1, 4, 32])
def test_lanes_that_columns_are_dealt_to(room, multiple):
    """They have all columns, or all lanes there are; their teams have room; no reflectors, no
    columns: still a lane."""
    for threads in (32, 224, 480):
        for columns in range(100):
            lanes = dealt(threads, columns, multiple, room, 49152)
            assert 1 <= lanes <= threads and lanes >= min(columns, threads)
            assert threads // lanes * room <= 49152
            assert lanes == threads or lanes % multiple == 0


def drift(kernel, letter, order):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    row = _tuned.constants(kernel, letter, order, 90)
    label = resources.label(kernel, letter, row)
    wrong = list(resources.complaints(resources.measure([label], ["sm_90a"]),
                                      resources.recorded()))
    assert not wrong, "\n".join(wrong)


def simulate(folder, kernel, letter, plant=None, problem=None):
    from tests.sim import build, run_qr
    values, sizes = problem or PROBLEMS[kernel]
    library = build.build(folder, kernel, letter, values, plant, run_qr.ENTRY)
    return under_sanitizers("run_qr", library, kernel, letter, json.dumps(values), *sizes)


@in_turn(KERNELS[::-1])
def test_runs_on_the_cpu(tmp_path, kernel, letter):
    """Under AddressSanitizer and UBSan, four schedules, results judged (tests/sim/run_qr.py)."""
    run = simulate(tmp_path, kernel, letter)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("values, sizes", [
    ({"N": 12, "LANES": 16}, ("12,12", "9,11", "4,3")),
    ({"N": 64, "LANES": 32, "WARPS": 1}, ("64,64", "60,33")),
    ({"N": 20, "LANES": 4, "SLIM": 1}, ("20,4", "17,3", "9,2", "3,3")),
    ({"N": 12, "LANES": 1, "SLIM": 1, "WARPS": 1}, ("12,1", "7,1")),
    ({"N": 20, "LANES": 10, "WARPS": 2}, ("20,20", "17,19", "9,3")),
    ({"N": 12, "LANES": 6, "WARPS": 1}, ("12,12", "10,9", "3,5")),
    ({"N": 24, "LANES": 8, "WARPS": 1}, ("24,24", "21,23", "17,20")),
    ({"N": 12, "LANES": 4, "WARPS": 1}, ("12,12", "11,9")),
    ({"N": 48, "LANES": 64, "KEPT": 0, "WARPS": 2}, ("48,48", "34,41"))])
def test_windows_of_registers_run_on_the_cpu(tmp_path, values, sizes):
    run = simulate(tmp_path, "geqrf_small", "s", problem=(LANES | values, sizes))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, N, parts, warps, sizes", [
    ("s", 104, 1, 7, ("101,99", "104,3")), ("s", 40, 4, 5, ("40,37", "38,5")),
    ("d", 36, 8, 9, ("36,36", "33,2")), ("c", 20, 4, 1, ("20,19", "17,3")),
    ("z", 12, 2, 2, ("12,9", "9,9"))])
def test_q_of_more_rows_and_by_several_lanes_to_a_column(tmp_path, letter, N, parts, warps, sizes):
    run = simulate(tmp_path, "orgqr_small", letter,
                   problem=(dict(N=N, PARTS=parts, WARPS=warps, BLOCKS=1), sizes))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, values, sizes", [
    ("d", {"N": 20, "LANES": 4}, ("20,4", "17,3", "9,2")),
    ("d", {"N": 20, "LANES": 9, "C": 2, "WARPS": 1}, ("18,18", "20,17", "9,2")),
    ("z", {"N": 12, "LANES": 5, "C": 2, "WARPS": 2}, ("10,10", "12,9", "5,1")),
    ("s", {"N": 20, "LANES": 17, "WARPS": 2}, ("20,17", "17,16")),
    ("c", {"N": 12, "C": 2}, ("12,12", "11,9")),
    ("s", {"N": 40, "LANES": 32, "C": 2, "KEPT": 0, "WARPS": 1}, ("40,37",))])
def test_least_squares_by_lanes_on_the_cpu(tmp_path, letter, values, sizes):
    """Few columns of many rows, two columns to a lane, columns that are read twice."""
    run = simulate(tmp_path, "gels_small", letter, problem=(LANES | {"C": 1} | values, sizes))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, n, sizes", [
    *((x, 40, ("40,40", "37,29", "21,34", "7,3", "5,30", "33,1")) for x in "sdcz"),
    ("s", 32, ("32,32", "21,30")), ("s", 48, ("48,48", "47,41")), ("d", 48, ("48,48",)),
    ("z", 24, ("24,24", "17,20"))])
def test_tiles_in_shared_memory_run_on_the_cpu(tmp_path, letter, n, sizes):
    """Columns of an odd number of eights, of whole lines and of one and a half."""
    problem = {"N": n, "WARPS": 1, "BLOCKS": 1, "HEIGHTS": 1 + n % 3}, sizes
    run = simulate(tmp_path, "geqrf_shared", letter, problem=problem)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, n, sizes", [
    *((x, 40, ("40,40", "37,29", "33,1", "39,33")) for x in "sdcz"),
    ("s", 48, ("48,48", "47,41")), ("d", 32, ("32,32", "25,24"))])
def test_least_squares_in_shared_memory_run_on_the_cpu(tmp_path, letter, n, sizes):
    """The side beside an odd and an even number of tiles of columns, by itself, and past columns
    that are none."""
    problem = {"N": n, "WARPS": 1, "BLOCKS": 1, "HEIGHTS": 1 + n % 3}, sizes
    run = simulate(tmp_path, "gels_shared", letter, problem=problem)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter, panel, sizes", [
    *((x, 16, ("48,40", "37,29", "21,60", "70,3", "5,50", "16,50")) for x in "sdcz"),
    *((x, 32, ("80,72", "77,41", "41,90", "100,20")) for x in "sd"),
    *((x, 8, ("48,40", "37,29", "21,60")) for x in "dz")])
def test_panels_from_the_left_run_on_the_cpu(tmp_path, letter, panel, sizes):
    run = simulate(tmp_path, "geqrf_left", letter, problem=(PANELS | {"NB": panel}, sizes))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("kernel, values, letter, sizes", [
    *(("larft_panels", {}, x, ("37,29", "21,60", "40,40")) for x in "sdcz"),
    *(("larft_panels", {"NB": 32, "WARPS": 4}, x, ("77,41", "41,90", "100,20")) for x in "sz"),
    *((f"or{k}qr_strips", values, x, ("48,40", "37,29", "70,3", *more))
      for k, more in (("g", ("41,41",)), ("m", ("21,60", "5,50", "41,90")))
      for values, letters in (({"COLUMNS": 16}, "sdcz"), ({"COLUMNS": 32, "NB": 32}, "sd"),
                              ({"COLUMNS": 8, "WARPS": 3}, "dz")) for x in letters)])
def test_strips_run_on_the_cpu(tmp_path, kernel, values, letter, sizes):
    problem = {"NB": 16, "WARPS": 2, "BLOCKS": 1} | values, sizes
    run = simulate(tmp_path, kernel, letter, problem=problem)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


PLANTED = {  # bug: kernel, what the text says, what it shall say
    "a missing barrier": ("geqrf_block", "rows - p, count - p, p);\n            __syncthreads();",
                          "rows - p, count - p, p);"),
    "a sign": ("geqrf_small", "const real_t sign = re < 0", "const real_t sign = re > 0"),
    "tau not conjugated": ("geqrf_block", "mul(conj(h.tau), add(head", "mul(h.tau, add(head"),
    "a part read before it is there": (
        "geqrf_left", "i * K + l, w[i][l]);\n    __syncthreads();", "i * K + l, w[i][l]);"),
    "columns of the next strip": ("ormqr_strips", "left < COLUMNS ? left : COLUMNS",
                                  "left < COLUMNS ? left + 1 : COLUMNS"),
    "T of another panel": ("ormqr_strips", "parts, T + V.top * NB", "parts, T + tile * NB"),
    "T not conjugated": ("geqrf_left", "T[place<NB / 8>(c, l)] = conj(x)",
                         "T[place<NB / 8>(c, l)] = x"),
    "Q instead of its adjoint": ("gels_small", "w = mul(conj(h.tau), add(head",
                                 "w = mul(h.tau, add(head"),
    "tau not conjugated where Q is": ("ormqr_warp", "if (conjugated != adjoint) tau",
                                      "if (adjoint) tau"),
    "columns used before they are there": (
        "gels_warp", "await_groups<STAGES - 1>();\n            __syncwarp();",
        "await_groups<STAGES - 1>();"),
    "a row too many": ("ormqr_block", "moved<PB>(m - k, NB, QR.cs",
                       "moved<PB>(m - k + 1, NB, QR.cs"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_caught(tmp_path, bug):
    kernel, *plant = PLANTED[bug]
    assert simulate(tmp_path, kernel, "c", tuple(plant)).returncode
