"""The testers themselves: options, generator, formulas, exit statuses, and that they see faults."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blasx._types import TYPES
from testing import errors, flops, matrices, tester
from testing.__main__ import main
from testing.case import Case
from testing.cases import CASES, TYPED, find
from testing.options import Options, parse, parse_sizes

ROOT = Path(__file__).parent.parent


# Options


@pytest.mark.parametrize("text, first, last, count", [
    ("123", (123, 123, 123), (123, 123, 123), 1),
    ("100,50", (100, 50, 50), (100, 50, 50), 1),
    ("100,200:1000:100,300", (100, 200, 300), (100, 1000, 300), 9),
    ("128:512:128,100:300:100", (128, 100, 100), (384, 300, 300), 3),
    ("1000:20000:1000", (1000,) * 3, (20000,) * 3, 20),
    ("30:10:-10", (30,) * 3, (10,) * 3, 3),
    ("10:30:0", (10,) * 3, (10,) * 3, 1),
    ("5:0:-2", (5,) * 3, (1,) * 3, 3),
    ("1088:10304:1024", (1088,) * 3, (10304,) * 3, 10),
])
def test_ranges_are_magmas(text, first, last, count):
    sizes = parse_sizes(text)
    assert (sizes[0], sizes[-1], len(sizes)) == (first, last, count)


@pytest.mark.parametrize("text", ["", "a", "1:2", "1:2:3:4", "30:10:10", "10:30:-1", "-1",
                                  "1,2,3,4"])
def test_bad_ranges_are_refused(text):
    with pytest.raises(ValueError, match="range|sizes"):
        parse_sizes(text)


def test_n_is_cumulative_and_has_synonyms():
    options = parse("x", ["-n", "7", "-N", "8,9", "--range", "1:3:2"])
    assert options.sizes == [(7, 7, 7), (8, 9, 9), (1, 1, 1), (3, 3, 3)]


def test_flags_do_not_eat_each_other():
    options = parse("x", "-TC -SR -DU -JV -U -c2 --itype 2 --jobu s -C -c".split())
    assert options.flags == {"transA": "C", "transB": "C", "side": "R", "diag": "U", "jobz": "V",
                             "uplo": "U", "itype": 2, "jobu": "S", "trans": "C"}
    assert options.check == 1
    assert parse("x", []).flags == {}


# Flop counts: the totals of LAWN 41, as MAGMA's flops.h has them


@pytest.mark.parametrize("counts, total", [
    (flops.gemm(3, 4, 5), 2 * 3 * 4 * 5),
    (flops.gemv(30, 40), 2 * 30 * 40 + 2 * 30),
    (flops.symv(7), 2 * 49 + 14),
    (flops.syrk(5, 8), 5 * 8 * 9),
    (flops.syr2k(5, 8), 2 * 5 * 64 + 8),
    (flops.trsm("L", 6, 5), 5 * 36),
    (flops.trmm("R", 6, 5), 6 * 25),
    (flops.symm("R", 6, 5), 2 * 6 * 25),
    (flops.getrf(9, 9), 2 / 3 * 729 - 81 / 2 + 5 * 9 / 6),
    (flops.getrf(20, 9), 20 * 81 - 729 / 3 - 81 / 2 + 45 / 6),
    (flops.getrf(9, 20), 20 * 81 - 729 / 3 - 81 / 2 + 45 / 6),
    (flops.getri(9), 4 / 3 * 729 - 81 + 15),
    (flops.getrs(9, 4), 4 * 9 * 17),
    (flops.potrf(9), 729 / 3 + 81 / 2 + 9 / 6),
    (flops.potri(9), 2 / 3 * 729 + 81 / 2 + 45 / 6),
    (flops.potrs(9, 4), 2 * 4 * 81),
    (flops.trtri(9), 729 / 3 + 6),
    (flops.geqrf(20, 9), 2 * 20 * 81 - 2 * 729 / 3 + 81 + 180 + 14 * 3),
    (flops.ormqr("L", 20, 9, 7), 4 * 20 * 9 * 7 - 2 * 9 * 49 + 3 * 9 * 7),
])
def test_flop_counts(counts, total):
    assert flops.total(counts, False) == pytest.approx(total)


def test_complex_flops_weigh_six_and_two():
    assert flops.total((10, 7), True) == 74
    assert flops.gesv(9, 4) == flops.plus(flops.getrf(9, 9), flops.getrs(9, 4))


# The generator


def test_the_generator_keeps_its_word(capsys):
    assert main(["generate", "--all", "--check", "-n", "12,9", "-p", "sz"]) == 0
    assert "failed  " not in capsys.readouterr().out


@pytest.mark.parametrize("distribution, values", [
    ("arith", [1, 0.7, 0.4, 0.1]), ("geo", [1, 10 ** (-1 / 3), 10 ** (-2 / 3), 0.1]),
    ("cluster0", [1, 0.1, 0.1, 0.1]), ("cluster1", [1, 1, 1, 0.1]),
    ("rcluster0", [0.1, 0.1, 0.1, 1]), ("rarith", [0.1, 0.4, 0.7, 1]),
])
def test_distributions(distribution, values):
    sigma = matrices.spectrum(distribution, 4, 10, np.random.default_rng(0))
    assert sigma == pytest.approx(values)


def test_scalings_and_dominance():
    rng = np.random.default_rng(0)
    a, sigma = matrices.generate("svd_geo_small", 6, 4, np.float32, rng, cond=100)
    assert sigma[0] == pytest.approx(np.finfo(np.float32).tiny ** 0.5)
    assert sigma[0] / sigma[-1] == pytest.approx(100)
    a, sigma = matrices.generate("randn_dominant", 5, 5, np.complex128, rng)
    assert np.isnan(sigma).all()
    assert all(2 * abs(a[i, i]) >= abs(a[i]).sum() for i in range(5))


def test_unit_columns_keep_the_singular_values():
    sigma = np.array([4.0, 2, 1, 0.5])
    a, _ = matrices.generate("svd_specified", 6, 4, np.complex128, np.random.default_rng(0),
                             sigma=sigma)
    b = matrices.unit_columns(a, sigma)
    assert np.linalg.norm(b, axis=0) == pytest.approx(np.ones(4))
    assert np.linalg.svd(b, compute_uv=False) == pytest.approx(sigma * 2 / np.sqrt(sigma @ sigma))


def test_unknown_matrix_names_are_refused():
    for name in ("svd_foo", "foo", "rand_1e3"):
        with pytest.raises(ValueError, match="unknown"):
            matrices.parse(name)


# Error formulas


def test_norms_neither_overflow_nor_underflow():
    for scale in (1e300, 1e-300):
        A = scale * np.array([[2.0, 1], [1, 3]])
        x = np.array([[1.0], [2]])
        assert errors.solve(A, x, A @ x) < 1e-15
        assert errors.solve(A, x, A @ x * (1 + 1e-3)) > 1e-5
        assert errors.cholesky(A, np.linalg.cholesky(A), "L") < 1e-15


def test_a_nan_is_never_small():
    A = np.eye(3)
    bad = np.array([[1.0, 0, 0], [0, np.nan, 0], [0, 0, 1]])
    found = [errors.lu(A, bad, np.arange(3)), errors.cholesky(A, bad, "L"),
             errors.orthogonal(bad), errors.solve(A, bad, A), errors.difference(bad, A),
             errors.ratio([0, np.nan], 1), errors.ratio(1, np.inf)]
    assert all(np.isnan(x) for x in found)
    case, _ = find("dgetrf")
    assert case.failures(case.problem("d", (3, 3, 3)), {"error": np.nan}) == ["error"]


def test_permutation_is_lapacks():
    A = np.arange(9.0).reshape(3, 3)
    assert (errors.permuted(A, np.array([2, 2, 2])) == A[[2, 0, 1]]).all()
    assert (errors.permuted(np.stack([A, A]), np.array([[0, 1, 2], [2, 2, 2]]))[1]
            == A[[2, 0, 1]]).all()


# The table of cases


def test_every_typed_name_is_public():
    import blasx

    assert [name for name in TYPED if not hasattr(blasx, name)] == []


def test_names_are_found():
    assert find("dgetrf") == (find("getrf")[0], "d")
    assert find("cungqr") == (find("orgqr")[0], "c")
    for name, case, letter in (("dznrm2", "nrm2", "z"), ("idamax", "iamax", "d"),
                               ("zdscal", "rscal", "z"), ("csrot", "rot", "c"),
                               ("cheevd", "syevd", "c"), ("zcgesv", "dsgesv", "z"),
                               ("ungqr", "orgqr", None), ("heevr", "syevr", None)):
        found = find(name)
        assert (found[0].name, found[1]) == (case, letter)
    with pytest.raises(KeyError, match="dgetrf"):
        find("xgetrf")


def test_cases_are_well_formed():
    assert len({case.name for case in CASES}) == len(CASES) == len(list(
        (ROOT / "testing").glob("testing_*.py")))
    for case in CASES:
        assert isinstance(case, Case) and case.variants()
        assert set(case.typed) <= set(TYPES)


# The command


def test_a_line_is_magmas(capsys):
    assert main("dgetrf -n 20 -n 30,10 --lapack --check --device cpu".split()) == 0
    out = capsys.readouterr().out.splitlines()
    assert any("CPU Gflop/s (sec)" in x and "|PA-LU|/(N*|A|)" in x for x in out if x[:1] == "%")
    lines = [x.split() for x in out if x and x[0] != "%"]
    assert [x[:2] for x in lines] == [["20", "20"], ["30", "10"]]
    assert all(x[-1] == "ok" for x in lines)


def test_not_run_is_dashes(capsys):
    assert main("dpotrf -n 9 --device cpu".split()) == 0
    line = capsys.readouterr().out.splitlines()[-2]
    assert "---   (  ---  )" in line and not line.endswith("ok")


@pytest.mark.parametrize("arguments, status", [
    ("dgetrf -n 5 --bad", 1), ("dgetrf -n 5:1:1", 1), ("dgetrf --tol -1", 1), ("nosuch -n 3", 1),
    ("dgetrf -n 5 --matrix foo", 1), ("dsyevd -n 5 -F", 1), ("zsytrf -p q", 1),
    ("dgetrf -n 5 --mode native", 2), ("dgemm -n 5 --mode hybrid", 2),
    ("dgetrf -n 5 --host", 1), ("dgetrf -n 5 --memory 9", 1)])
def test_what_cannot_be_run_has_its_status(arguments, status, capsys):
    try:
        got = main([*arguments.split(), "--device", "cpu"])
    except SystemExit as end:
        got = end.code
    assert got == status
    assert "error" in capsys.readouterr().err


def test_a_missing_mode_names_those_there_are(capsys):
    main("dgetrf -n 5 --mode native --device cpu".split())
    assert "auto" in capsys.readouterr().err


@pytest.mark.parametrize("variant, mode", [
    ("cusolver", "vendor"), ("cublas", "vendor"), ("getrf_small", "native"),
    ("getrf_leaf+cublas", "native"), ("getrf_leaf+cusolver", "vendor"), ("lapack", "cpu"),
    ("getrf_leaf+lapack", "hybrid"), ("", "native")])
def test_modes_by_what_ran(variant, mode):
    assert tester.mode_of(variant) == mode


def test_the_status_counts_failed_lines(monkeypatch, capsys):
    monkeypatch.setattr(Case, "failures", lambda self, p, found: ["always"])
    assert main("dgemm -n 1:5:1 --device cpu".split()) == 5
    assert main("dgemm -n 1:300:1,1,1 --device cpu --nowarmup".split()) == 255
    assert capsys.readouterr().out.count("failed\n") == 305


def test_json_has_what_the_lines_have(tmp_path, capsys):
    file = tmp_path / "out.json"
    assert main(f"zgesv -n 7 --nrhs 2 --lapack --niter 3 --device cpu --json {file}".split()) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["routine"], row["n"], row["nrhs"], row["status"]) == ("zgesv", 7, 2, "ok")
    assert row["info"] == 0 and row["seconds"] > 0 and row["first_seconds"] > 0
    assert all(value < 30 for value in row["errors_over_eps"].values())


def test_cold_is_a_column(capsys):
    assert main("dgetrf -n 9 --cold --device cpu".split()) == 0
    assert "cold (sec)" in capsys.readouterr().out


@pytest.mark.parametrize("name, matrix, info", [
    ("dgetrf", "zero", 1), ("zpotrf", "heev_arith", None), ("dgesv", "ones", 2),
    ("ssytrf", "zero", 1), ("dtrtri", "zero", 1), ("cgetrf_batched", "zero", 1)])
def test_singular_matrices_have_their_info(name, matrix, info, tmp_path, capsys):
    file = tmp_path / "out.json"
    line = f"{name} -n 6 -c --matrix {matrix} --batch 2 --device cpu --json {file}"
    assert main(line.split()) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["info"] == info or (info is None and row["info"] >= 0)


def test_fallback_of_mixed_precision_fails_unless_allowed(capsys):
    line = "dsgesv -n 40 --matrix svd_geo --cond 1e12 --device cpu"
    assert main(line.split()) == 1
    assert main([*line.split(), "--allow-fallback"]) == 0


def test_a_precision_to_factor_in_is_judged(capsys):
    line = "gesv -p dz -n 60 --matrix svd_geo --cond 1e6 --device cpu --factor"
    assert main([*line.split(), "fp32"]) == 0
    assert "backward/sqrt(N)" in capsys.readouterr().out
    assert main([*line.split(), "bf16"]) == 2  # falls back
    assert main([*line.split(), "bf16", "--refine", "gmres"]) == 0
    assert main([*line.split(), "bf16", "--allow-fallback"]) == 0
    case = find("dgesv")[0].refined
    p = case.problem("d", (50, 50, 50), options=Options(factor="fp16"))
    outputs = case.call(p)
    assert not case.failures(p, case.errors(p, outputs))
    for at, wrong in ((2, outputs[2] * 1.001), (4, -31), (5, 0.0), (0, outputs[0].astype("f8"))):
        spoiled = [*outputs[:at], wrong, *outputs[at + 1:]]
        spoiled[2] = spoiled[2] + 1e-13 * (at == 5)
        assert case.failures(p, case.errors(p, spoiled)), at
    for name in ("sgesv", "dgetrf"):
        assert main(f"{name} -n 5 --factor fp16 --device cpu".split()) == 1


def test_parse_opts(capsys):
    assert main(["parse_opts", "-N", "100,200:1000:100,300"]) == 0
    out = [x for x in capsys.readouterr().out.splitlines() if x[0] != "%"]
    assert len(out) == 9 and out[-1].split() == ["m", "100", "n", "1000", "k", "300"]


def test_a_subset_runs_and_a_fault_is_seen(tmp_path, capsys):
    file = tmp_path / "run.json"
    assert main(f"run --small --square -p dc --lu --chol --device cpu --json {file}".split()) == 0
    summary = json.loads(file.read_text())
    assert "passed!" in capsys.readouterr().out
    assert summary["tests"] == len(summary["rows"]) > 100
    assert main("run --small --square -p d --lu --device cpu --inject-fault".split()) > 0
    assert "routines with failures" in capsys.readouterr().out


def test_every_fault_is_caught(capsys):
    assert main(["selfcheck"]) == 0, capsys.readouterr().out


def test_a_crash_is_a_failed_test(monkeypatch, capsys):
    def crash(self, letter):
        raise RuntimeError("boom")

    monkeypatch.setattr(Case, "function", crash)
    assert main("run --small --square -p d --svd --device cpu".split()) > 0
    assert "boom" in capsys.readouterr().out


def test_the_same_problem_twice_is_the_same():
    case, letter = find("dgesv")
    first, second = (case.problem(letter, (5, 5, 5), None, np.random.default_rng(3),
                                  Options(nrhs=2)) for _ in range(2))
    assert all((x == y).all() for x, y in zip(first.args, second.args))


def test_python_m_testing_ends_with_the_status():
    run = subprocess.run([sys.executable, "-m", "testing", "dgetrf", "-n", "5", "--mode", "native",
                          "--device", "cpu"], cwd=ROOT, capture_output=True, text=True,
                         env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    assert run.returncode == 2 and "auto" in run.stderr


def test_kinds_records_the_worst_error_of_every_routine(tmp_path, capsys):
    from testing import kinds
    path = tmp_path / "kinds.json"
    assert main(["kinds", "-n", "3", "-n", "6", "-p", "dc", "--batch", "2", "--device", "cpu",
                 "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    types = [x for r in kinds.ROUTINES for x in find(r + "_batched")[0].typed if x in "dc"]
    assert len(rows) == len(types) * len(kinds.KINDS)
    assert not any(row["failed"] for row in rows)
    for row in rows:
        assert row["as_lapack"] or row["error"] is None or row["error"] < 30
    assert sum(row["error"] is None for row in rows) < len(rows) / 20
    assert "dgetrf_batched   Wilkinson" in capsys.readouterr().out


def test_kinds_tells_a_wrong_result(monkeypatch, tmp_path):
    import blasx
    solve = blasx.dgesv_batched

    def wrong(*of, **kw):
        lu, piv, x, info = solve(*of, **kw)
        return lu, piv, x * 1.01, info

    monkeypatch.setattr(blasx, "dgesv_batched", wrong)
    assert main(["kinds", "gesv", "-n", "5", "-p", "d", "--device", "cpu", "--nrhs", "1"]) > 15
