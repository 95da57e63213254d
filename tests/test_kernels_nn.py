"""The fused kernels of blasx.nn without a GPU: compiled, and run on the CPU under sanitizers."""

import subprocess
import sys
from pathlib import Path

import pytest

from blasx import _spaces, _tuned
from tests.sim.process import under_sanitizers

ROOT = Path(__file__).parent.parent
KERNELS = {"norm_rows": "s", "norm_rows_backward": "d", "column_sums": "b", "softmax_rows": "d",
           "softmax_rows_backward": "h", "cross_entropy_rows": "b", "cross_entropy_mean": "s",
           "adam_step": "h", "activation": "s", "dropout": "d", "recurrent_steps": "s",
           "recurrent_unsteps": "s", "recurrent_unsteps_cluster": "s",
           "attention_forward": "b", "attention_queries": "s", "attention_keys": "h",
           "attention_pairs": "s", "attention_sums": "b", "attention_wgmma": "b",
           "attention_wgmma_keys": "b", "attention_wgmma_queries": "h",
           "convolve": "s", "convolve_weights": "d", "convolve_wgmma": "s",
           "convolve_wgmma_weights": "s", "channel_pairs": "s", "split_sums": "s",
           "pair_words": "s", "add": "b", "embedding_sums": "h", "softmax_chunks": "s",
           "softmax_chunks_backward": "s", "cross_entropy_chunks": "s"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_compiles_without_drift_or_spills(kernel):
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    letter = KERNELS[kernel]
    n = min(1000, _spaces.SPACES[kernel].largest)
    row = _tuned.at_least(kernel, letter, n, 90)
    label = resources.label(kernel, letter, _tuned.capitals(row))
    wrong = list(resources.complaints(resources.measure([label], ["sm_90a"]),
                                      resources.recorded()))
    assert not wrong, "\n".join(wrong)


def simulate(folder, letter, part):
    return under_sanitizers("run_nn", folder, letter, part)


@pytest.mark.parametrize("letter, part", [("s", "convolution"), ("s", "convolution_by_pairs"),
                                          ("d", "convolution"), ("s", "convolution_boxes"),
                                          ("b", "attention_boxes"), ("h", "attention_boxes"),
                                          ("s", "rows"), ("b", "rows"), ("s", "recurrence"),
                                          ("s", "attention"), ("h", "elements"), ("s", "graphs")])
def test_layers_run_on_a_simulated_gpu(simulated, letter, part):
    """Launchers and kernels under AddressSanitizer and UBSan (tests/sim/run_nn.py)."""
    run = simulate(simulated, letter, part)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


TURNS = """
extern "C" __global__ void turns(int* reached)
{
    __shared__ int mine[4];
    mine[threadIdx.x] = blockIdx.x;
    for (int step = 1; step < 4; ++step) {
        __syncthreads();
        if (threadIdx.x == 0) reached[blockIdx.x] = step;
        while (reached[1 - blockIdx.x] < step) sim::give_way();
    }
    __syncthreads();
    reached[blockIdx.x] = 10 + mine[3 - threadIdx.x];
}
extern "C" void sim_turns(int schedule, const uint64_t* numbers) {
    sim::launch(turns, 2, 4, schedule, numbers);
}
"""
CALL = """
import sys
from cffi import FFI
ffi = FFI()
ffi.cdef("void sim_turns(int, const uint64_t *);")
turns = ffi.dlopen(sys.argv[1]).sim_turns
for schedule in range(4):
    reached = ffi.new("int[]", 2)
    turns(schedule, ffi.new("uint64_t[]", [int(ffi.cast("uintptr_t", reached))]))
    assert list(reached) == [10, 11], list(reached)
"""


@pytest.mark.parametrize("silent", [False, True])
def test_blocks_that_wait_for_each_other_take_turns(tmp_path, silent):
    """Each with its own shared memory; where one waits for what nobody writes, that is said."""
    from tests.sim.build import SCHEDULER, SHIM
    text = TURNS.replace("threadIdx.x == 0)", "threadIdx.x == 0 && step < 3)") if silent else TURNS
    cpp, library = tmp_path / "turns.cpp", tmp_path / "turns.so"
    cpp.write_text(f'#include "{SHIM}"\n{text}')
    subprocess.run(["g++", "-std=c++17", "-fPIC", "-shared", cpp, SCHEDULER, "-o", library],
                   check=True)
    run = subprocess.run([sys.executable, "-c", CALL, library], capture_output=True, text=True)
    assert bool(run.returncode) is silent, run.stderr
    assert ("what nobody writes is awaited" in run.stderr) is silent
