"""What the binding of cuSOLVER does around a call, without a GPU."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from cublas_on_cpu import cupy

from blasx import _cuda


class Event:
    done = False

    def __init__(self, **_):
        pass


class Solver:
    """cuSOLVER that asks for so much host memory; `work` are the blocks it was given."""

    def __init__(self, nbytes):
        self.nbytes, self.work, self.events, self.capturing = nbytes, [], [], False

    def __call__(self, name, parameters, *arguments):
        if name.endswith("bufferSize"):
            arguments[-2][0], arguments[-1][0] = 8, self.nbytes
        else:
            self.work.append(weakref.ref(arguments[-3]))

    def record(self, event):
        self.events.append(event)
        return event

    def is_capturing(self):
        return self.capturing

    def alive(self):
        gc.collect()
        return [block() is not None for block in self.work]


@pytest.fixture
def solver(monkeypatch, request):
    fake = Solver(request.param)
    gpu = SimpleNamespace(empty=cupy.zeros, cuda=SimpleNamespace(Event=Event))
    for name, value in {"cupy": gpu, "solver": fake, "params": lambda: 0,
                        "get_current_stream": lambda: fake, "_held": []}.items():
        monkeypatch.setattr(_cuda, name, value)
    return fake


def calls(count):
    for _ in range(count):
        assert _cuda.solver64("Xsyevd", "n", (1,)).dtype == np.int32


@pytest.mark.parametrize("solver", [64], indirect=True)
def test_host_workspace_outlives_the_work_that_is_queued(solver):
    calls(3)
    assert solver.alive() == [True] * 3
    solver.events[1].done = True  # another stream than those before and after it
    calls(1)
    assert solver.alive() == [True, False, True, True]
    for event in solver.events:
        event.done = True
    calls(1)
    assert solver.alive() == [False] * 4 + [True]


@pytest.mark.parametrize("solver", [64], indirect=True)
def test_a_graph_keeps_its_host_workspace(solver):
    solver.capturing = True
    calls(1)
    solver.capturing = False
    calls(1)
    solver.events[0].done = True
    calls(1)
    assert solver.alive() == [True, False, True] and len(solver.events) == 2


@pytest.mark.parametrize("solver", [0], indirect=True)
def test_without_host_workspace_nothing_is_recorded(solver):
    calls(2)
    assert not solver.events and not _cuda._held
