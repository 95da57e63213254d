"""The benchmarks run, on a machine without a GPU too, and write what they say they write."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import blas

import blasx
from bench import (
    __main__,
    batched_blas,
    compare,
    overhead,
    report,
    rows,
    speed,
    sweep,
    timing,
    variants,
)
from blasx import _cuda, _sources, _tuned
from blasx._spaces import Gpu
from blasx._types import TYPES

SCHEMA = {"commit", "date", "gpu", "driver", "versions", "rows"}
ROW = {"family", "routine", "dtype", "shape", "variant", "ms", "error", "peers", "ratio"}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What `compare cpu --quick --json` wrote."""
    path = tmp_path_factory.mktemp("bench") / "cpu.json"
    command = ["compare", "cpu", "--quick", "--samples", "1", "--json", str(path)]
    assert __main__.main(command) == 0
    return path


def test_compare_writes_the_schema(quick):
    found = json.loads(quick.read_text())
    assert found.keys() == SCHEMA
    assert len(found["rows"]) > 30
    for row in found["rows"]:
        assert row.keys() == ROW
        assert row["ms"] > 0 and row["error"] < 30 and row["ratio"] > 0
        assert all(peer.keys() == {"ms", "error"} for peer in row["peers"].values())


def test_compare_nn_is_right_beside_numpy(tmp_path):
    path = tmp_path / "nn.json"
    command = ["compare", "nn", "--quick", "-p", "s", "--samples", "1", "--json", str(path)]
    assert __main__.main(command) == 0
    found = json.loads(path.read_text())
    assert found["gpu"] is None
    assert {row["routine"] for row in found["rows"]} == {"dense", "conv2d", "conv2d_forward",
                                                         "lstm"}
    assert all(row["ratio"] > 0 and "NumPy" in row["peers"] for row in found["rows"])
    assert __main__.main([*command, "--only", "dense,lstm"]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert {row["routine"] for row in rows} == {"dense", "lstm"}
    assert __main__.main([*command, "--only", "lstn"]) == 2


def test_report_draws_and_prints(quick, tmp_path, capsys):
    assert report.main([str(quick), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "cpu_d.png").read_bytes()[:4] == b"\x89PNG"
    printed = capsys.readouterr().out
    assert "| dgetrf | 8x8 | one call |" in printed and "SciPy loop" in printed


def test_report_passes_over_what_is_no_report(quick, tmp_path, capsys):
    (tmp_path / "text.json").write_text("no JSON")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.json").write_text("[]")
    others = [str(path) for path in tmp_path.glob("*.json") if path != quick]
    for mean in ((), ("--mean", "getrf")):
        assert report.main([*others, "--out", str(tmp_path), *mean]) == 0
    assert "no row of getrf" in capsys.readouterr().out
    assert report.main([str(quick), *others, "--mean", "getrf", "-p", "d"]) == 0
    assert "geometric mean of" in capsys.readouterr().out


def test_the_page_of_speed_is_what_the_results_say(quick, tmp_path, monkeypatch):
    written = (speed.FOLDER / "SPEED.md").read_text()
    command = written.partition("Made by `python -m bench speed ")[2].partition("`")[0]
    files = [speed.FOLDER.parent / name for name in command.split()]
    assert speed.page(speed.newest(files), files) == written
    monkeypatch.setattr(speed, "FOLDER", tmp_path)
    assert __main__.main(["speed", str(quick)]) == 0
    assert "| dgetrf_batched, 100 |" in (tmp_path / "SPEED.md").read_text()
    assert not (tmp_path / "speed.png").exists()  # which is the GPU's
    assert __main__.main(["speed", *map(str, files)]) == 0
    assert (tmp_path / "speed.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "SPEED.md").read_text() == written
    assert __main__.main(["speed", "nowhere.json"]) == 2


def test_of_two_runs_of_a_row_the_last_counts(quick, tmp_path):
    report = json.loads(quick.read_text())
    row = next(x for x in report["rows"] if x["ratio"])
    later = tmp_path / "later.json"
    later.write_text(json.dumps(report | {"rows": [row | {"ms": 3.0, "ratio": 0.125}]}))
    key = row["family"], speed.name(row), row["shape"]
    assert speed.newest([quick, later])[key]["ratio"] == 0.125
    assert speed.newest([later, quick])[key]["ratio"] != 0.125


def test_a_side_that_fails_is_reported_in_its_row():
    def missing():
        raise ImportError("no such library")

    good = timing.Side(lambda: (2.0,), lambda x: x + 1)
    row = timing.Row("add", "d", "1", {"v": lambda: good}, {"gone": missing, "there": lambda: good},
                     lambda x: abs(x - 3), timing.cpu_clock)
    [(line, text)] = compare.measured(row, "cpu", 3)
    assert line["peers"]["gone"] == {"ms": None, "error": "ImportError: no such library"}
    assert line["ratio"] > 0 and "gone: ImportError: no such library" in text


def test_a_side_that_fails_while_it_is_timed_stops_no_other():
    calls = []

    def fails_later(x):
        calls.append(x)
        if len(calls) > 3:
            raise MemoryError("full")
        return x + 1

    good = timing.Side(lambda: (2.0,), lambda x: x + 1)
    late = timing.Side(lambda: (2.0,), fails_later)
    found = timing.times({"late": lambda: late, "good": lambda: good}, lambda x: abs(x - 3),
                         timing.cpu_clock, 3)
    assert found["late"] == (None, None, "MemoryError: full") and found["good"][0] > 0


def test_a_wrong_answer_has_no_ratio():
    good, bad = (timing.Side(lambda: (2.0,), run) for run in (lambda x: x + 1, lambda x: x + 99))
    row = timing.Row("add", "d", "1", {"v": lambda: bad}, {"peer": lambda: good},
                     lambda x: abs(x - 3), timing.cpu_clock)
    [(line, text)] = compare.measured(row, "cpu", 3)
    assert line["ratio"] is None and "WRONG" in text


def test_gpu_families_say_that_they_want_a_gpu(capsys):
    try:
        timing.gpu()
    except timing.NoGpu:
        assert __main__.main(["compare", "batched", "--quick"]) == 2
        assert "NVIDIA GPU" in capsys.readouterr().err


def test_ladder(tmp_path, capsys):
    """The CPU's rung at least, in a table, a file and a picture."""
    path, picture = tmp_path / "ladder.json", tmp_path / "ladder.png"
    command = ["ladder", "-p", "sz", "--to", "256", "--samples", "1", "--json", str(path)]
    assert __main__.main([*command, "--png", str(picture)]) == 0
    found = json.loads(path.read_text())
    rows = {(row["dtype"], row["n"]): row for row in found["rows"] if row["rung"] == "CPU"}
    assert found.keys() == SCHEMA and len(rows) == 4
    assert all(row["gflops"] > 0 and row["error"] < 30 for row in rows.values())
    assert picture.read_bytes()[:4] == b"\x89PNG" and "CPU" in capsys.readouterr().out


@pytest.fixture
def on_numpy(monkeypatch):
    """A family of the GPU with NumPy in CuPy's place."""
    monkeypatch.setattr(timing, "gpu", lambda: np)
    monkeypatch.setattr(timing, "gpu_clock", lambda nbytes: timing.cpu_clock)


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("routine", batched_blas.ROUTINES)
def test_products_and_triangles_of_batches(on_numpy, routine, letter):
    """Our side's answer is right by the row's check, and one that is not is told."""
    row = batched_blas.row(routine, letter, 5, 60)
    side = row.ours["blasx"]()
    answer = side.answer(side.run(*side.operands()))
    assert row.check(answer) < 5 and row.floor_bytes > 0
    answer[0] *= 1.01
    assert row.check(answer) > 30


@pytest.mark.parametrize("letter", "sd")
def test_trsm_of_cublas_is_called_as_it_is_meant(on_numpy, monkeypatch, letter):
    def call(name, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, batch):
        assert name == letter.upper() + "trsmBatched" and lda == ldb == m == n == 6 and batch == 60
        for k in range(batch):
            assert a[k].flags.f_contiguous and b[k].flags.f_contiguous
            b[k] = getattr(blas, letter + "trsm")(alpha[0], a[k], b[k], side, 1 - uplo, trans, diag)

    monkeypatch.setattr(_cuda, "blas", call)
    monkeypatch.setattr(batched_blas, "pointers", lambda x: SimpleNamespace(
        data=SimpleNamespace(ptr=x)))
    row = batched_blas.row("trsm", letter, 6, 60)
    side = row.peers["cuBLAS"]()
    operands = side.operands()
    assert row.check(side.answer(side.run(*operands))) < 5 and side.overwrites == (1,)


def test_overhead(tmp_path):
    path = tmp_path / "overhead.json"
    assert overhead.main(["--calls", "20", "--json", str(path)]) == 0
    assert all(row["us"] > 0 for row in json.loads(path.read_text())["rows"])


def test_no_command_prints_the_usage(capsys):
    assert __main__.main([]) == 2 and "compare" in capsys.readouterr().out


def test_what_is_compiled_ahead_are_programs():
    model = Gpu("NVIDIA H200", 13000, 90, 232448)
    programs = timing.of_rows("sd", range(1, 201), sweep.ROUTINES, model)
    assert len(programs) > 500
    for kernel, letter, values in programs:
        assert "__global__" in _sources.program(kernel, TYPES[letter].cpp, dict(values)), kernel
    few = timing.of_rows("s", {20}, {"trsm"}, model)
    assert few < programs and {dict(v)["N"] for k, _, v in few if k == "trsm_small"} == {20}
    assert {k for k, _, _ in few} <= {"trsm_small", "trsm_block", "trsm_split"} and len(few) > 3


def test_a_high_step_of_the_sweep_is_timed_again(monkeypatch):
    """One that a hiccup made is gone, another stays, and is timed with many members; what is as
    allowed is not timed again."""
    asked, sizes = [], []

    def times(letter, nbytes, orders, routines):
        asked.append((orders, routines))
        sizes.append(nbytes)
        us = {"heevd": {n: 1.0 for n in orders}, "gesvd": {n: n / 4 for n in orders}}
        return {k: v for k, v in us.items() if sweep.real(k) in routines}

    monkeypatch.setattr(sweep, "times", times)
    found = {"heevd": {8: 1.0, 9: 1.0, 10: 5.0, 11: 1.2}, "gesvd": {20: 1.0, 21: 5.5}}
    sweep.again("c", 1e6, found)
    assert asked == [([9], {"syevd"}), ([10], {"syevd"}), ([20], {"gesvd"}), ([21], {"gesvd"})]
    assert found == {"heevd": {8: 1.0, 9: 1.0, 10: 1.0, 11: 1.2}, "gesvd": {20: 1.0, 21: 5.25}}
    assert max(rise for _, rise in sweep.steps(found["gesvd"])) > 3
    monkeypatch.setattr(timing, "gpu", lambda: SimpleNamespace(cuda=SimpleNamespace(
        Device=lambda: SimpleNamespace(attributes={"MultiProcessorCount": 132}, mem_info=room))))
    for room, expected in (((10**12, 0), [60 * 132 * 8 * n * n for n in (20, 21)]),
                           ((10**6, 0), [1e6, 1e6])):
        del sizes[:]
        assert sweep.in_whole_waves("c", 1e6, found) == {"gesvd": {20: 5.0, 21: 5.25}}
        assert sizes == expected


def test_what_is_slower_than_in_a_sweep_before(capsys):
    before = {"sgemm": {"1": 1.0, "2": 2.0, "3": 3.0}, "dgemm": {"1": 1.0}}
    now = {"sgemm": {1: 1.05, 2: 3.0, 4: 9.0}, "zgemm": {1: 9.0}}
    assert list(sweep.slower(now, before)) == [("sgemm", 2, 1.5)]
    for file in "README.md", "bench/nothing.json":
        with pytest.raises(SystemExit):
            sweep.main(["--before", file])
        assert f"{file} is not the file of a sweep" in capsys.readouterr().err


def test_the_sweep_refuses_a_routine_that_it_has_not(capsys):
    with pytest.raises(SystemExit) as stop:
        sweep.main(["getrf", "zgesv"])
    assert stop.value.code == 2 and "zgesv: not among" in capsys.readouterr().err


def test_variants_are_timed_beside_the_row(monkeypatch):
    """On the CPU, by a clock that reads the constants."""
    def clock(nbytes):
        return lambda side: lambda: float(
            _tuned._forced.get(("getri_shared", "s"), {"BLOCKS": 7})["BLOCKS"])

    monkeypatch.setattr(timing, "gpu", lambda: np)
    monkeypatch.setattr(variants._clock, "gpu_clock", clock)
    made, model = [], Gpu("NVIDIA H200", 13000, 90, 232448)
    some = variants.variants("getri_shared", "s", 20, model, {"R": 16, "GROUP": 2})
    assert some and all(v["R"] == 16 and v["GROUP"] == 2 and v.get("TIGHT", 1) for v in some)
    row, *us = variants.times("getri_shared", "s", 20, some, 1e5, made.extend, print)
    assert made == some and row == 7e3 / 200 and us == [1e3 * v["BLOCKS"] / 200 for v in some]
    assert variants.pairs("R=16,GROUP=2") == {"R": 16, "GROUP": 2}


def test_rows_of_larger_orders_are_tried_where_they_differ(monkeypatch):
    """On the CPU, by a clock that reads the row; those are left out that give another answer in one
    of two arrays, have no room, or do not fit the order."""
    model = Gpu("NVIDIA H200", 13000, 90, 232448)
    numbers = {18: 4, 19: 8, 20: 8, 21: 2, 22: 16, 23: 3}

    def row(n):
        return {"LANES": numbers[n], "R": 2, "DOWN": 8, "WARPS": 4}

    def why(kernel, letter, n, *more):
        return {"to": n} | row(n), "here"

    def lanes():
        return _tuned.row("gemv_batched", "s", 18, model)["LANES"]

    def call():
        if lanes() == 2:
            raise RuntimeError("no room")
        return np.ones(3), np.full(3, 1.0 + (lanes() == 16)), None

    monkeypatch.setattr(_tuned, "why", why)
    monkeypatch.setattr(sweep, "matrices", lambda letter, n, batch: np.zeros((batch, n, n), "f4"))
    monkeypatch.setattr(sweep, "calls", lambda letter, a: {"gemv": call, "trsv": call})
    monkeypatch.setattr(timing, "release", lambda: None)
    monkeypatch.setattr(rows._clock, "gpu_clock", lambda nbytes: lambda side: lanes)
    with rows.as_of(18, 19) as asked:
        assert lanes() == 8 and asked == {"gemv_batched": row(19)}
    assert lanes() == 4
    found = rows.times("s", 18, {"gemv"}, 5, 1e5)
    of = {m: (1e3 * numbers[m] / rows.LEAST, {"gemv_batched": row(m)}) for m in (18, 19)}
    assert found == {"gemv": of}
    assert rows.described(of[18][1], of[19][1]) == "gemv_batched LANES=4 R=2 DOWN=8 WARPS=4"
    values, vectors = np.ones((2, 3)), np.ones((2, 3, 3))
    assert rows.agree("syevd", (values, vectors), (values, -vectors))
    assert not rows.agree("syevd", (values, vectors), (1.1 * values, vectors))
    assert not rows.agree("gesv", (vectors, values * np.nan), (vectors, values))
    with pytest.raises(SystemExit) as stop:
        rows.main(["zgesv"])
    assert stop.value.code == 2


@pytest.mark.parametrize(("words", "said"), [
    (["nosuch"], "nosuch: not among"), (["getri_shared", "-p", "dq"], "q: not among"),
    (["getri_shared", "--only", "R"], "R: must be NAME=N")])
def test_variants_refuse_what_there_is_not(capsys, words, said):
    with pytest.raises(SystemExit) as stop:
        variants.main(words)
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("letter", "sdcz")
def test_the_sweep_calls_what_it_says(letter, monkeypatch):
    """On the CPU; members are definite taken by either triangle."""
    class Random(np.random.RandomState):
        def uniform(self, low, high, shape, dtype):
            return super().uniform(low, high, shape).astype(dtype)

    monkeypatch.setattr(timing, "gpu", lambda: SimpleNamespace(
        random=SimpleNamespace(RandomState=Random), empty=np.empty, empty_like=np.empty_like))
    for n in (1, 2, 9):
        a = sweep.matrices(letter, n, 5)
        calls = sweep.calls(letter, a)
        assert {sweep.real(x) for x in calls} == sweep.ROUTINES
        answers = {name: call() for name, call in calls.items()}
        for name in "getrf", "gesv", "potrf", "posv":
            assert not answers[name][-1].any(), name
        upper = a.conj().swapaxes(1, 2).copy()
        assert a.dtype == TYPES[letter].dtype
        assert not getattr(blasx, letter + "potrf_batched")(upper, 1)[-1].any()
