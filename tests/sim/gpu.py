"""A GPU that is the CPU: what `--device gpu` runs, without one.

    python -m tests.sim.gpu FOLDER ARGUMENTS       python -m testing ARGUMENTS --device gpu

CuPy's names over NumPy's arrays, each in memory of exactly its size, full of 0xff where CuPy's is
not set. A kernel is built when it is launched, from the text that NVRTC gets and the rows that ship
for Hopper, into FOLDER, where it stays; launches take the schedules of cuda_sim.h in turn, under
AddressSanitizer and UBSan. NVIDIA's libraries are not there: what needs them raises an ImportError.
"""

import ctypes
import hashlib
import os
import sys
from itertools import cycle
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
from cffi import FFI

from blasx import _sources
from blasx._types import TYPES

from .build import PREFIX, build, shim
from .process import sanitized

ENTRY = """extern "C" void {0}(unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned shared,
    unsigned cluster, int schedule, const uint64_t* numbers)
{{ sim::launch({1}, dim3(gx, gy), dim3(bx, by), schedule, numbers, shared, cluster); }}
"""
MODULES = ("cupy", "cupy.cuda", "cupy.cuda.function", "cupy.cuda.runtime", "cupy.cuda.stream",
           "cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.api",
           "cupy_backends.cuda.libs")


class Memory:
    """Bytes on "the GPU", and a place among them."""

    def __init__(self, nbytes, whole=None, at=0):
        if whole is None:
            whole = (ctypes.c_char * nbytes)()
            ctypes.memset(whole, 0xff, nbytes)
        self.whole, self.at = whole, at

    @property
    def ptr(self):
        return ctypes.addressof(self.whole) + self.at

    def __add__(self, more):
        return Memory(0, self.whole, self.at + more)


class Array(np.ndarray):
    """What is asked of an array of CuPy; every result of its operators is one, too."""

    __module__ = "cupy"

    def __new__(cls, shape, dtype=float, memptr=None, strides=None, order="C"):
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        memory = memptr or Memory(nbytes)
        if not nbytes:  # as CuPy has it
            strides = (0,) * len(shape) if isinstance(shape, tuple | list) else (0,)
        return super().__new__(cls, shape, dtype, memory.whole, memory.at, strides, order)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """What CuPy's operators and sums make is by rows, whatever they make it of."""
        out = context is not None and any(x is array for x in context[1])
        if not out and array.ndim > 1 and not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        return np.asarray(array).view(Array)

    def __getitem__(self, at):
        """One element is an array without axes."""
        found = super().__getitem__(at)
        if isinstance(found, np.ndarray):
            return found
        return super().__getitem__((*(at if isinstance(at, tuple) else (at,)), ...))

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data if self.size else 0, device_id=0)

    def get(self, order="C"):
        return np.array(self, order=order)

    def all(self, *of, **kw):
        return ours(self.view(np.ndarray).all(*of, **kw))

    def any(self, *of, **kw):
        return ours(self.view(np.ndarray).any(*of, **kw))

    def argmax(self, *of, **kw):
        return ours(self.view(np.ndarray).argmax(*of, **kw))


def ours(x):
    """A result of NumPy's as CuPy would return it."""
    return np.asarray(x).view(Array) if isinstance(x, (np.ndarray, np.generic)) else x


def copied(x, dtype=None, order="K"):
    x = np.asarray(x, dtype)
    y = Array(x.shape, x.dtype, order=order if order in "CF" else "F" if x.flags.fnc else "C")
    if order == "K" and x.flags.forc is False and x.size:  # axes in the order they have
        axes = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
        y = Array([x.shape[i] for i in axes], x.dtype).transpose(np.argsort(axes))
    y[...] = x
    return y


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

    def synchronize(self):
        pass


def cupy():
    """The module, NumPy's functions among its own."""
    module, main = ModuleType("cupy"), Stream()
    own = {
        "ndarray": Array, "empty": Array, "array": copied, "__version__": "simulated",
        "asarray": lambda x, *of, **kw: (x if x.__class__ is Array and not (of or kw)
                                         else copied(x, *of, **kw)),
        "cuda": SimpleNamespace(
            alloc=Memory, get_current_stream=lambda: main, Event=lambda **_: SimpleNamespace(ptr=0),
            Stream=lambda **_: Stream(),
            Device=lambda i=0: SimpleNamespace(id=0, compute_capability="90",
                                               attributes={"MultiProcessorCount": 4},
                                               synchronize=lambda: None),
            runtime=SimpleNamespace(
                getDevice=lambda: 0, getDeviceCount=lambda: 1,
                runtimeGetVersion=lambda: 0, driverGetVersion=lambda: 0,
                getDeviceProperties=lambda i: {"name": b"CPU", "totalGlobalMem": 0})),
    }
    module.__dict__.update(own)

    def made(name):
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *of, **kw: ours(found(*of, **kw))

    module.__getattr__ = made
    return module


class Kernels:
    """Kernels, built when they are launched, if no process has built them in this folder yet."""

    def __init__(self, folder):
        self.folder, self.built, self.launched = Path(folder), {}, []
        self.maps = set()  # where what tensors are is kept: passed by its address
        self.schedules, self.ffi = cycle(range(4)), FFI()

    def launch(self, kernel, gx, gy, bx, by, parameters, shared=0, together=False):
        from blasx import _kernel, _trace
        key = kernel.name, kernel.letter, str(kernel.constants)
        if key not in self.built:
            text = _sources.program(kernel.name, TYPES[kernel.letter].cpp, kernel.constants)
            place = self.folder / hashlib.sha256(text.encode()).hexdigest()[:12]
            place.mkdir(exist_ok=True)
            library = next(place.glob("*.so"), None) or build(
                place, kernel.name, kernel.letter, kernel.constants, entry=ENTRY,
                ahead=shim(self.folder))
            if not any(kernel.name == name for name, *_ in self.built):
                self.ffi.cdef(f"void {PREFIX}{kernel.name}(unsigned, unsigned, unsigned, unsigned, "
                              "unsigned, unsigned, int, const uint64_t *);")
            self.built[key] = getattr(self.ffi.dlopen(str(library)), PREFIX + kernel.name)
        if parameters == _kernel._local.parameters:
            numbers = self.ffi.from_buffer("uint64_t[]", bytes(_kernel._local.cells))
        else:
            places = [int(_kernel.ffi.cast("uintptr_t", p)) for p in parameters]
            numbers = [at if at in self.maps else _kernel.ffi.cast("uint64_t *", p)[0]
                       for at, p in zip(places, parameters)]
        self.launched.append(kernel.name)
        _kernel.recorded_begun()  # all its blocks begin here
        self.built[key](gx, gy, bx, by, shared, kernel.constants.get("CLUSTER", 1),
                        next(self.schedules), self.ffi.new("uint64_t[]", list(numbers)))
        if _trace._open:
            _trace.note(kernel.name)


    def describe(self, tensor, kind, address, extents, strides, box):
        """TensorMap.describe, as cuda_sim.h's TensorMap reads it."""
        from blasx._kernel import ffi
        rank = len(extents)
        words = [address, *extents, *(1,) * (4 - rank), *strides, *(0,) * (4 - rank), *box,
                 *(1,) * (4 - rank), 1 if kind == tensor.BYTE else 2]
        ffi.buffer(tensor.place, 8 * len(words))[:] = np.array(words, np.uint64).tobytes()
        self.maps.add(int(ffi.cast("uintptr_t", tensor.place)))


def install(folder):
    """Put the GPU in place, before anything asks for CuPy; returns its Kernels."""
    kernels = Kernels(folder)
    for name in MODULES:
        sys.modules[name] = mock.MagicMock()
    sys.modules["cupy"] = module = cupy()
    sys.modules["cupy.cuda.runtime"].getDevice = module.cuda.runtime.getDevice
    from blasx import _arrays, _cuda, _kernel
    from blasx._ragged import Ragged
    from blasx._routine import NATIVE
    from blasx._spaces import HOPPER
    _kernel.gpu, _kernel.shared_memory = lambda device: HOPPER, lambda device: HOPPER.shared
    _kernel.Kernel.launch = lambda kernel, *x, **how: kernels.launch(kernel, *x, **how)
    _kernel.TensorMap.describe = lambda tensor, *x: kernels.describe(tensor, *x)
    _cuda.start()
    NATIVE.add(Array)
    # To isinstance these arrays are NumPy's, as CuPy's are not
    native, packed = _arrays._native, Ragged.empty_like.__func__
    _arrays._native = lambda x: x if x.__class__ is Array else native(x)

    def empty_like(cls, array, shapes):
        made = packed(cls, array, shapes)
        return cls(copied(made.data), made.shapes) if array.__class__ is Array else made

    Ragged.empty_like = classmethod(empty_like)
    for library in (_cuda._cublas, _cuda._cusolver):
        library.dll = library.handle = no_library
    return kernels


def no_library():
    raise ImportError("cuBLAS and cuSOLVER are not simulated")


def main(folder, *arguments):
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.gpu", folder, *arguments],
                  sanitized())
    Path(folder).mkdir(exist_ok=True, parents=True)
    install(folder)
    from testing.__main__ import main as testing
    return testing([*arguments, "--device", "gpu"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
