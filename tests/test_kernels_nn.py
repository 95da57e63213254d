"""The fused kernels of blasx.nn without a GPU: compiled, and run on the CPU under sanitizers."""

import subprocess
import sys
from pathlib import Path

import pytest

from blasx import _tuned

ROOT = Path(__file__).parent.parent
KERNELS = ("norm_rows", "norm_rows_backward", "column_sums", "softmax_rows", "cross_entropy_rows",
           "adam_step", "activation", "dropout")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("letter", "sd")
def test_compiles_without_drift_or_spills(kernel, letter):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    label = resources.label(kernel, letter, _tuned.constants(kernel, letter, 1000, 90))
    wrong = list(resources.complaints(resources.measure([label], ["sm_90a"]),
                                      resources.recorded()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("letter, part", [("s", "rows"), ("d", "rows"), ("s", "elements"),
                                          ("d", "elements")])
def test_layers_run_on_a_simulated_gpu(tmp_path, letter, part):
    """Launchers and kernels under AddressSanitizer and UBSan (tests/sim/run_nn.py)."""
    from tests.sim.gpu import sanitized
    run = subprocess.run([sys.executable, "-m", "tests.sim.run_nn", tmp_path, letter, part],
                         cwd=ROOT, env=sanitized(), capture_output=True, text=True)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
