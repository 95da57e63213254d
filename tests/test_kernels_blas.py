"""The products of a block and the batched BLAS kernels without a GPU."""

import json
import subprocess
import sys

import pytest
from test_kernels import ROOT, sanitized

from blasx import _sources, _tuned
from blasx._types import TYPES

every_letter = pytest.mark.parametrize("letter", "sdcz")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("blas")


@every_letter
def test_products_of_a_block(folder, letter):
    """multiply.cuh under the sanitizers (tests/sim/run_multiply.py)."""
    from tests.sim import run_multiply
    from tests.sim.build import FLAGS, SHIM
    warps = 2
    file, library = folder / f"multiply_{letter}.cpp", folder / f"multiply_{letter}.so"
    file.write_text(f'#include "{SHIM}"\n#define BLASX\n#define SCALAR {TYPES[letter].cpp}\n'
                    f"constexpr int WARPS = {warps}, RAGGED = 0;\n{_sources.source('multiply.cuh')}"
                    f"{run_multiply.KERNEL}")
    subprocess.run(["g++", *FLAGS, file, "-o", library], check=True)
    run = subprocess.run(
        [sys.executable, "-m", "tests.sim.run_multiply", library, letter, str(warps)],
        cwd=ROOT, env=sanitized(), capture_output=True, text=True)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


KERNELS = ("gemm_thread", "gemm_warp", "gemm_block", "gemv_batched")
ROWS = [(kernel, letter) for kernel in KERNELS for letter in _tuned.table(90)[kernel]]
every_kernel = pytest.mark.parametrize(("kernel", "letter"), ROWS)


def constants(kernel, letter, place):
    return {k: v for k, v in _tuned.table(90)[kernel][letter][place].items() if k.isupper()}


@every_kernel
def test_products_of_a_batch(folder, kernel, letter):
    """The kernels under the sanitizers and four schedules (tests/sim/run_blas.py)."""
    from tests.sim import build, run_blas
    for place in (0,) if kernel == "gemm_block" else (0, 2):
        values = constants(kernel, letter, place)
        library = build.build(folder, kernel, letter, values, entry=run_blas.ENTRY)
        run = subprocess.run(
            [sys.executable, "-m", "tests.sim.run_blas", library, kernel, letter,
             json.dumps(values)], cwd=ROOT, env=sanitized(), capture_output=True, text=True)
        assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@every_kernel
def test_compiles_without_drift_or_spills(kernel, letter):
    """The largest on Hopper; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    key = resources.label(kernel, letter, constants(kernel, letter, -1))
    found = resources.measure([key], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)
