"""From one implementation to its typed names, and the argument checks that they share.

A routine is written once, for all types, with SciPy's signature behind a first argument `me`:

    def getrf(me, a, overwrite_a=0): ...

    getrf, sgetrf, dgetrf, cgetrf, zgetrf = typed(getrf, "sdcz")

`me` is the name it was called by (`dgetrf`): its type, and the checks that name routine and
argument when they refuse. A check returns the operand as the routine wants it: an ndarray (CPU)
or a cupy.ndarray (GPU) of its dtype and rank.
"""

import inspect
import re
import sys
from functools import partial, wraps
from types import FunctionType, SimpleNamespace

import numpy as np
from scipy.linalg import blas as scipy_blas
from scipy.linalg import lapack as scipy_lapack

from . import _lapack, _trace
from ._ragged import Ragged
from ._types import BY_DTYPE, SHORT, TYPES, letter_of

ndarray = np.ndarray

# What a routine takes as it stands; any other class is another library's array (`_arrays.call`).
# NumPy's truth values, which SciPy's wrappers refuse as flags, become Python's there.
PLAIN = {ndarray, int, float, complex, bool, str, bytes, list, tuple, type(None),
         *(np.dtype(c).type for c in "bhilqBHILQefdgFDG")}

COMPLEX = {complex, *(np.dtype(c).type for c in "FDG")}  # numbers

DIRECT = PLAIN - {list, tuple}  # what cannot hold another library's arrays either

FAR = 2**1023  # an int beyond it may be no float

NATIVE = {ndarray}  # the arrays that routines work on; cupy.ndarray joins when first seen


class TransferWarning(UserWarning):
    """A routine without a GPU implementation copied its operands to the CPU and back."""


class RefinementWarning(UserWarning):
    """Factors of a lower precision were not good enough, and double precision had to be used."""


class Typed:
    """One typed name of a routine: its type and its argument checks."""

    def __init__(self, name, letter):
        t = TYPES[letter]
        self.name, self.letter, self.type = name, letter, t
        self.L = letter.upper()  # as cuBLAS spells it
        self.cublas = name.capitalize()
        self.dtype, self.real, self.is_complex = t.dtype, t.real, t.is_complex
        self.scipy = getattr(scipy_lapack, name, None) or getattr(scipy_blas, name, None)

    # -- refusals

    def illegal(self, argument, got, wanted):
        """Raise the ValueError of an argument's value."""
        raise ValueError(f"{self.name}: {argument} must be {wanted}, got {got!r}")

    def mistyped(self, argument, got, wanted):
        """Raise the TypeError of an argument's type."""
        raise TypeError(f"{self.name}: {argument} must be {wanted}, got {got}")

    # -- operands

    def matrix(self, x, argument, shape=None, overwrite=0):
        """`x` as a matrix of this type; `shape` may fix its extents (None leaves one free).

        As SciPy does, a vector is taken for one column and a number for a 1 x 1 matrix.
        """
        if x.__class__ not in NATIVE or x.dtype is not self.dtype or x.ndim != 2:
            x = self._cast(x, argument, 2)
        if x.size > _lapack.LARGEST and x.__class__ is ndarray and max(x.shape) > _lapack.LARGEST:
            self.illegal(argument, x.shape, f"of at most {_lapack.LARGEST} rows and columns")
        if shape is not None:
            self.shaped(x, argument, shape)
        if overwrite.__class__ is not int or overwrite:
            self.writeable(x, argument, overwrite)
        return x

    def square(self, x, argument, overwrite=0):
        """`x` as a square matrix of this type."""
        x = self.matrix(x, argument, None, overwrite)
        if x.shape[0] != x.shape[1]:
            self.illegal(argument, x.shape, "square: its shape (n, n)")
        return x

    def vector(self, x, argument, size=None, overwrite=0):
        """`x` as a vector of this type, of exactly `size` elements if given."""
        if x.__class__ not in NATIVE or x.dtype is not self.dtype or x.ndim != 1:
            x = self._cast(x, argument, 1)
        if x.__class__ is ndarray and x.size > _lapack.LARGEST:
            self.illegal(argument, x.shape, f"of at most {_lapack.LARGEST} elements")
        if size is not None and x.shape[0] != size:
            self.illegal(argument, x.shape, f"of shape ({size},)")
        if overwrite.__class__ is not int or overwrite:
            self.writeable(x, argument, overwrite)
        return x

    def stack(self, x, argument, ndim, overwrite=0):
        """`x` as a stack of matrices (`ndim` 3) or vectors (2) of this type."""
        if x.__class__ not in NATIVE or x.dtype is not self.dtype or x.ndim != ndim:
            x = self._number_array(x, argument)
            if x.ndim != ndim:
                self.illegal(argument, x.shape, f"of {ndim} dimensions, the first the batch")
        if overwrite.__class__ is not int or overwrite:
            self.writeable(x, argument, overwrite)
        return x

    def columns(self, b, argument, rows, overwrite=0):
        """`b` as right-hand sides, (rows,) or (rows, nrhs), and whether it is one vector."""
        if b.__class__ is list or b.__class__ is tuple:
            b = self._number_array(b, argument)
        one = getattr(b, "ndim", 2) == 1
        return self.matrix(b, argument, (rows, None), overwrite), one

    def integers(self, x, argument, size=None, below=None):
        """`x` as a vector of 32-bit integers, as pivots are; on the CPU within 0 <= x < below, and
        refused where they do not fit."""
        x = self.integer_array(x, argument)
        if x.ndim != 1 or (size is not None and x.shape[0] != size):
            self.illegal(argument, x.shape, "a vector" if size is None else f"of shape ({size},)")
        if below is not None and x.__class__ is ndarray and x.size:
            if x.min() < 0 or x.max() >= below:
                self.illegal(argument, int(x[(x < 0) | (x >= below)][0]),
                             f"row numbers from 0 to {below - 1}")
        if x.dtype == np.int32:
            return x
        y = x.astype(np.int32)
        if below is None and x.__class__ is ndarray and (wrong := y != x).any():
            self.illegal(argument, int(x[wrong][0]), "integers of 32 bits")
        return y

    def integer_array(self, x, argument):
        """`x` as an array of integers, of any shape."""
        if x.__class__ is not ndarray and x.__class__ in PLAIN:
            try:
                x = np.asarray(x)
            except ValueError:
                self.mistyped(argument, "a ragged sequence", "an array of integers")
        if not hasattr(x, "dtype"):
            self.mistyped(argument, type(x).__name__, "an array of integers")
        if x.dtype.kind not in "iu" and x.size:
            self.mistyped(argument, f"dtype {x.dtype}", "an array of integers")
        return x

    def number(self, x, argument):
        """`x` as a scalar of this type (Python float or complex)."""
        if x.__class__ is float or x.__class__ is int and -FAR < x < FAR:
            return x
        if isinstance(x, (str, bytes)) or x is None:
            self.mistyped(argument, repr(x), "a number")
        if x.__class__ in NATIVE and x.__class__ is not ndarray:
            self.mistyped(argument, "an array on the GPU", "a number on the host")
        if x.__class__ in (list, tuple) and len(x) == 1:
            x = x[0]
        if x.__class__ is ndarray:
            x = x.ravel()[0] if x.size == 1 else self.illegal(argument, x.shape, "one number")
        try:
            x = complex(x) if self.is_complex or x.__class__ in COMPLEX else float(x)
        except (TypeError, ValueError, OverflowError):
            self.mistyped(argument, f"{x!r:.60}", "a number")
        if isinstance(x, complex) and not self.is_complex:
            self.mistyped(argument, repr(x), "real")
        return x

    def integer(self, x, argument, low=None, high=None):
        """`x` as an integer within low <= x <= high."""
        if x.__class__ is not int:
            if isinstance(x, (tuple, list)) and x:  # what a *_lwork function returns, as SciPy
                x = x[0]
            if isinstance(x, (complex, np.complexfloating)) and not x.imag:
                x = x.real
            try:
                x = x.__index__()
            except (AttributeError, TypeError):
                if not isinstance(x, (float, np.floating)) or not x.is_integer():
                    self.mistyped(argument, repr(x), "an integer")
                x = int(x)
        if (low is not None and x < low) or (high is not None and x > high):
            wanted = (f"at least {low}" if high is None else f"at most {high}" if low is None
                      else f"from {low} to {high}")
            self.illegal(argument, x, wanted)
        return x

    def extent(self, x, argument):
        """`x`, rows or columns that a matrix of LAPACK's may have; 1 for 0, of which it says
        nothing."""
        return max(self.integer(x, argument, 0, _lapack.LARGEST), 1)

    def real_number(self, x, argument):
        """`x` as a real scalar, also where the routine's type is complex (herk's alpha)."""
        x = self.number(x, argument)
        if isinstance(x, complex):
            if x.imag:
                self.illegal(argument, x, "real")
            x = x.real
        return x

    def choice(self, x, argument, among):
        """`x`, one of the values `among` (True is 1): the flags of LAPACK. An array of one truth
        value, as SciPy's cho_factor returns for a stack, is that value."""
        try:
            return among[among.index(x)]
        except (ValueError, TypeError):
            if x.__class__ is ndarray and x.dtype == bool and x.size and x.min() == x.max():
                return self.choice(x.flat[0], argument, among)
            self.illegal(argument, x, "one of " + ", ".join(map(repr, among)))

    def mode(self, x, on_cpu, *modes):
        """`x`: "auto", or one of the `modes` that the routine has on the GPU."""
        there = ("auto",) if on_cpu else ("auto", *modes)
        if not isinstance(x, str) or x not in there:
            self.illegal("mode", x, f"{' or '.join(there)} on the {'CPU' if on_cpu else 'GPU'}")
        return x

    def by_gpu(self, device, memory, on_cpu):
        """True if NumPy arrays are to be worked on by the GPU, as device="gpu" asks, within
        `memory` bytes of it."""
        if device is None and memory is None:
            return False
        device = self.choice(device, "device", (None, "cpu", "gpu"))
        if device == "cpu" and not on_cpu:
            self.illegal("device", device, "None or 'gpu' for arrays on the GPU")
        if device == "gpu" and (missing := _arrays.no_gpu()):
            self.illegal("device", device, f"None or 'cpu' here: {missing}")
        there = on_cpu and device == "gpu"
        if memory is not None and not (there and self.integer(memory, "memory", 1)):
            self.illegal("memory", memory, "None, but for NumPy arrays with device='gpu'")
        return there

    def flag(self, x, argument, among):
        """`x`, a word or bytes of which the first letter counts, as one of the capitals `among`."""
        x = x.decode("latin-1") if isinstance(x, bytes) else x
        if not isinstance(x, str):
            self.mistyped(argument, repr(x), f"a letter of {', '.join(among)}")
        if not x or x[0].upper() not in among:
            self.illegal(argument, x, f"one of {', '.join(among)}")
        return x[0].upper()

    def shaped(self, x, argument, shape):
        """Refuse an array whose extents are not `shape` (None leaves one free)."""
        for have, want in zip(x.shape, shape, strict=True):
            if want is not None and have != want:
                free = ", ".join("any" if s is None else str(s) for s in shape)
                self.illegal(argument, x.shape, f"of shape ({free})")

    def writeable(self, x, argument, overwrite=1):
        """Refuse to overwrite an array that is read-only, or folded; and a flag `overwrite` that is
        none."""
        if not self.allows(overwrite, argument):
            return
        if x.__class__ is ndarray and not x.flags.writeable:
            self.illegal(argument, "a read-only array", "writeable to be overwritten")
        if not (x.flags.c_contiguous or x.flags.f_contiguous) and folded(x):
            self.illegal(argument, f"strides {x.strides} of shape {x.shape}",
                         "an array with a place for each element, to be overwritten")

    def allows(self, overwrite, argument):
        """Whether the flag `overwrite` of an argument allows that: an integer, or a truth value."""
        try:
            flag = overwrite.__index__()
        except (AttributeError, TypeError):
            self.mistyped("overwrite_" + argument, repr(overwrite), "0 or 1")
        if abs(flag) > _lapack.LARGEST:
            self.illegal("overwrite_" + argument, overwrite, "0 or 1")
        return flag

    def distinct(self, out, argument, **others):
        """Refuse an output that shares memory with an operand that is only read."""
        for name, x in others.items():
            if x is not None and share(out, x):
                self.illegal(argument, f"memory shared with {name}", "an array of its own")

    def on_cpu(self, first, *others):
        """True if the operands are NumPy arrays, False if CuPy arrays; mixed is refused."""
        cpu = first.__class__ is ndarray
        for x in others:
            if x is not None and (x.__class__ is ndarray) is not cpu:
                self.mistyped("its arrays", "NumPy and CuPy together", "all on one device")
        return cpu

    def _cast(self, x, argument, ndim):
        y = self._number_array(x, argument)
        if y.ndim > ndim:
            keep = [s for s in y.shape if s != 1]
            if len(keep) > ndim or ndim != 1:
                self.illegal(argument, y.shape, f"of {ndim} dimension{'s' * (ndim > 1)}")
            y = y.reshape(-1)
        return y.reshape(y.shape + (1,) * (ndim - y.ndim)) if y.ndim < ndim else y

    def _number_array(self, x, argument):
        """`x` as an array of this type, whatever numbers it holds; complex ones are not real."""
        y = x
        if x.__class__ in PLAIN:
            try:
                y = np.asarray(x)
            except ValueError:
                self.mistyped(argument, "a ragged sequence", "an array of numbers")
        if not self.type.is_known:
            self.mistyped(argument, f"{x!r:.60}", "of bfloat16, which the package ml_dtypes brings")
        if not hasattr(y, "dtype") or y.dtype.kind not in "biufc" and y.dtype != self.dtype:
            got = f"dtype {y.dtype}" if getattr(y, "ndim", 0) else repr(x)
            self.mistyped(argument, got, "an array of numbers")
        if y.dtype.kind == "c" and not self.is_complex:
            self.mistyped(argument, f"dtype {y.dtype}", f"real: it is cast to {self.dtype}")
        if y.dtype != self.dtype:
            y = y.astype(self.dtype)
            _trace.note(copied=y.nbytes)
        elif y.__class__ is ndarray and y.dtype is not self.dtype:
            y = y.view(self.dtype)
        return y

    # -- the CPU's LAPACK

    def strided(self, a, overwrite):
        """True if `a` is to be overwritten where it lies and SciPy's wrapper would copy it: a
        column-major view with a leading dimension of its own."""
        if not overwrite or a.flags.f_contiguous:
            return False
        if _lapack.column_major(a):
            return True
        _trace.note(copied=a.nbytes)
        return False

    def scalar(self, x):
        """`x` as a scalar of this type in memory, for `fortran`."""
        return np.array([x], self.dtype)

    def real_scalar(self, x):
        """`x` as a scalar of the real type beneath this one in memory, for `fortran`."""
        return np.array([x], self.real)

    def fortran(self, routine, *arguments):
        """Call LAPACK's or BLAS's own `routine` of this type (`_lapack.call`)."""
        return _lapack.call(self.letter + routine, *arguments)

    def workspace(self, lwork, least):
        """`lwork`, the size of LAPACK's workspace: -1 asks for the best size, None takes it."""
        lwork = lwork if lwork is None else self.integer(lwork, "lwork")
        if lwork is None or lwork == -1:
            return lwork
        lwork = self.integer(lwork, "lwork", max(least, 1))
        return self.integer(lwork, "lwork", high=_lapack.LARGEST)

    def worked(self, routine, lwork, *before, after=()):
        """Call LAPACK's `routine` with a workspace of size `lwork` (see `workspace`) between its
        arguments `before` and `after`. Returns the workspace, work[0] the best size, and info."""
        if lwork is None:
            known = [None if x.__class__ is ndarray else x for x in (*before, "work", *after)]
            lwork = _lapack.best_lwork(self.letter + routine, self.dtype, tuple(known))
        work = np.zeros(max(lwork, 1), self.dtype)
        return work, self.fortran(routine, *before, work, lwork, *after)

    def through_cpu(self, *arguments, **keywords):
        """Run this routine on host copies of its GPU operands, and copy what it returns back:
        two transfers and a synchronisation, with a TransferWarning."""
        import warnings

        from . import _cuda
        warnings.warn(f"{self.name} has no GPU implementation: its operands are copied to the "
                      "CPU, and its results back", TransferWarning, stacklevel=3)
        return _cuda.through_cpu(partial(self.implementation, self), arguments, keywords, self.real)


def typed(implementation, letters, names=None, only_complex=None):
    """[generic, *one function per letter] of a routine, under LAPACK's names.

    `names` lists the typed names where they are not letter + name (scnrm2, idamax, cdotu).
    `only_complex` is an argument that the real names do not take (heevd's lrwork).
    """
    base = implementation.__name__
    names = names.split() if names else [letter + base for letter in letters]
    bound = {x: Typed(name, x) for x, name in zip(letters, names, strict=True)}
    real = _without(implementation, only_complex) if only_complex else implementation
    generic = _by_type(implementation, real) if only_complex else implementation
    functions = [_function(generic, partial(_pick, base, bound), base, real)]
    for me in bound.values():
        me.implementation = implementation
        own = implementation if me.is_complex else real
        f = _function(own, me, me.name)
        f.typecode, f.dtype = me.letter, me.dtype
        functions.append(f)
    return functions


def _without(implementation, argument):
    """`implementation` for callers that do not know `argument`, which is None for them."""
    signature = inspect.signature(implementation)
    place = list(signature.parameters).index(argument)

    @wraps(implementation)
    def real(*args, **kw):
        if argument in kw:
            raise TypeError(f"{args[0].name}: unexpected argument {argument}, which only the "
                            "complex types take")
        if len(args) > place:
            return implementation(*args[:place], None, *args[place:], **kw)
        return implementation(*args, **{argument: None}, **kw)

    real.__signature__ = signature.replace(
        parameters=[x for x in signature.parameters.values() if x.name != argument])
    return real


def _by_type(implementation, real):
    """The generic of two implementations: the type picks, and knows its own arguments."""
    @wraps(implementation)
    def generic(me, *args, **kw):
        return (implementation if me.is_complex else real)(me, *args, **kw)
    return generic


def public(module):
    """The names of a module's routines, for its __all__."""
    return [name for name, x in module.items() if getattr(x, "routine", None)]


def also(generic, name, like):
    """A generic routine under its second name, with the signature of its typed name `like`:
    heevd, ungqr."""
    g = generic.__wrapped__
    f = FunctionType(g.__code__, g.__globals__, name, None, g.__closure__)
    f.__signature__, f.__doc__, f.__module__ = inspect.signature(like), g.__doc__, g.__module__
    return Routine(f, generic.routine)


class Routine(staticmethod):
    """A public function. As an attribute of a class it is no method, as SciPy's are not, and it is
    pickled by its name."""

    def __init__(self, function, routine):
        super().__init__(function)
        self.routine = routine

    def __reduce__(self):
        return self.__name__

    def __repr__(self):
        return repr(self.__wrapped__)


def _function(implementation, me, name, like=None):
    """The public function `name`: `implementation` behind the door that knows foreign arrays, with
    its signature, or that of `like`, without `me`."""
    generic = not isinstance(me, Typed)
    signature = inspect.signature(like or implementation)
    signature = signature.replace(parameters=list(signature.parameters.values())[1:])

    @wraps(implementation)
    def function(*args, **kw):
        try:
            for x in args:
                if x.__class__ not in DIRECT:
                    return _arrays.call(implementation, me, args, kw)
            if kw:
                for x in kw.values():
                    if x.__class__ not in DIRECT:
                        return _arrays.call(implementation, me, args, kw)
            this = me(args, kw) if generic else me
            if _trace._open:
                return _trace.recorded(this.name, lambda: implementation(this, *args, **kw))
            if kw:
                return implementation(this, *args, **kw)
            return implementation(this, *args)
        except TypeError as error:
            if not str(error).partition(":")[0].isidentifier():  # not in a routine's name yet
                _fit(name, signature, args, kw)
            raise
        except MemoryError as error:
            _say_what_is_missing(name, error)
            raise

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = _raising(implementation.__doc__)
    del function.__wrapped__
    return Routine(function, implementation.__name__)


RAISES = """    Raises
    ------
    TypeError, ValueError
        For an argument of another kind, shape or value: names the routine, the argument and what
        was given, before anything is written."""


def _raising(doc):
    """A docstring with the section that is the same for all routines, where numpydoc has it."""
    if not doc or "    Raises\n" in doc or "    Parameters\n" not in doc:
        return doc
    above, notes, below = doc.partition("    Notes\n")
    parts = above.rstrip(), RAISES, (notes + below).rstrip()
    return "\n\n".join(filter(None, parts)) + "\n    "


def missing(name, need, there):
    """What an error says of an allocation on the GPU that failed."""
    return (f"{name}: {need} bytes of the GPU's memory are needed and {there} are there: "
            f"{max(need - there, 1)} bytes are missing")


_OF_CUPY = re.compile(r"Out of memory allocating ([\d,]+) bytes(?: \(allocated so far: "
                      r"([\d,]+) bytes(?:, limit set to: ([\d,]+) bytes)?)?")


def _say_what_is_missing(name, error):
    """CuPy's error, which keeps its class, says whose it is and how much was missing; what NumPy
    and the host's matrices say is left."""
    if found := _OF_CUPY.match(str(error)):
        size, held, limit = (int(x.replace(",", "")) for x in found.groups("0"))
        if not limit:
            import cupy
        there = limit - held if limit else cupy.cuda.runtime.memGetInfo()[0]
        error.args = missing(name, size, there),


def foreign(x):
    """True for a list with arrays that are not NumPy's, as the `_vbatched` routines take them."""
    return (x.__class__ is list or x.__class__ is tuple) and any(
        y.__class__ not in PLAIN for y in x)


def _fit(name, signature, args, kw):
    """Refuse arguments that are too many, too few or unknown, in the name of the routine."""
    try:
        signature.bind(*args, **kw)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _pick(base, bound, args, kw):
    """The typed name that a generic call means: its arrays' types decide, and complex numbers."""
    arrays = [x for x in (*args, *kw.values())
              if x.__class__ in (list, tuple, Ragged) or getattr(x, "ndim", 0)]
    types = [t for x in arrays for t in _types_in(x)]
    inexact = [t for t in types if t.kind in "fc"] or types
    letter = letter_of(inexact)
    short = {SHORT.get(t) for t in types}
    if len(short) == 1 and bound.keys() >= short:
        return bound[short.pop()]
    if letter in "sd" and any(x.__class__ in COMPLEX for x in (*args, *kw.values())):
        letter = {"s": "c", "d": "z"}[letter]
    if letter not in bound:  # a routine for complex or for real types only
        letter = {"s": "c", "d": "z", "c": "s", "z": "d"}[letter]
    return bound[letter]


def _types_in(x):
    """The dtypes of an operand: an array, a nested list of numbers, or members of a batch."""
    if x.__class__ is Ragged:
        return [x.data.dtype]
    if hasattr(x, "dtype"):
        return [x.dtype]
    try:
        if x and hasattr(x[0], "dtype"):
            return list({y.dtype if hasattr(y, "dtype") else np.asarray(y).dtype for y in x})
        return [np.asarray(x).dtype]
    except ValueError:  # of rows of different lengths, which the typed routine refuses by name
        return []


def share(x, y):
    """True if two arrays have an element in common: blocks of one matrix, or interleaved
    vectors, need not."""
    if x.__class__ is ndarray:
        return _overlap(x, y)
    (low, high), (from_, to) = span(x), span(y)
    return low < to and from_ < high and _overlap(_shell(x), _shell(y))


def folded(x):
    """True if elements of one array may share memory: with strides that no slice of an array has,
    as a broadcast array's or a sliding window's."""
    reach = x.itemsize
    for stride, n in sorted((abs(stride), n) for stride, n in zip(x.strides, x.shape) if n > 1):
        if stride < reach:
            return x.size > 0
        reach += stride * (n - 1)
    return False


def _overlap(x, y):
    try:
        return np.shares_memory(x, y, max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def span(x):
    """Where an array begins and ends in memory."""
    low = high = x.__array_interface__["data"][0] if x.__class__ is ndarray else x.data.ptr
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return low, low + x.nbytes
    for n, stride in zip(x.shape, x.strides):
        low += min(0, (n - 1) * stride)
        high += max(0, (n - 1) * stride)
    return low, high + x.itemsize if x.size else low


def _shell(x):
    """A NumPy array with the address of a CuPy array, never to be read: its layout counts."""
    layout = {"version": 3, "typestr": x.dtype.str, "shape": x.shape, "strides": x.strides,
              "data": (x.data.ptr, True)}
    return np.asarray(SimpleNamespace(__array_interface__=layout))


def cupy():
    """The CuPy module; only asked for where a CuPy array is at hand."""
    return sys.modules["cupy"]


from . import _arrays  # noqa: E402 (the two know each other)

__all__ = ["BY_DTYPE", "RefinementWarning", "TransferWarning", "Typed", "also", "cupy", "ndarray",
           "public", "typed"]
