"""The fused kernels of blasx.nn without a GPU: compiled, and run on the CPU under sanitizers."""

import subprocess
import sys
from pathlib import Path

import pytest

from blasx import _tuned

ROOT = Path(__file__).parent.parent
KERNELS = {"norm_rows": "s", "norm_rows_backward": "d", "column_sums": "s", "softmax_rows": "d",
           "softmax_rows_backward": "s", "cross_entropy_rows": "d", "cross_entropy_mean": "s",
           "adam_step": "d", "activation": "s", "dropout": "d", "lstm_steps": "s",
           "lstm_unstep": "s"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_compiles_without_drift_or_spills(kernel):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    letter = KERNELS[kernel]
    label = resources.label(kernel, letter, _tuned.constants(kernel, letter, 1000, 90))
    wrong = list(resources.complaints(resources.measure([label], ["sm_90a"]),
                                      resources.recorded()))
    assert not wrong, "\n".join(wrong)


def simulate(folder, letter, part):
    from tests.sim.gpu import sanitized
    return subprocess.run([sys.executable, "-m", "tests.sim.run_nn", folder, letter, part],
                          cwd=ROOT, env=sanitized(), capture_output=True, text=True)


@pytest.mark.parametrize("letter, part", [("s", "rows"), ("d", "elements"), ("s", "recurrence")])
def test_layers_run_on_a_simulated_gpu(tmp_path, letter, part):
    """Launchers and kernels under AddressSanitizer and UBSan (tests/sim/run_nn.py)."""
    run = simulate(tmp_path, letter, part)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
