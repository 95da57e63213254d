"""From a file in kernels/ to a launched kernel.

A kernel is the `extern "C"` entry of kernels/<name>.cu. Its headers are spliced into the text, so
that what is hashed is what is compiled; NVRTC compiles it with flags of ours (CuPy's own compiler
appends -ftz=true, which flushes float32 subnormals) into a disk cache of ours.
"""

import hashlib
import re
import sys
import threading
from functools import cache
from struct import Struct

import cupy
from cffi import FFI
from cupy.cuda.function import Module
from cupy.cuda.runtime import getDevice as current_device
from cupy.cuda.stream import get_current_stream
from cupy_backends.cuda.api import driver
from cupy_backends.cuda.libs import nvrtc

from . import _cache, _trace
from ._cuda import check_fork
from ._sources import program
from ._spaces import Gpu
from ._types import TYPES

# No contraction: kernels/scalar.cuh writes every fused operation out, so that results are the
# same to the bit whatever the variant.
OPTIONS = ("-std=c++17", "-fmad=false")

ffi = FFI()
ffi.cdef("""
typedef struct { int id, pad, value[16]; } CUlaunchAttribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    uintptr_t stream;
    CUlaunchAttribute *attributes;
    unsigned count;
} CUlaunchConfig;
int cuLaunchKernelEx(const CUlaunchConfig *, uintptr_t f, void **parameters, void **extra);
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, uintptr_t address,
    const uint64_t *extents, const uint64_t *strides, const unsigned *box, const unsigned *steps,
    int interleave, int swizzle, int promotion, int fill);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuMemcpy2DAsync_v2(const void *what, void *stream);
int cuStreamBatchMemOp_v2(void *stream, unsigned count, void *operations, unsigned flags);
int cuStreamQuery(void *stream);
""")
_NULL = ffi.NULL
_MOST_PARAMETERS = 48
_MOST_BLOCKS = 2**31 - 1
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: this thread has not used its device yet
_STATIC_SHARED, _MOST_DYNAMIC_SHARED, _LARGE_CLUSTERS = 1, 8, 14  # CU_FUNC_ATTRIBUTE_...
# CU_LAUNCH_ATTRIBUTE_COOPERATIVE, ..._PROGRAMMATIC_STREAM_SERIALIZATION, ..._COMPLETION_EVENT
_TOGETHER, _START_EARLY, _BEGUN = 2, 6, 12
_BEGUN_SINCE = 12030  # the driver
_PACK_LAUNCH = Struct("7I4xQ").pack_into  # the head of CUlaunchConfig
_PACK = [Struct(f"{n}q").pack_into for n in range(_MOST_PARAMETERS + 1)]


class _Local(threading.local):
    """Each thread's cells for the parameters of a launch, where they are, and its launch."""

    def __init__(self):
        cells = ffi.new("uint64_t[]", _MOST_PARAMETERS)
        self.cells = ffi.buffer(cells)
        self.parameters = ffi.new("void *[]", [cells + i for i in range(_MOST_PARAMETERS)])
        self.early = ffi.new("CUlaunchAttribute[]", [{"id": _START_EARLY, "value": [1]},
                                                     {"id": _BEGUN}])
        self.begun = ffi.cast("uintptr_t *", self.early[1].value)
        self.recording = False  # whether the next launch records the event that is there
        self.together = ffi.new("CUlaunchAttribute *", {"id": _TOGETHER, "value": [1]})
        self.config = ffi.new("CUlaunchConfig *")
        self.head = ffi.buffer(self.config)


_local = _Local()


@cache
def _library():
    return ffi.dlopen("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _driver():
    return _library().cuLaunchKernelEx


def driver_functions(*names):
    """Where they are."""
    return [int(ffi.cast("uintptr_t", ffi.addressof(_library(), name))) for name in names]


def records_begun():
    """Whether the driver knows when all blocks of a kernel have begun."""
    return gpu(current_device()).driver >= _BEGUN_SINCE


def record_begun(event):
    """Have the next launch of this thread record the event when all its blocks have begun."""
    _local.begun[0] = event.ptr
    _local.recording = True


def recorded_begun():
    """Whether one has; if not, none will."""
    recording, _local.recording = _local.recording, False
    return not recording


def pack(*numbers):
    """The parameters of a launch that are addresses and sizes, 64 bits each."""
    _PACK[len(numbers)](_local.cells, 0, *numbers)
    return _local.parameters


class TensorMap:
    """A parameter of a kernel that copies boxes of a tensor (kernels/hopper.cuh): 128 bytes, at
    `place`. A thread keeps one for each such parameter and has it describe what each launch is of.
    """

    BYTE, HALF, BFLOAT16 = 0, 6, 9  # CU_TENSOR_MAP_DATA_TYPE_...
    _SWIZZLE, _PROMOTION = 3, 3  # of 128 bytes; misses of the L2 cache bring 256

    def __init__(self, rank):
        self._room = ffi.new("char[]", 192)
        start = int(ffi.cast("uintptr_t", self._room))
        self.place = self._room + (-start) % 64
        self._rank, self._steps = rank, ffi.new("unsigned[]", [1] * rank)
        self._extents = ffi.new("uint64_t[]", 3 * rank)  # then strides, and the box
        self._strides = self._extents + rank
        self._box = ffi.cast("unsigned *", self._strides + rank - 1)
        self._cells = ffi.buffer(self._extents)
        self._pack = Struct(f"{2 * rank - 1}Q{rank}I").pack_into

    def describe(self, kind, address, extents, strides, box):
        """A tensor of this `kind` with these extents, the fastest first, strides in bytes of the
        others, which are multiples of 16, and the extents of a box, 128 bytes along the first."""
        self._pack(self._cells, 0, *extents, *strides, *box)
        status = _library().cuTensorMapEncodeTiled(
            self.place, kind, self._rank, address, self._extents, self._strides, self._box,
            self._steps, 0, self._SWIZZLE, self._PROMOTION, 0)
        if status:
            raise RuntimeError(f"cuTensorMapEncodeTiled returned status {status}")


class Kernel:
    """One kernel compiled for one type and one set of constants, on every device it is used on."""

    def __init__(self, name, letter, **constants):
        self.name, self.letter, self.constants = name, letter, constants
        self._loaded = {}  # device -> function, whether it may start early
        self._modules = []
        self._lock = threading.Lock()

    def launch(self, gx, gy, bx, by, parameters, shared=0, together=False):
        """Launch gx x gy blocks of bx x by threads in the current stream, each with `shared`
        bytes of dynamic shared memory; `parameters` is a void *[] with where each one is. From
        Hopper on they may start while the kernel before them ends (kernels/launch.cuh).
        `together`: all at once or none, as they wait for each other; an error where they do not
        fit."""
        check_fork()
        if gx > _MOST_BLOCKS:
            raise ValueError(f"{self.name}: {gx} blocks are more than one launch takes")
        function, early = self._loaded.get(current_device()) or self._load()
        _PACK_LAUNCH(_local.head, 0, gx, gy, 1, bx, by, 1, shared, get_current_stream().ptr)
        config = _local.config
        config.attributes = _local.together if together else _local.early
        config.count = 1 if together else early
        if _local.recording and not together:
            config.attributes, config.count = _local.early + 1 - early, 1 + early
            _local.recording = False
        status = _driver()(config, function, parameters, _NULL)
        if status == _NO_CONTEXT:
            cupy.cuda.runtime.setDevice(current_device())
            status = _driver()(config, function, parameters, _NULL)
        if status:
            raise RuntimeError(f"{self.name}: cuLaunchKernelEx returned status {status}")
        if _trace._open:
            _trace.note(self.name)

    def _load(self):
        device = current_device()
        with self._lock:
            if device not in self._loaded:
                text = program(self.name, TYPES[self.letter].cpp, self.constants)
                module = Module()
                module.load(compiled(text, architecture(device)))
                self._modules.append(module)
                function = module.get_function(self.name)
                if "dynamic_shared" in text:  # a block gets more than 48 KB only if asked for
                    static = driver.funcGetAttribute(_STATIC_SHARED, function.ptr)
                    driver.funcSetAttribute(function.ptr, _MOST_DYNAMIC_SHARED,
                                            shared_memory(device) - static)
                if self.constants.get("CLUSTER", 1) > 8:  # more than every GPU with clusters has
                    driver.funcSetAttribute(function.ptr, _LARGE_CLUSTERS, 1)
                self._loaded[device] = function.ptr, int(gpu(device).capability >= 90)
            return self._loaded[device]


@cache
def kernel_of(name, letter, **constants):
    """One Kernel for all orders that are served by the same constants."""
    return Kernel(name, letter, **constants)


@cache
def shared_memory(device):
    """The bytes of shared memory that a block can have on a device (232448 on Hopper)."""
    return cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]


@cache
def multiprocessors(device):
    return cupy.cuda.Device(device).attributes["MultiProcessorCount"]


def in_turns(tiles, places, turns):
    """How many blocks, or clusters of them, have a product's tiles among them where so many find
    room at a time: no more, or, with `turns`, as many as leave each about so many tiles, so that
    what is ahead in another stream finds a place before all is done."""
    return min(tiles, max(places, -(-tiles // turns))) if turns else min(tiles, places)


@cache
def gpu(device):
    """What the tuned table asks about a device."""
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    return Gpu(properties["name"].decode(), cupy.cuda.runtime.driverGetVersion(),
               10 * properties["major"] + properties["minor"], shared_memory(device))


@cache
def architecture(device):
    """The target of a device: its own, with Hopper's instructions on Hopper; on a device that
    this NVRTC does not know the nearest older one, as PTX."""
    capability = int(cupy.cuda.Device(device).compute_capability)
    known = [int(re.search(r"\d+", str(a))[0]) for a in nvrtc.getSupportedArchs()]
    if capability in known:
        return f"sm_{capability}{'a' * (capability == 90)}"
    return f"compute_{max(a for a in known if a < capability)}"


def compiled(text, arch):
    """The cubin (or PTX) of a program, from the disk cache or from NVRTC."""
    key = "\0".join((text, arch, *OPTIONS, str(nvrtc.getVersion())))
    name = hashlib.sha256(key.encode()).hexdigest()
    folder = _cache.folder()
    if folder is None:
        return _compile(text, arch)
    file = folder / name
    code = _read(file)
    if code is None:
        code = _compile(text, arch)
        _write(file, code)
    return code


def _compile(text, arch):
    handle = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(handle, (*OPTIONS, f"-arch={arch}"))
        return nvrtc.getCUBIN(handle) if arch.startswith("sm_") else nvrtc.getPTX(handle)
    except nvrtc.NVRTCError:
        raise RuntimeError("NVRTC: " + nvrtc.getProgramLog(handle)) from None
    finally:
        nvrtc.destroyProgram(handle)


# -- the disk cache: <sha256 of what was compiled> holds <sha256 of the code><the code>


def _read(file):
    """The code in a cache file; None if there is none or it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, code = content[:32], content[32:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def _write(file, code):
    try:
        _cache.put(file, hashlib.sha256(code).digest() + code)
    except OSError:  # a full disk must not stop a computation
        pass
