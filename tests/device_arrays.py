"""A device that is the CPU: arrays that NumPy cannot touch, and their module.

As CuPy's do, they refuse NumPy's functions and NumPy's arrays beside them or as indices. Code that
runs on them takes everything from the array's own module.
"""

import sys
from types import ModuleType

import numpy as np
from scipy import sparse, special

from blasx.nn import _arrays


class Array:
    """An array of the device."""

    __array_ufunc__ = None
    __module__ = "devicepy"

    def __init__(self, a):
        self.a = a

    def __array__(self, *args, **kw):
        raise TypeError("NumPy was given an array of the device")

    def __getattr__(self, name):
        x = getattr(self.a, name)
        return on_device(x) if callable(x) else wrapped(x)

    def __getitem__(self, at):
        return wrapped(self.a[unwrapped(at)])

    def __setitem__(self, at, x):
        self.a[unwrapped(at)] = unwrapped(x)

    def __len__(self):
        return len(self.a)

    def __float__(self):
        return float(self.a)

    def __int__(self):
        return int(self.a)

    def __bool__(self):
        return bool(self.a)

    def get(self):
        return self.a.copy()


def operator(name):
    def function(self, *others):
        x = getattr(self.a, name)(*map(unwrapped, others))
        return self if name[:3] == "__i" and name != "__invert__" else wrapped(x)
    return function


for _name in ("add sub mul truediv pow matmul and or eq ne lt le gt ge radd rsub rmul rtruediv "
              "rpow iadd isub imul itruediv ixor rshift neg abs invert").split():
    setattr(Array, f"__{_name}__", operator(f"__{_name}__"))


def unwrapped(x):
    """What NumPy works on, of an operand: the device's arrays and numbers, nothing else."""
    if isinstance(x, np.ndarray):
        raise TypeError("an array of NumPy beside the device's")
    if isinstance(x, tuple | list):
        return type(x)(map(unwrapped, x))
    return x.a if isinstance(x, Array) else x


def wrapped(x):
    return Array(np.asarray(x)) if isinstance(x, np.ndarray | np.generic) else x


def on_device(f):
    def function(*args, **kw):
        return wrapped(f(*map(unwrapped, args), **{k: unwrapped(x) for k, x in kw.items()}))
    return function


class _Module(ModuleType):
    """The same names as NumPy, for the device's arrays."""

    def __getattr__(self, name):
        x = getattr(np, name)
        return x if isinstance(x, type) or not callable(x) else on_device(x)


def _csr(data, shape):
    return _Sparse(sparse.csr_matrix(unwrapped(data), shape))


class _Sparse:
    def __init__(self, a):
        self.a = a

    @property
    def T(self):
        return _Sparse(self.a.T)

    def __matmul__(self, x):
        return wrapped(self.a @ x.a)


def install(monkeypatch):
    """The device's module, known to blasx.nn and its products for the length of a test."""
    xp = _Module("devicepy")
    xp.asarray = lambda x: x if isinstance(x, Array) else Array(np.array(x))
    xp.lib = _Module("devicepy.lib")
    xp.lib.stride_tricks = _Module("devicepy.lib.stride_tricks")
    xp.lib.stride_tricks.as_strided = on_device(np.lib.stride_tricks.as_strided)
    monkeypatch.setitem(sys.modules, "devicepy", xp)
    for name, names in (("special", {"erf": on_device(special.erf)}),
                        ("sparse", {"csr_matrix": _csr})):
        module = ModuleType(f"cupyx.scipy.{name}")
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, f"cupyx.scipy.{name}", module)
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    monkeypatch.setitem(sys.modules, "cupyx.scipy", ModuleType("cupyx.scipy"))
    for table in "_GEMM", "_GEMM_BATCHED":
        there = {dtype: _either(gemm) for dtype, gemm in getattr(_arrays, table).items()}
        monkeypatch.setattr(_arrays, table, there)
    return xp


def _either(routine):
    """A routine of blasx's for the device's arrays, too."""
    there = on_device(routine)
    return lambda *args, **kw: (there if any(isinstance(x, Array) for x in args) else routine)(
        *args, **kw)
