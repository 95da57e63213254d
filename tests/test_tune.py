"""The autotuner and the table it writes, without a GPU: problems on NumPy arrays, a clock that is a
function of the constants."""

import io
import json
import os
import random
import subprocess
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from blasx import _cache, _spaces, _tuned, tune
from blasx._spaces import HOPPER, SPACES
from blasx._types import TYPES

ROOT = Path(__file__).parent.parent
OTHER = replace(HOPPER, name="Some other GPU", capability=86, shared=101376)
ROW = {"to": 8, "N": 8, "LR": 4, "LC": 1, "CV": 2, "WARPS": 2, "BLOCKS": 1, "ms": 0.01}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder without rows, and nothing remembered."""
    monkeypatch.setattr(_cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(_tuned, "_warned", set())
    _tuned.forget()
    yield tmp_path
    _tuned.forget()


def every(kernels=SPACES):
    return [(kernel, letter) for kernel in kernels for letter in SPACES[kernel].letters
            if TYPES[letter].is_known]


# -- spaces


@pytest.mark.parametrize("gpu, least", [
    (HOPPER, 1024), (replace(HOPPER, name="A100", capability=80, shared=166912), 768),
    (OTHER, 384), (replace(HOPPER, name="T4", capability=75, shared=65536), 256)])
def test_orders_that_blocks_have_room_for(folder, gpu, least):
    """Up to the most that `past` lets through nothing is without a kernel (but crt_split, which is
    for Hopper's products)."""
    for kernel, letter in every():
        if letter not in "sdcz" or kernel == "crt_split":
            continue
        most = _tuned.most(letter, gpu)
        assert least <= most <= _spaces.MOST
        for n in (1, 8, 33, 64, 129, 200, 256, 300, 512, most):
            _tuned.row(kernel, letter, min(n, most), gpu)


def test_the_rows_that_ship_are_in_the_spaces():
    table = _tuned.table(90)
    assert table.keys() == SPACES.keys()
    for kernel, letters in table.items():
        for letter, rows in letters.items():
            for row in rows:
                values, n = _tuned.capitals(row), min(row["to"], _spaces.MOST)
                if values:
                    assert _spaces.fits(kernel, letter, n, values, HOPPER), (kernel, letter, row)
                else:
                    assert SPACES[kernel].may_leave(n)
                # what else a row says is kept where it is tuned, or the row itself is
                other = {k for k in row if k.islower()} - {"to", "ms", "runner_up_ms", "vendor"}
                assert other <= {*tune.RULES} | _spaces.OPTIONAL or "lines" in other


def test_rows_for_few_members_are_where_there_are_rows_for_any():
    """Which kernels serve a member must not hang on how many there are, only their constants; nor
    on whom it goes with, which rows say that join the next."""
    for kernel, letter in product(("getrf_shared", "gesv_shared"), "sdcz"):
        rows = _tuned.table(90)[kernel][letter]
        for few in (row for row in rows if "lines" in row):
            assert _tuned.capitals(few)
            assert any(row["to"] == few["to"] and "lines" not in row and _tuned.capitals(row)
                       for row in rows)
        usual = [row for row in rows if "lines" not in row]
        for row, following in zip(usual, usual[1:] + [{}]):
            assert "joins" not in row or _tuned.capitals(following)


@pytest.mark.parametrize("kernel, letter", every())
def test_stages_reach_every_constant_and_fit_somewhere(kernel, letter):
    values = _spaces.nearest(kernel, letter, 16, {}, HOPPER)
    assert _spaces.fits(kernel, letter, 16, values, HOPPER)
    for name in values:
        less = {k: v for k, v in values.items() if k != name}
        assert _spaces.fits(kernel, letter, 16, less, HOPPER) == (name in _spaces.OPTIONAL)
        for wrong in (0.5, -1, 10**6, "8", None, True):
            assert not _spaces.fits(kernel, letter, 16, values | {name: wrong}, HOPPER)


def test_what_teams_may_be_told():
    """STAGED of 2 is LU's, of teams of more lanes than one; the tuner tries it where it tries 1."""
    def allowed(kernel, **more):
        row = dict(N=8, LR=4, LC=1, CV=1, WARPS=2, BLOCKS=1) | more
        return [x for x in range(1, 4)
                if _spaces.fits(kernel, "s", 8, row | {"STAGED": x}, HOPPER)]

    for kernel in ("getrf_small", "gesv_small"):
        assert allowed(kernel) == [1, 2] and allowed(kernel, LR=1) == [1]
        assert allowed(kernel, LC=2) == []
        for letter, n in product("sdcz", (8, 16)):
            tried = [(v["LR"], v["STAGED"]) for v in SPACES[kernel].stages(letter, n)[0]
                     if "STAGED" in v]
            assert tried and {r for r, x in tried if x == 2} == {r for r, _ in tried} - {1}
    for kernel in ("getrs_small", "potrs_small", "potrf_small", "posv_small"):
        assert allowed(kernel) == [1]


def test_a_smaller_gpu_gets_what_fits():
    for kernel, letter in every():
        for n in (4, 16, 32, 64, 128, 256):
            found, origin = _tuned.why(kernel, letter, n, OTHER)
            if found:
                assert _spaces.fits(kernel, letter, n, _tuned.capitals(found), OTHER)
            else:
                assert _tuned.row(kernel, letter, n, 90) is None or SPACES[kernel].may_leave(n)


def test_what_fits_nowhere_says_so():
    with pytest.raises(RuntimeError, match="getrf_block for order 1024.*nothing fits into the 101"):
        _tuned.row("getrf_block", "z", 1024, OTHER)


def test_rows_for_few_lines(folder):
    """They come before those for any; a user's own row, which is for any, leaves them."""
    few, any_ = (_tuned.row("attention_wgmma", "b", 64, HOPPER, lines) for lines in (512, 4096))
    assert few["lines"] == 1024 and "lines" not in any_ and few["GROUPS"] < any_["GROUPS"]
    _tuned.write("attention_wgmma", "b", any_ | {"STAGES": 3}, HOPPER)
    assert _tuned.row("attention_wgmma", "b", 64, HOPPER, 512) == few
    assert _tuned.row("attention_wgmma", "b", 64, HOPPER, 4096)["STAGES"] == 3
    lines = [r.get("lines", 2**31) for r, _ in _tuned.rows("attention_wgmma", "b", HOPPER)]
    assert lines[:2] == [1024, 2**31]


def test_rows_for_equal_members(folder):
    """They come before those for members of any size, which ragged ones ask for. A user's own row
    for equal members leaves the other; one that serves any is in the place of both."""
    line, any_ = (_tuned.row("getrf_small", "s", 6, HOPPER, plain=x) for x in (False, True))
    assert line["ONE_LINE"] == 2 and any_.get("ONE_LINE") != 2 and line["to"] == any_["to"] == 6
    _tuned.write("getrf_small", "s", line | {"WARPS": 1}, HOPPER)
    assert _tuned.row("getrf_small", "s", 6, HOPPER)["WARPS"] == 1
    assert _tuned.row("getrf_small", "s", 6, HOPPER, plain=True) == any_
    _tuned.write("getrf_small", "s", any_ | {"WARPS": 1}, HOPPER)
    for plain in (False, True):
        found = _tuned.row("getrf_small", "s", 6, HOPPER, plain=plain)
        assert found == any_ | {"WARPS": 1}
        assert _tuned.row("getrf_small", "s", 5, HOPPER)["ONE_LINE"] == 2


def test_rows_that_ship_are_in_order():
    """As they are read where no user's own stand between them: the first that covers n wins."""
    for kernel, letters in _tuned.table(90).items():
        for letter, rows in letters.items():
            assert rows == sorted(rows, key=_tuned.place), (kernel, letter)


def test_rows_for_orders_that_are_no_multiple(folder):
    """Other orders, and who asks for none by lines, have the row after them; a user's own row for
    all leaves them."""
    odd, even = (_tuned.row("potrf_small", "s", n, HOPPER) for n in (39, 40))
    assert odd["unless"] and odd["ONE_LINE"] and "unless" not in even
    assert odd["to"] == even["to"] == 40
    assert _tuned.row("potrf_small", "s", 39, HOPPER, plain=True) == even
    _tuned.write("potrf_small", "s", even | {"BLOCKS": 1}, HOPPER)
    assert _tuned.row("potrf_small", "s", 39, HOPPER) == odd
    assert _tuned.row("potrf_small", "s", 40, HOPPER) == even | {"BLOCKS": 1}


def test_rows_for_multiples_alone(folder):
    """Of four, but of 32; what a user measured keeps to them."""
    def served(n):
        found = _tuned.row("gemm_lines", "s", n, HOPPER)
        return found and found.get("ADJACENT", 0)
    assert [served(n) for n in (27, 28, 29, 30, 32, 36)] == [0, 1, 0, 0, None, 1]
    row = _tuned.row("gemm_lines", "s", 28, HOPPER)
    _tuned.write("gemm_lines", "s", row | {"BLOCKS": 1}, HOPPER)
    assert _tuned.row("gemm_lines", "s", 28, HOPPER) == row | {"BLOCKS": 1}
    assert [served(n) for n in (26, 27, 29)] == [0, 0, 0]


# -- the search


@contextmanager
def machine(cost, kernel, letter, n, breaks=lambda values: False, says=None):
    """The measure of a search on a NumPy problem; `cost(values)` is its clock."""
    of = tune.problem(SPACES[kernel].routine, letter, min(n, 12), 3, np)
    run = of.run

    def using():
        return _tuned._forced[kernel, letter]

    def faulty(*operands):
        answer = run(*operands)
        return tuple(x + 1 for x in answer) if using() and breaks(using()) else answer

    of.run = faulty
    yield tune.measured(kernel, letter, of, lambda: cost(using()), lambda candidates: None,
                        (says if says is not None else []).append)


def steps(best):
    """A clock: how far the constants are from `best`."""
    return lambda values: 1 + sum(abs(np.log2(max(values.get(k, 1), 0.5) / max(best[k], 0.5)))
                                  for k in best) if values else 1e6


@pytest.mark.parametrize("kernel, letter", every())
def test_the_search_finds_a_better_row(kernel, letter):
    n = {33: 64}.get(SPACES[kernel].smallest, 16)
    choices = [v for stage in SPACES[kernel].stages(letter, n) for v in stage]
    best = _spaces.nearest(kernel, letter, n, choices[-1] | {"BLOCKS": 1, "WARPS": 4}, HOPPER)
    with machine(steps(best), kernel, letter, n) as measure:
        timed = tune.search(kernel, letter, n, HOPPER, measure)
    assert timed == sorted(timed, key=lambda x: x[0])
    start = _tuned.row(kernel, letter, n, HOPPER)
    start = start and _tuned.capitals(start) or _spaces.nearest(kernel, letter, n, {}, HOPPER)
    assert timed[0][0] <= steps(best)(start)
    assert _spaces.fits(kernel, letter, n, timed[0][1], HOPPER)
    if "CV" not in best:  # stages that do not depend on each other are searched to the end
        assert timed[0][0] <= 3


@pytest.mark.parametrize("kernel", sorted(SPACES))
def test_a_quick_search_ends(kernel):
    """Also where rows lack what some of the candidates have."""
    space = SPACES[kernel]
    for letter, n in product(space.letters, (9, 33, 36, 68)):
        if _spaces.nearest(kernel, letter, n, {}, HOPPER):
            assert tune.search(kernel, letter, n, HOPPER, lambda found, _: list(range(len(found))),
                               quick=True)


def test_shipped_teams_of_symmetric_lines_are_candidates():
    """With their slices: a search on another GPU can come to what ships."""
    for letter in "sdcz":
        for row in _tuned.table(90)["symm_lines"][letter]:
            if _tuned.capitals(row):
                teams, slices, rows, *_ = SPACES["symm_lines"].stages(letter, row["to"])
                for stage in teams, slices, rows:
                    assert any({k: v for k, v in change.items() if k != "WARPS"}.items()
                               <= row.items() for change in stage), (letter, row)


@pytest.mark.parametrize("kernel", ["gemm_lines", "symm_lines", "syrk_lines"])
def test_what_a_gpu_lacks_costs_it_no_row(folder, kernel):
    """One before Hopper copies by threads what that has brought, and goes by the same rows else."""
    older = replace(HOPPER, name="older", capability=80)
    for letter, n in product("sdcz", range(9, 260)):
        row = _tuned.row(kernel, letter, n, HOPPER)
        assert _tuned.row(kernel, letter, n, older) == (
            row and {k: v for k, v in row.items() if k != "BULK"})


@pytest.mark.parametrize("kernel", ["syevd_block", "gesvd_vectors", "gesvd_values"])
def test_shipped_teams_of_columns_that_stay_or_are_tiles_are_candidates(kernel):
    for kind, letter in product(("STAY", "TILED")[:1 + kernel.startswith("gesvd")], "sdcz"):
        rows = [r for r in _tuned.table(90)[kernel][letter] if r.get(kind)]
        assert rows
        for row in rows:
            teams = SPACES[kernel].stages(letter, row["to"])[0]
            assert any(v.items() <= row.items() for v in teams if kind in v), row


@pytest.mark.parametrize("kernel, n, optional", [
    ("gemm_block", 36, "BORDER"), ("gesvd_vectors", 9, "STAY"), ("syevd_block", 12, "SPREAD")])
def test_the_search_comes_to_an_optional_constant_and_back(kernel, n, optional):
    def with_it(values):
        return 1 + (optional not in values) if values else 100

    def without(values):
        return 1 + (optional in values) if values else 100

    row = _tuned.row(kernel, "c", n, HOPPER)
    for cost, there in (with_it, True), (without, False):
        with machine(cost, kernel, "c", n) as measure, mock.patch.object(
                _tuned, "row", lambda *_: row):
            _, row = tune.search(kernel, "c", n, HOPPER, measure)[0]
        assert (optional in row) == there


def test_the_search_decides_what_the_launch_alone_is_told():
    """How many lanes a team's are a multiple of: measured, kept in the row, no constant."""
    def cost(values):
        return 1 + abs(values.get("multiple", 1) - 8) if values else 100

    with machine(cost, "getri_small", "s", 20) as measure:
        timed = tune.search("getri_small", "s", 20, HOPPER, measure)
    row = tune.as_row("getri_small", 20, timed)
    assert timed[0][0] == 1 and row["multiple"] == 8 and "multiple" not in _tuned.capitals(row)
    assert tune.searched(row) == timed[0][1]


def test_a_wrong_answer_is_never_chosen():
    says = []
    with machine(lambda v: 1 / v["WARPS"], "getrf_small", "d", 8, lambda v: v["WARPS"] > 2,
                 says) as measure:
        timed = tune.search("getrf_small", "d", 8, HOPPER, measure)
    assert timed[0][1]["WARPS"] == 2 and all(v["WARPS"] <= 2 for _, v in timed)
    assert says and all("left out" in line for line in says)


def test_what_fails_is_left_out():
    def cost(values):
        if values["WARPS"] != 4:
            raise RuntimeError("cuLaunchKernel returned status 1")
        return 1

    with machine(cost, "potrf_small", "d", 8) as measure:
        with pytest.raises(RuntimeError, match="no candidate"):
            tune.ranked([ROW | {"WARPS": 2}], measure, 1)
        assert tune.ranked([_tuned.capitals(ROW) | {"WARPS": w} for w in (2, 4)], measure,
                           3)[0][1]["WARPS"] == 4


def test_crossovers_are_rows(folder):
    """Where the routine is faster without a kernel, its row has no constants, or says `vendor`."""
    for kernel, kept in (("geqrf_small", False), ("gemm_warp", True)):
        with machine(lambda v: 2 if v else 1, kernel, "d", 16) as measure:
            row = tune.as_row(kernel, 16, tune.search(kernel, "d", 16, HOPPER, measure))
        assert bool(_tuned.capitals(row)) == kept == bool(row.get("vendor"))
        assert row["ms"] == 1 and row["runner_up_ms"] == 2
        _tuned.write(kernel, "d", row, HOPPER)
        found = _tuned.row(kernel, "d", 16, HOPPER)
        assert found["vendor"] if kept else found is None
        assert _tuned.row(kernel, "d", 8, HOPPER) == _tuned.row(kernel, "d", 8, 90)


def test_quick_tries_few():
    tried = []
    with machine(lambda v: 1, "getrf_block", "d", 64) as measure:
        tune.search("getrf_block", "d", 64, HOPPER,
                    lambda c, samples: tried.append(len(c)) or measure(c, samples), quick=True)
    assert max(tried) <= tune.FEW + 1 and sum(tried) <= 40


def test_progress_has_the_time_left():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    now, out = iter(range(0, 1000, 10)), Terminal()
    progress = tune.Progress(out, lambda: next(now))
    for done in range(5):
        progress(done, 4, f"kernel {done}")
    lines = out.getvalue().split("\r\x1b[K")
    assert "1/4 kernel 1" in lines[2] and lines[2].endswith("1:00 left")
    assert lines[-1].startswith("[" + "#" * 30 + "] 4/4")


# -- a user's table


def put(row=ROW, kernel="getrf_small", letter="d", gpu=HOPPER):
    return _tuned.write(kernel, letter, row, gpu)


def got(gpu=HOPPER, n=8):
    return _tuned.row("getrf_small", "d", n, gpu)


def test_a_users_row_wins(folder):
    shipped = got()
    file = put()
    assert got() == ROW != shipped and _tuned.why("getrf_small", "d", 8, HOPPER)[1] == str(file)
    assert got(n=9) == _tuned.row("getrf_small", "d", 9, 90)
    assert got(90) == got(replace(HOPPER, name="NVIDIA H100")) == shipped
    put(ROW | {"to": 6, "WARPS": 4})
    assert [got(n=n)["WARPS"] for n in (5, 6, 7, 8)] == [1, 4, 2, 2]


@pytest.mark.parametrize("change", ("driver", "source", "schema", "name", "space"))
def test_a_stale_row_is_ignored_with_one_warning(folder, monkeypatch, change):
    gpu, shipped, file = HOPPER, got(), put()
    put(ROW | {"to": 16, "N": 16})
    if change == "driver":
        gpu = replace(gpu, driver=13010)
    elif change == "source":
        monkeypatch.setattr(_tuned, "_source_hash", lambda kernel: "0" * 64)
    elif change == "schema":
        monkeypatch.setattr(_tuned, "SCHEMA", _tuned.SCHEMA + 1)
    elif change == "name":
        file.rename(file.with_stem("d9"))
        (file.parent / "d16.json").rename(file.with_stem("d17"))
    else:
        monkeypatch.setitem(SPACES, "getrf_small", replace(
            SPACES["getrf_small"], fits=lambda letter, n, v, gpu: v["LC"] > 1 or v["LR"] > 4))
    _tuned.forget()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert got(gpu) == shipped
        _tuned.forget()
        assert got(gpu) == shipped
    (warning,) = seen
    assert "is ignored; `python -m blasx.tune` makes it anew" in str(warning.message)


def test_flipped_bytes_change_nothing(folder):
    """10000 random flips, and every truncation: the row as it was, or none."""
    file, generator = put(), random.Random(0)
    whole, results = file.read_bytes(), []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(10_000):
            damaged = bytearray(whole)
            damaged[generator.randrange(len(whole))] ^= generator.randrange(1, 256)
            file.write_bytes(damaged)
            results.append(_tuned._read(file, "getrf_small", "d", HOPPER))
        for length in range(len(whole) - 1):
            file.write_bytes(whole[:length])
            results.append(_tuned._read(file, "getrf_small", "d", HOPPER))
    assert all(r is None or r == ROW for r in results)
    assert results.count(None) > 0.98 * len(results) and len(seen) == 1


def test_a_row_with_a_checksum_must_fit_too(folder):
    for wrong in ({"WARPS": 3000}, {"N": 7}, {"LR": "4"}, {"NEW": 1}, {"to": -1}, {"to": 8.0}):
        _tuned._warned.clear()
        put(ROW | wrong)
        with pytest.warns(RuntimeWarning, match="ignored"):
            assert got() == got(90)
        for file in folder.rglob("*.json"):
            file.unlink()


def test_a_folder_that_cannot_be_is_said(monkeypatch):
    monkeypatch.setattr(_cache, "folder", lambda: None)
    with pytest.raises(OSError, match="XDG_CACHE_HOME"):
        put()


TUNES = """
import sys
from tests.test_tune import SPACES, HOPPER, machine, steps
from blasx import _tuned, tune
todo = [j for j in tune.jobs(["getrf_small", "potrf_small"], "dc", None, HOPPER, False)] * 3
best = {"WARPS": int(sys.argv[1])}
tune.tune(todo, HOPPER, lambda *job: machine(steps(best), *job),
          lambda *row: _tuned.write(*row, HOPPER), tune.Progress(), quick=True)
"""


def test_two_processes_tune_at_once(folder):
    """Both write the same rows; at no time is there a row that cannot be read."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen([sys.executable, "-c", TUNES, warps], cwd=ROOT, env=environment,
                             stderr=subprocess.DEVNULL) for warps in "14"]
    mine = folder / "blasx"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while any(p.poll() is None for p in both):
            for file in mine.rglob("*.json"):
                assert _tuned._read(file, file.parent.name, file.name[0], HOPPER)
    assert [p.returncode for p in both] == [0, 0]
    files = [f for f in mine.rglob("*") if f.is_file()]
    todo = tune.jobs(["getrf_small", "potrf_small"], "dc", None, HOPPER, False)
    assert {(f.parent.name, f.name) for f in files} == {
        (kernel, f"{letter}{to}.json") for kernel, letter, to, _ in todo}
    assert len(files) == len(todo) > 2 * (4 + 6)  # potrf_small goes on to 64
    for file in files:
        assert json.loads(file.read_bytes())["row"]["WARPS"] in (1, 2, 4)  # at 64 no 4 fit


# -- the command


def test_show_says_what_runs_and_why(folder, capsys):
    file = put(gpu=HOPPER)
    assert tune.main(["getrf", "gesv", "gemm_batched", "--show", "--letters", "d", "--orders",
                      "8,64,300,500,4000"]) == 0
    printed = capsys.readouterr().out
    assert f"getrf d n=8: getrf_small N=8 LR=4 LC=1 CV=2 WARPS=2 BLOCKS=1 (row to 8 of {file}, " \
           "0.01 ms)" in printed
    assert "getrf d n=64: getrf_shared" in printed
    assert "getrf d n=500: getrf_block" in printed and "kernels/tuned/sm90/getrf_block" in printed
    assert "gesv d n=300: getrf_shared" in printed and "then getrs_block" in printed
    assert "getrf d n=4000: NVIDIA's library" in printed and "past the last row" in printed


@pytest.mark.parametrize("more", [("--orders", "10-4"), ("--orders", "4,9-5"), ("--orders", "0"),
                                  ("--orders", "x"), ("--letters", "")])
def test_what_cannot_be_tuned_is_refused(more):
    with pytest.raises(SystemExit) as ended:
        tune.main(["getrf", "--show", *more])
    assert ended.value.code == 2


def test_what_a_kernel_prepares_for_is_not_switched_off():
    assert "ormqr_strips" not in tune.alone("larft_panels")
    assert {"ormqr_small", "ormqr_strips"} == {*tune.alone("ormqr_block")}
    assert {"getrf_shared"} == {*tune.alone("getrf_nopiv")}
    assert tune.alone("syrk_lines") == {} and {*tune.alone("syrk_split")} == {"syrk_lines"}
    assert {"syrk_lines", "gemm_warp"} == {*tune.alone("syrk_block")}


@pytest.mark.parametrize("routine, n, kernels", [
    ("syevd", 40, "sytrd_rows steqr_lane lasr_rows"), ("syevd", 8, "syevd_block"),
    ("syevd", 100, "sytrd_block stedc_leaf stedc_merge"),
    ("gels", 600, "lascl_batched geqrf_left larft_panels ormqr_strips gels_solve"),
    ("gels", 8, "gels_small"), ("gels", 65, "gels_shared"), ("gels", 110, "geqrf_left gels_warp"),
    ("geqrf", 40, "geqrf_shared"), ("geqrf", 600, "geqrf_left"),
    ("ormqr_one", 300, "larft_panels ormqr_strips"),
    ("orgqr", 300, "larft_panels orgqr_strips"), ("ormqr", 300, "larft_panels ormqr_strips"),
    ("posv", 40, "posv_small"), ("posv", 100, "posv_columns"), ("posv", 101, "posv_block"),
    ("posv", 240, "potrf_panels potrs_lines"),
    ("symm", 8, "gemm_warp"), ("getrf_nopiv", 16, "getrf_small"),
    ("getrf_nopiv", 100, "getrf_shared"), ("getrf_nopiv", 600, "getrf_nopiv"),
    ("getri", 100, "getri_shared"), ("getri", 200, "laswp_identity trsm_block trsm_block"),
    ("potri", 8, "potri_small"), ("potri", 100, "potri_shared"),
    ("potri", 200, "potri_parts"),
    ("gesvd", 300, "gesvd_vectors"), ("gesvd", 600, "")])
def test_show_names_the_kernels_one_after_the_other(folder, routine, n, kernels):
    line, = tune.show([routine], "d", [n], HOPPER)
    words = line.partition(": ")[2].replace("then ", "").split()
    assert [x for x in words if x in SPACES] == kernels.split()
    assert "NVIDIA" not in line
    assert list(tune.show(["adam"], "z", [n], HOPPER)) == [
        f"adam z n={n}: no kernel of ours is for this type"]


def test_show_names_both_kernels_of_a_solution_by_two(folder):
    """Where gesv_small has no constants."""
    n = next(r["to"] for r in _tuned.table(90)["gesv_small"]["z"] if not _tuned.capitals(r))
    line, = tune.show(["gesv"], "z", [n], HOPPER)
    assert [x for x in line.split() if x in SPACES] == ["getrf_small", "getrs_small"]
    line, = tune.show(["syevd"], "d", [12], HOPPER)
    assert "syevd_block" in line and "values alone the tridiagonal" in line


@pytest.mark.parametrize(("routine", "letter", "n", "kernels"), [
    ("symm", "s", 8, "other_triangle gemm_thread"), ("symm", "d", 8, "gemm_warp"),
    ("symm", "s", 64, "symm_block"), ("symm", "d", 33, "symm_lines"),
    ("symm", "c", 64, "symm_lines"), ("symm", "d", 170, "other_triangle gemm_block"),
    ("syrk", "d", 8, "gemm_warp"), ("syrk", "s", 16, "syrk_lines"),
    ("syrk", "c", 16, "syrk_split"), ("syrk", "s", 64, "syrk_split"),
    ("syrk", "d", 32, "syrk_block"), ("syrk", "d", 33, "syrk_lines")])
def test_show_asks_as_the_launcher_of_products_does(folder, routine, letter, n, kernels):
    line, = tune.show([routine], letter, [n], HOPPER)
    assert [x for x in line.split() if x in SPACES] == kernels.split()


def test_show_tells_of_rows_for_few_columns(folder):
    line, = tune.show(["trsm"], "s", [20], HOPPER)
    assert "N=20" in line and "rows of their own for up to 2, 4, 8, 16 columns" in line
    assert "rows of their own" not in next(tune.show(["trsm"], "s", [300], HOPPER))


def test_an_unknown_routine_is_named(capsys):
    with pytest.raises(SystemExit):
        tune.main(["getrx"])
    assert "no routine getrx" in capsys.readouterr().err


@pytest.mark.parametrize("routine", sorted({s.routine for s in SPACES.values()}))
def test_problems_have_right_answers(routine):
    for letter in "sd" if routine in tune.LAYERS else "sdcz":
        of = tune.problem(routine, letter, 12, 5, np)
        answer = of.run(*of.operands)
        assert of.error(answer) < 30
        last = next(i for i in reversed(range(len(answer))) if answer[i].dtype.kind in "fc")
        spoiled = [x.copy() for x in answer]
        spoiled[last].flat[-1] = np.nan
        assert of.error(spoiled) == float("inf")
        assert of.error([x + 1 for x in answer]) > 30


def test_ship_merges_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tune._sources, "FOLDER", tmp_path)
    (tmp_path / "tuned").mkdir()
    keep = tune.ship(HOPPER)
    for to, ms in ((8, 1.0), (4, 2.0), (8, 3.0)):
        keep("getrf_small", "d", {"to": to, "N": to, "ms": ms})
    written = json.loads((tmp_path / "tuned" / "sm90" / "getrf_small.json").read_text())
    assert written == {"d": [{"to": 4, "N": 4, "ms": 2.0}, {"to": 8, "N": 8, "ms": 3.0}]}
