"""Singular values on the GPU without one: kernels compiled, and run on the CPU under sanitizers;
the polar way of larger members on NumPy arrays."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from test_kernels import ROOT, sanitized

import blasx
from blasx import _tuned
from blasx._types import TYPES

KERNELS = "gesvd_vectors", "gesvd_values"
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_letter = pytest.mark.parametrize("letter", "sdcz")
SMALL = {"ROWS": 2, "LANES": 4, "WIDTH": 4, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
BLOCK = {"ROWS": 3, "LANES": 8, "WIDTH": 2, "GROUPS": 12, "WARPS": 3, "SHARED": 1, "BLOCKS": 1}
FAR = {"ROWS": 1, "LANES": 32, "WIDTH": 1, "GROUPS": 2, "WARPS": 2, "SHARED": 0, "BLOCKS": 1}
FIVES = {"ROWS": 3, "LANES": 4, "WIDTH": 5, "GROUPS": 2, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
SIXES = {"ROWS": 4, "LANES": 2, "WIDTH": 6, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
THREES = {"ROWS": 2, "LANES": 4, "WIDTH": 3, "GROUPS": 1, "WARPS": 1, "SHARED": 1, "BLOCKS": 1}
RUNS = [(SMALL, ("8,8", "7,5", "8,3", "1,1")), (BLOCK, ("13,11", "16,9")), (FAR, ("17,6",)),
        (FIVES, ("12,11", "10,5")), (SIXES, ("8,8", "7,2")), (THREES, ("6,6", "8,5"))]


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
        members = 32 * row["WARPS"] // (row["LANES"] * row["GROUPS"])
        assert members >= 1 and (not row["SHARED"] or members * columns * column <= 227 * 1024)


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
    ("gesvd_vectors", "d", 3), ("gesvd_vectors", "s", 4), ("gesvd_vectors", "c", 5)])
def test_runs_on_the_cpu(folder, kernel, letter, run):
    """A few members to a warp, a member to a block, columns in global memory."""
    from tests.sim import build, run_svd
    values, shapes = RUNS[run]
    library = build.build(folder, kernel, letter, values, entry=run_svd.ENTRY)
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.run_svd", library, kernel, letter, json.dumps(values),
         *shapes], cwd=ROOT, env=sanitized(), capture_output=True, text=True)
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-3000:]


def scale(a, x, kept, find=True, conjugated=False):
    """What kernels/lascl_batched.cu does."""
    for i, member in enumerate(a.conj() if conjugated else a):
        if find:
            most = max(abs(member.real).max(), abs(member.imag).max())
            kept[i] = np.frexp(most)[1] if np.isfinite(most) else 2**20
        if kept[i] == 2**20:
            x[i] = 0 if find else np.nan
        else:
            x[i] = member * member.real.dtype.type(2.0 ** (-kept[i] if find else kept[i]))


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("shape", [(20, 20), (17, 12), (9, 14)])
def test_polar_way_on_numpy(monkeypatch, letter, shape):
    """Random, zero, rank one, nan, graded, of low rank, triangular: routines of the CPU in the
    place of those of the GPU."""
    pytest.importorskip("cupy")
    from blasx.batched import _gpu_svd
    t, real = TYPES[letter], "sdcz".index(letter) < 2

    def routine(name):
        return getattr(blasx, letter + name if real else letter + name.replace("or", "un"))

    qr = SimpleNamespace(
        MOST=1024, geqrf=lambda me, a, overwrite: getattr(blasx, letter + "geqrf_batched")(a),
        orgqr=lambda me, qr, tau, overwrite: routine("orgqr_batched")(qr, tau),
        ormqr=lambda me, side, trans, *of: routine("ormqr_batched")(side, trans, *of))
    eig = getattr(blasx, letter + ("syevd" if real else "heevd") + "_batched")
    for name, what in {"cupy": np, "_gpu_qr": qr, "jacobi": lambda *of: None,
                       "_some": _gpu_svd._some.__wrapped__, "current_device": lambda: 0,
                       "infos": lambda b: np.zeros(b, np.int32), "scale": scale,
                       "_gpu_eig": SimpleNamespace(syevd=lambda me, h, *how: eig(h, *map(int, how)))
                       }.items():
        monkeypatch.setattr(_gpu_svd, name, what)
    from tests.sim.run_gesdd import is_svd, some_of_every_kind
    m, n = shape
    a = some_of_every_kind(np.random.default_rng(0), t, m, n)
    me = SimpleNamespace(letter=letter, dtype=t.dtype, real=t.real, is_complex=not real)
    u, s, vt, info = _gpu_svd.gesvd(me, a, 1, 1)
    values = _gpu_svd.gesvd(me, a, 0, 0)[1]
    assert info.tolist() == [0, 0, 0, 1, 0, 0, 0] and np.isnan(u[3]).all() and np.isnan(s[3]).all()
    for i in (0, 1, 2, 4, 5, 6):
        assert (s[i] == values[i]).all()
        is_svd(a[i], u[i], s[i], vt[i])


def test_polar_way_of_one_matrix(simulated):
    """gesdd of one matrix on a simulated GPU (tests/sim/run_gesdd.py)."""
    run = subprocess.run([sys.executable, "-m", "tests.sim.run_gesdd", str(simulated)], cwd=ROOT,
                         env=sanitized(), capture_output=True, text=True)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
