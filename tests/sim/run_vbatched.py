"""Runs the launcher of members of different sizes (blasx/batched/_gpu_ragged.py) without a GPU, for
a process that has the sanitizers:  python -m tests.sim.run_vbatched FOLDER LETTER

Arrays are NumPy's behind CuPy's names, kernels those of `VALUES` built for the CPU. Every member
must come out, to the bit, as from the `_batched` routine's launcher with the same constants.
"""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
from cffi import FFI

from blasx import _kernel, _tuned
from blasx._ragged import Ragged
from blasx._routine import Typed
from blasx._spaces import HOPPER

from . import run_lu
from .build import PREFIX, build
from .run import SCHEDULES, general, positive

LU = dict(CHUNK=16, TM=16, TN=16, UNROLL=1, BLOCKS=1, NB=8, WARPS=2, ROWS=1)
VALUES = {
    "getrf_block": LU | dict(RESIDENT=0),
    "getrf_shared": None,
    "gesv_shared": dict(TN=16, BLOCKS=1, N=48, WARPS=1, PANEL=1),
    "getrs_block": dict(WARPS=2, NB=32, DEEP=32, WIDTH=4, TM=16, TN=8, BLOCKS=1),
}
ffi = FFI()


class Array(np.ndarray):
    """What the launchers ask of an array of CuPy."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def __array_finalize__(self, base):
        self.memory = getattr(base, "memory", None)


class Memory:
    def __init__(self, nbytes, whole=None, at=0):
        self.whole, self.at = np.empty(nbytes, np.uint8) if whole is None else whole, at

    def __add__(self, more):
        return Memory(0, self.whole, self.at + more)


def ndarray(shape, dtype, memory=None):
    if memory is None:
        return Array(shape, dtype)
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape)) * dtype.itemsize
    return memory.whole[memory.at:memory.at + nbytes].view(dtype).reshape(shape).view(Array)


class Stream:
    ptr = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def record(self, event):
        return event

    def wait_event(self, event):
        pass

    def is_capturing(self):
        return False


MAIN = Stream()
CUPY = SimpleNamespace(
    ndarray=ndarray, zeros=lambda *x: np.zeros(*x).view(Array),
    empty=lambda *x: np.empty(*x).view(Array), asarray=lambda x: x.copy().view(Array),
    ascontiguousarray=lambda x: np.ascontiguousarray(x).view(Array),
    cuda=SimpleNamespace(
        alloc=Memory, get_current_stream=lambda: MAIN, Event=lambda **_: None,
        Stream=lambda **_: Stream(), runtime=SimpleNamespace(getDevice=lambda: 0)))


class Simulated:
    """Kernels, built when they are launched."""

    def __init__(self, folder):
        self.folder, self.built, self.launched = folder, {}, []

    def launch(self, kernel, gx, gy, bx, by, parameters, shared=0):
        key = kernel.name, kernel.letter, str(kernel.constants)
        if key not in self.built:
            library = build(self.folder, kernel.name, kernel.letter, kernel.constants,
                            entry=run_lu.ENTRY)
            if not any(kernel.name == name for name, *_ in self.built):
                ffi.cdef(f"void {PREFIX}{kernel.name}(unsigned, unsigned, unsigned, int, "
                         "const uint64_t *);")
            self.built[key] = getattr(ffi.dlopen(str(library)), PREFIX + kernel.name)
        cells = ffi.from_buffer("uint64_t[]", bytes(_kernel._local.cells))
        self.launched.append(kernel.name)
        self.built[key](gx, bx, shared, SCHEDULES[0], cells)


@contextmanager
def without_a_gpu(folder):
    """The launchers' modules, their launches being those of a Simulated."""
    from blasx.batched import _gpu, _gpu_cholesky, _gpu_lu, _gpu_ragged
    sim = Simulated(folder)
    _kernel.Kernel.launch = lambda kernel, *x: sim.launch(kernel, *x)
    for module in (_gpu, _gpu_cholesky, _gpu_lu, _gpu_ragged):
        module.cupy = CUPY
    _gpu.current_device, _gpu.gpu = lambda: 0, lambda device: HOPPER
    packed = Ragged.empty_like.__func__

    def empty_like(cls, array, shapes):
        r = packed(cls, array, shapes)
        r.data = r.data.view(Array)
        return r

    Ragged.empty_like = classmethod(empty_like)
    yield sim, _gpu_lu, _gpu_cholesky, _gpu_ragged


def same(found, alone, what):
    for i, (x, y) in enumerate(zip(found, alone, strict=True)):
        assert np.asarray(x).tobytes() == np.asarray(y)[0].tobytes(), (what, i)


def main(folder, letter):
    me, rng = Typed(letter + "gesv_vbatched", letter), np.random.default_rng(0)
    with without_a_gpu(folder) as (sim, lu, cholesky, ragged), _tuned.using(letter, **VALUES):
        a = [general(rng, me.dtype, 1, m, n)[0].view(Array)
             for m, n in ((41, 37), (0, 3), (35, 44), (48, 48))]
        a[2] = np.asfortranarray(a[2]).view(Array)
        compare(lambda x: ragged.getrf(me, x, 0), lambda x: lu.getrf(me, x, 0), 2, a)
        assert sim.launched == 5 * ["getrf_block"]  # three alone, and all together twice

        a = [general(rng, me.dtype, 1, n, n)[0].view(Array) for n in (40, 48, 0, 33, 34)]
        b = [general(rng, me.dtype, 1, len(x), nrhs)[0].view(Array)
             for x, nrhs in zip(a, (2, 9, 1, 0, 5))]
        a[3][:, 5] = 0
        compare(lambda *x: ragged.gesv(me, *x, 0, 0), lambda *x: lu.gesv(me, *x, 0, 0), 3, a, b)
        factors, piv, _ = ragged.getrf(me, a, 0)
        compare(lambda *x: ragged.getrs(me, *x, 2, 0), lambda *x: lu.getrs(me, *x, 2, 0), 1,
                factors, piv, b)
    print("ok")


def compare(many, one, members, *operands):
    """The members of both launchers' results and their infos; lists and one buffer."""
    alone = [one(*(x[i][None] for x in operands)) for i in range(len(operands[0]))]
    for given in (operands, [Ragged.pack(x) for x in operands]):
        found = many(*given)
        for k in range(members):
            same(found[k], [result[k] for result in alone], k)
        same(found[-1], [result[-1] for result in alone], "info")


if __name__ == "__main__":
    main(*sys.argv[1:])
