"""LAPACK and BLAS on the CPU by pointer: SciPy exports them, cffi calls them.

SciPy's wrappers copy a sub-matrix even with overwrite_a=1, and know no leading dimension. The
routines themselves, reached through the capsules that `scipy.linalg.cython_lapack` and
`cython_blas` promise to keep, work in place on any column-major view and release the GIL.
"""

import ctypes
from functools import cache, lru_cache

import numpy as np
from cffi import FFI
from scipy.linalg import cython_blas, cython_lapack

from . import _trace

ffi = FFI()

# SciPy may be built with 64-bit integers; from 1.18 on it says so.
INT = np.dtype(f"i{getattr(cython_lapack, '_blas_int_size', lambda: 4)()}")
LARGEST = np.iinfo(np.intc).max  # SciPy's wrappers count in 32 bits whatever LAPACK is built with
_INT_C = {4: "int32_t", 8: "int64_t"}[INT.itemsize]
_int_cell = ffi.typeof(f"{_INT_C}[1]")
_int_cells = ffi.typeof(f"{_INT_C}[]")
_word = ffi.typeof("uintptr_t")

_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


@cache
def function(name):
    """The subroutine `name` ("dgetrf") as a cffi function of pointers; None if SciPy has none.

    The capsule's name is the routine's C signature: its count of arguments is read from there,
    and that its integers are those we are going to pass.
    """
    for module in (cython_lapack, cython_blas):
        capsule = module.__pyx_capi__.get(name)
        if capsule is not None:
            break
    else:
        return None
    label = _api.PyCapsule_GetName(capsule)
    parameters = label.decode().partition("(")[2].rstrip(")").split(",")
    if INT.itemsize == 8 and any(p.strip() == "int *" for p in parameters):
        raise ImportError(f"SciPy's {name} takes 32-bit integers though it announces 64-bit ones")
    signature = f"void(*)({', '.join(['void *'] * len(parameters))})"
    return ffi.cast(signature, _api.PyCapsule_GetPointer(capsule, label))


@cache
def address(name):
    """Where `function(name)` is, as a number."""
    return int(ffi.cast("uintptr_t", function(name)))


@cache
def by_address(name):
    """`function(name)` taking addresses as Python integers."""
    parameters = ", ".join(["uintptr_t"] * argument_count(name))
    return ffi.cast(f"void(*)({parameters})", address(name))


def call(name, *arguments):
    """Call `name` with Python values for Fortran's pointers and return INFO.

    An int goes as INTEGER, a str as CHARACTER, an ndarray (a scalar too) by its first element.
    INFO is the last argument of a LAPACK routine and is not given; a BLAS routine has none and
    returns None.
    """
    f = by_address(name)
    cells = ffi.new(_int_cells, [x if x.__class__ is int else int(x) for x in arguments
                                 if not isinstance(x, (np.ndarray, str))] + [0])
    cell = int(ffi.cast(_word, cells))
    at = []
    for x in arguments:
        if isinstance(x, np.ndarray):
            at.append(x.ctypes.data)
        elif isinstance(x, str):
            at.append(_character(x)[0])
        else:
            at.append(cell)
            cell += INT.itemsize
    if argument_count(name) == len(at):
        f(*at)
        if _trace._open:
            _trace.note("blas")
        return None
    f(*at, cell)
    if _trace._open:
        _trace.note("lapack")
    return cells[len(cells) - 1]


@cache
def argument_count(name):
    """How many arguments `name` takes, INFO included."""
    return len(ffi.typeof(function(name)).args)


@cache
def _character(x):
    """(address of a CHARACTER, its memory)"""
    memory = ffi.new("char[2]", x.encode())
    return int(ffi.cast(_word, memory)), memory


def _pointer(x):
    if isinstance(x, np.ndarray):
        return ffi.cast("void *", x.ctypes.data)
    if isinstance(x, str):
        return _character(x)[1]
    return ffi.new(_int_cell, (int(x),))


def column_major(a):
    """True if the columns of `a` are contiguous and apart: a matrix as LAPACK sees it. On the CPU
    it counts in 32 bits, and wants its numbers aligned."""
    m, n = a.shape
    rs, cs = a.strides
    return not a.size or (m <= 1 or rs == a.itemsize) and (
        n <= 1 or (cs >= m * a.itemsize and cs % a.itemsize == 0)) and (
        a.__class__ is not np.ndarray
        or a.flags.aligned and (n <= 1 or cs <= LARGEST * a.itemsize))


def ld(a):
    """The leading dimension of a column-major matrix."""
    m, n = a.shape
    return a.strides[1] // a.itemsize if m and n > 1 else max(m, 1)


def by_columns(a):
    """`a` column-major: itself, or a copy that trace() counts."""
    if column_major(a):
        return a
    _trace.note(copied=a.nbytes)
    return a.copy(order="F")


def turned(a, trans=0):
    """(A, operation) for SciPy's wrappers, which copy what does not lie by columns: a matrix by
    rows is passed as its transpose, where that asks for no conjugate. Else trace() counts."""
    if not a.flags.f_contiguous:
        if a.flags.c_contiguous and (trans != 2 or a.dtype.kind != "c"):
            return a.T, 0 if trans else 1
        _trace.note(copied=a.nbytes)
    return a, trans


def gathered(x):
    """A vector as LAPACK reads it: `x`, or a copy where its elements are apart or not aligned."""
    return x if x.flags.c_contiguous and x.flags.aligned else x.copy()


def output(a, overwrite):
    """The column-major matrix that a routine overwrites: `a` itself, or a copy of it."""
    return a if overwrite and column_major(a) else a.copy(order="F")


def taken(a, overwrite):
    """`output`, where SciPy's wrapper has no part: trace() counts the copy that a layout forces."""
    if overwrite and not column_major(a):
        _trace.note(copied=a.nbytes)
    return output(a, overwrite)


@lru_cache(4096)
def best_lwork(name, dtype, arguments):
    """The workspace that `name` works best with, as LAPACK answers to lwork = -1. None stands in
    `arguments` for an array, "work" for the workspace and its size."""
    unread, work = np.empty(1, dtype), np.empty(1, dtype)
    given = []
    for x in arguments:
        given += [work, -1] if x == "work" else [unread if x is None else x]
    keep = [_pointer(x) for x in given]
    function(name)(*keep, ffi.new(_int_cell))
    return max(int(work[0].real), 1)


def by_rows(a):
    """True if `a` is the transpose of a column-major matrix and not column-major itself."""
    return not column_major(a) and column_major(a.T)
