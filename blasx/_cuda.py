"""cuBLAS and cuSOLVER by name, through cffi.

CuPy's own bindings lack half of BLAS (trmm, symm, herk ...) and cost 22 us a call; these cost
about one. CuPy has loaded the libraries; here they are only looked up. Arrays travel as
addresses, sizes as 64-bit integers; everything runs in CuPy's current stream.

Importing this module imports no CuPy: `start` does, when the first CuPy array arrives.
"""

import os
import re
import threading
from contextlib import contextmanager
from functools import cache, lru_cache
from math import copysign

import numpy as np
from cffi import FFI

from . import _trace
from ._lapack import by_columns, by_rows, column_major, ld  # noqa: F401 (the layout rules are shared)

ffi = FFI()
cupy = current_device = get_current_stream = None


def start():
    """Bind CuPy: there are arrays of it now."""
    global cupy, current_device, get_current_stream
    import cupy
    current_device = cupy.cuda.runtime.getDevice
    get_current_stream = cupy.cuda.get_current_stream


# Parameters after the handle: i int or enum, n int64, p device address, h host pointer.
CUBLAS = {
    # level 1: n, x, incx, ...
    "axpy": "nhpnpn", "copy": "npnpn", "swap": "npnpn", "scal": "nhpn",
    "Csscal": "nhpn", "Zdscal": "nhpn",
    "dot": "npnpnp", "dotu": "npnpnp", "dotc": "npnpnp",
    "nrm2": "npnp", "Scnrm2": "npnp", "Dznrm2": "npnp",
    "asum": "npnp", "Scasum": "npnp", "Dzasum": "npnp",
    "Isamax": "npnp", "Idamax": "npnp", "Icamax": "npnp", "Izamax": "npnp",
    "rot": "npnpnhh", "Csrot": "npnpnhh", "Zdrot": "npnpnhh",
    "rotm": "npnpnh",
    # level 2
    "gemv": "innhpnpnhpn", "gbmv": "innnnhpnpnhpn",
    "symv": "inhpnpnhpn", "hemv": "inhpnpnhpn",
    "sbmv": "innhpnpnhpn", "hbmv": "innhpnpnhpn",
    "spmv": "inhppnhpn", "hpmv": "inhppnhpn",
    "ger": "nnhpnpnpn", "geru": "nnhpnpnpn", "gerc": "nnhpnpnpn",
    "syr": "inhpnpn", "her": "inhpnpn", "spr": "inhpnp", "hpr": "inhpnp",
    "syr2": "inhpnpnpn", "her2": "inhpnpnpn", "spr2": "inhpnpnp", "hpr2": "inhpnpnp",
    "trmv": "iiinpnpn", "trsv": "iiinpnpn", "tbmv": "iiinnpnpn", "tbsv": "iiinnpnpn",
    "tpmv": "iiinppn", "tpsv": "iiinppn",
    # level 3
    "gemm": "iinnnhpnpnhpn", "symm": "iinnhpnpnhpn", "hemm": "iinnhpnpnhpn",
    "syrk": "iinnhpnhpn", "herk": "iinnhpnhpn",
    "syr2k": "iinnhpnpnhpn", "her2k": "iinnhpnpnhpn",
    "syrkx": "iinnhpnpnhpn", "herkx": "iinnhpnpnhpn",
    "trmm": "iiiinnhpnpnpn", "trsm": "iiiinnhpnpn",
    "geam": "iinnhpnhpnpn", "gemmStridedBatched": "iinnnhpnnpnnhpnnn",
    # with a type (cudaDataType) after each operand, and the type of the sums
    "GemmStridedBatchedEx": "iinnnhpinnpinnhpinnnii",
    # batched factorisations (32-bit sizes, arrays of pointers on the device)
    "getrfBatched": "ipippi", "getrsBatched": "iiipippihi", "trsmBatched": "iiiiiihpipii",
}
# Without _v2 in their name, and whether they have a 64-bit form.
_PLAIN_NAMES = {"geam": "_64", "syrkx": "_64", "herkx": "_64", "gemmStridedBatched": "_64",
                "GemmStridedBatchedEx": "_64", "getrfBatched": "", "getrsBatched": "",
                "trsmBatched": ""}

LEFT, RIGHT = 0, 1
COMPUTE_32F, DEFAULT_ALGORITHM = 68, -1  # cublasComputeType_t, cublasGemmAlgo_t
COMPUTE = {"fp16": 74, "bf16": 75, "tf32": 77}
LOWER, UPPER = 0, 1
NON_UNIT, UNIT = 0, 1


def fill(lower):
    """cublasFillMode_t of SciPy's `lower`."""
    return LOWER if lower else UPPER


class _Local(threading.local):
    """Each thread's library handles, by device: a handle must not be shared between threads."""

    def __init__(self):
        self.handles = {}  # (library, device, beside) -> [handle, its stream]
        self.beside = 0
        self.keeping = False


_local = _Local()
_forked = False


@contextmanager
def beside(stream, number=1):
    """Work in this stream, the `number`-th that runs beside the caller's, with handles of its own:
    the workspace of a handle that two streams share could be used by both."""
    before, _local.beside = _local.beside, number
    try:
        with stream:
            yield
    finally:
        _local.beside = before


def is_beside():
    return _local.beside


@contextmanager
def keeping_memory():
    """A graph that captures this thread's stream keeps all memory that calls allocate meanwhile."""
    _local.keeping = True
    try:
        yield
    finally:
        _local.keeping = False


def graph_forgets():
    """True where a graph captures the current stream and keeps no memory that a call gives back:
    what is in it then is another's when the graph runs."""
    return get_current_stream().is_capturing() and not _local.keeping


def _after_fork():
    """Of a process that has used the GPU: the first question of any call is refused."""
    global _forked, current_device
    if cupy is not None:
        _forked, current_device = True, check_fork


os.register_at_fork(after_in_child=_after_fork)


def check_fork():
    """CUDA does not survive a fork: say so instead of failing in strange ways."""
    if _forked:
        raise RuntimeError(
            "blasx: this process was forked from one that used the GPU, and CUDA does not survive "
            "fork(); start workers with multiprocessing.get_context('spawn') or 'forkserver'")


class Library:
    """One NVIDIA library: its functions by name, its handles by thread and device."""

    def __init__(self, prefix, soname, load):
        self.prefix, self.soname, self._load = prefix, soname, load
        self._dll = None
        self._functions = {}
        self._lock = threading.Lock()

    def dll(self):
        """The library that CuPy has loaded (or that the loader finds under its soname)."""
        with self._lock:
            if self._dll is None:
                self._load()
                with open("/proc/self/maps") as maps:
                    path = re.search(rf"\S*/{re.escape(self.soname)}\.so\S*", maps.read())
                self._dll = ffi.dlopen(path[0] if path else f"{self.soname}.so")
        return self._dll

    def function(self, name, parameters):
        """The function `name`, whose parameters after the handle are spelled as in CUBLAS."""
        f = self._functions.get(name)
        if f is None:
            kinds = {"i": "int", "n": "int64_t", "p": "uintptr_t", "h": "void *", "z": "size_t",
                     "f": "float", "d": "double"}
            spelled = ", ".join(kinds[c] for c in parameters)
            library = self.dll()
            with self._lock:
                ffi.cdef(f"int {name}({spelled});", override=True)
            f = self._functions[name] = getattr(library, name)
        return f

    def handle(self):
        """This thread's handle on the current device, set to the current stream."""
        check_fork()
        key = self.prefix, current_device(), _local.beside
        entry = _local.handles.get(key)
        if entry is None:
            cell = ffi.new("uintptr_t *")
            create = {"cublas": "cublasCreate_v2", "cusolverDn": "cusolverDnCreate"}[self.prefix]
            _succeed(create, self.function(create, "h")(cell))
            entry = _local.handles[key] = [cell[0], 0]
        stream = get_current_stream().ptr
        if entry[1] != stream:
            set_stream = {"cublas": "cublasSetStream_v2",
                          "cusolverDn": "cusolverDnSetStream"}[self.prefix]
            _succeed(set_stream, self.function(set_stream, "pp")(entry[0], stream))
            entry[1] = stream
        return entry[0]


def _succeed(name, status):
    if status:
        raise RuntimeError(f"{name} returned status {status}")


def _load_cublas():
    cupy.cuda.device.get_cublas_handle()


def _load_cusolver():
    cupy.cuda.device.get_cusolver_handle()


_cublas = Library("cublas", "libcublas", _load_cublas)
_cusolver = Library("cusolverDn", "libcusolver", _load_cusolver)
_blas_functions = {}


def blas(name, *arguments):
    """Call cuBLAS's `name` ("Dgemm"): flags, sizes, addresses; scalars as `scalar` makes them."""
    f = _blas_functions.get(name) or _blas_function(name)
    status = f(_cublas.handle(), *arguments)
    if status:
        raise RuntimeError(f"cublas{name} returned status {status}")
    if _trace._open:
        _trace.note("cublas")


def _blas_function(name):
    base = name if name in CUBLAS else name[1:]
    full = f"cublas{name}{_PLAIN_NAMES.get(base, '_v2_64')}"
    f = _blas_functions[name] = _cublas.function(full, "p" + CUBLAS[base])
    return f


def blas_on_device(name, *arguments):
    """`blas` for the routines whose scalar results stay on the device (dot nrm2 asum i*amax)."""
    mode = _cublas.function("cublasSetPointerMode_v2", "pi")
    handle = _cublas.handle()
    mode(handle, 1)
    try:
        blas(name, *arguments)
    finally:
        mode(handle, 0)


def blas_same_bits(name, *arguments):
    """`blas` without a workspace: sums are not split up as the size of a batch suggests."""
    handle = _cublas.handle()
    nothing = _no_workspace(current_device())
    _succeed("SetWorkspace", _cublas.function("cublasSetWorkspace_v2", "ppz")(
        handle, nothing.data.ptr, 0))
    try:
        blas(name, *arguments)
    finally:  # which brings the usual workspace back
        _cublas.function("cublasSetStream_v2", "pp")(handle, get_current_stream().ptr)


@cache
def _no_workspace(device):
    return cupy.empty(1, np.uint8)


_CELL = {"s": ffi.typeof("float *"), "d": ffi.typeof("double *"),
         "c": ffi.typeof("float[2]"), "z": ffi.typeof("double[2]")}


def scalar(me, x):
    """A host scalar of the routine's type, as cuBLAS takes alpha and beta."""
    if me.is_complex:
        return ffi.new(_CELL[me.type.sums], (x.real, x.imag))
    return _real_cell(me.type.sums, x, copysign(1, x))


@lru_cache(256)
def _real_cell(letter, x, sign):
    """One for all calls, which only read it; zeros differ by their sign."""
    return ffi.new(_CELL[letter], x)


def real_scalar(me, x):
    """A host scalar of the real type beneath the routine's (herk's alpha)."""
    return ffi.new(_CELL["d" if me.letter in "dz" else "s"], x)


# -- cuSOLVER


_params = {}


def solver(name, parameters, *arguments):
    """Call cusolverDn`name`; `parameters` spells its arguments after the handle, as in CUBLAS."""
    status = _cusolver.function("cusolverDn" + name, "p" + parameters)(
        _cusolver.handle(), *arguments)
    if status:
        raise RuntimeError(f"cusolverDn{name} returned status {status}")
    if _trace._open and not name.endswith("bufferSize"):
        _trace.note("cusolver")


def has_solver(name, parameters):
    """True if this cuSOLVER has a routine of the 64-bit interface that older ones lack."""
    try:
        _cusolver.function("cusolverDn" + name, "ph" + parameters + "pzhzp")
    except AttributeError:
        return False
    return True


def solver32(me, name, parameters, arguments, workspace_arguments=None):
    """A routine of the older, 32-bit interface, with its workspace; returns info, on the device.

    `arguments` are those before the workspace, spelled by `parameters`; the query takes
    `workspace_arguments` (pairs like them) where it takes others.
    """
    size = ffi.new("int *")
    spelled, queried = workspace_arguments or (parameters, arguments)
    solver(f"{me.L}{name}_bufferSize", spelled + "h", *queried, size)
    work = cupy.empty(max(size[0], 1), me.dtype)
    info = cupy.empty((), np.int32)
    solver(f"{me.L}{name}", parameters + "pip", *arguments, work.data.ptr, size[0], info.data.ptr)
    return info


def solver64(name, parameters, arguments, workspace_arguments=None, with_params=True):
    """A routine of the 64-bit interface (Xgetrf ...), with its workspaces on device and host.

    As `solver32`; the arguments begin after the `params` object, which a few routines lack.
    """
    sizes = ffi.new("size_t[2]")
    spelled, queried = workspace_arguments or (parameters, arguments)
    shared = (params(),) if with_params else ()
    h = "h" * len(shared)
    solver(f"{name}_bufferSize", h + spelled + "hh", *shared, *queried, sizes, sizes + 1)
    work = cupy.empty(max(sizes[0], 1), np.uint8)
    host = ffi.new("char[]", max(sizes[1], 1))
    info = cupy.empty((), np.int32)
    solver(name, h + parameters + "pzhzp", *shared, *arguments,
           work.data.ptr, sizes[0], host, sizes[1], info.data.ptr)
    if sizes[1]:
        hold(host)
    return info


_held = []  # (event, host memory) of calls whose work may still be queued
_holding = threading.Lock()


def hold(host):
    """Keep host memory until the current stream has done what is in it now: nothing says that
    cuSOLVER has read it all when it returns. What a graph captures may run at any time: kept for
    good."""
    stream = get_current_stream()
    event = (None if stream.is_capturing()
             else stream.record(cupy.cuda.Event(disable_timing=True)))
    with _holding:
        _held[:] = [x for x in _held if x[0] is None or not x[0].done]
        _held.append((event, host))


def params():
    """This thread's cusolverDnParams object, which the 64-bit interface wants and we never set."""
    key = threading.get_ident()
    if key not in _params:
        cell = ffi.new("void **")
        create = _cusolver.function("cusolverDnCreateParams", "h")
        _succeed("cusolverDnCreateParams", create(cell))
        _params[key] = cell[0]
    return _params[key]


# -- operands


def output(a, overwrite):
    """The column-major array that a routine overwrites: `a` itself if `overwrite` and its layout
    allow, else a copy."""
    if overwrite and column_major(a):
        return a
    if overwrite:
        _trace.note(copied=a.nbytes)
    return copied(a)


def copied(a, dtype=None):
    """A column-major copy, of another type if asked. CuPy's own kernel for that is at a fifth of
    the speed of memory; by rows, as the transpose is, it is not."""
    if a.flags.f_contiguous:
        return a.T.astype(dtype or a.dtype, order="C").T
    return a.astype(dtype or a.dtype, order="F")


def adjoint(a):
    """A^H, a new column-major matrix."""
    out = cupy.empty(a.shape[::-1], a.dtype, order="F")
    return cupy.conjugate(a.T, out=out)


def guarded(x, info, step, within=True):
    """Let `step` overwrite a copy of `x`, and have x take it over where `info` turns out 0: what
    LAPACK decides by returning early, decided on the device. `within` limits it to a mask."""
    y = x.copy(order="F")
    step(y)
    cupy.copyto(x, y, where=(info == 0) & within)


def first(mask):
    """The place, from 1, of the first True of a vector, or 0; on the device."""
    n = mask.size
    if not n:
        return cupy.zeros((), np.int32)
    return (cupy.where(mask, cupy.arange(1, n + 1), n + 1).min() % (n + 1)).astype(np.int32)


def accumulator(me, c, shape, beta, overwrite):
    """The C of C := ... + beta C. Where it may be overwritten and lies by columns or by rows it
    is `c` itself; otherwise it is column-major, and not filled where there is no C to read."""
    if c is None:
        if beta:
            return cupy.zeros(shape, me.dtype, order="F")
        return cupy.ndarray(shape, me.dtype, order="F")
    if overwrite and (column_major(c) or column_major(c.T)):
        return c
    if beta == 0 and not overwrite:
        return cupy.empty(shape, me.dtype, order="F")
    return output(c, overwrite)


def triangle_of(me, c, n, overwrite):
    """`accumulator` of a routine that writes one triangle: the other is kept, or zero."""
    if c is None:
        return cupy.zeros((n, n), me.dtype, order="F")
    return accumulator(me, c, c.shape, 1, overwrite)


def scale(c, beta):
    """c := beta c, element by element: what is left of a product whose alpha or k is zero."""
    if beta == 0:
        c.fill(0)
    elif beta != 1:
        c *= beta


def operand(a, trans):
    """(address, leading dimension, operation) of op(a), without a copy where `a` lies by rows:
    a row-major matrix is the transpose of a column-major one. Returns the array to keep, too."""
    if trans == 2 and a.dtype.kind != "c":
        trans = 1
    if column_major(a):
        return a.data.ptr, ld(a), trans, a
    if trans != 2 and column_major(lines := a.T):
        return a.data.ptr, ld(lines), 1 - trans, a
    a = by_columns(a)
    return a.data.ptr, ld(a), trans, a


def half(a, lower, trans=0):
    """(address, leading dimension, fill mode, operation) of op(a), `a` a triangular or symmetric
    matrix of which one triangle is stored: transposing swaps the triangles. Returns the array to
    keep, too."""
    trans = 1 if trans == 2 and a.dtype.kind != "c" else trans
    p, lda, op, a = operand(a, trans)
    return p, lda, fill(lower if op == trans else not lower), op, a


def through_cpu(function, arguments, keywords, real):
    """`function` on host copies of the CuPy arrays among its arguments; array results return to
    the device, integers (info, rank) and numbers (of the dtype `real`) as 0-d arrays."""
    def fetch(x):
        if not isinstance(x, cupy.ndarray):
            return x
        _trace.note(transferred=x.nbytes, synced=1)
        return cupy.asnumpy(x, order="A")

    def send(x):
        if isinstance(x, tuple):
            return tuple(map(send, x))
        if isinstance(x, (int, float)):
            x = np.asarray(x, np.int32 if isinstance(x, int) else real)
        _trace.note(transferred=x.nbytes)
        return cupy.asarray(x, order="A")

    _trace.note("cpu")
    result = function(*map(fetch, arguments), **{k: fetch(v) for k, v in keywords.items()})
    return send(result)
