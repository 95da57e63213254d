"""Arrays that are not NumPy's: CuPy's, and those of any library that speaks DLPack."""

import sys
from inspect import unwrap

import numpy as np

from . import _cuda, _trace
from ._ragged import Ragged
from ._routine import NATIVE, PLAIN, Typed, foreign


def call(implementation, me, args, kw):
    """Run `implementation` on operands of which some are not NumPy's.

    CuPy arrays are used as they are, in the current stream of the device that holds them. Other
    arrays (torch, jax) are viewed through DLPack, and array results are returned in their kind.
    """
    device = kind = like = None
    for x in (*args, *kw.values()) if kw else args:
        if x.__class__ in NATIVE:
            if x.__class__ is not np.ndarray:
                device = _same(me, device, x.data.device_id)
        elif x.__class__ not in PLAIN or foreign(x):
            like = _like(implementation, args, kw)
            kind, args, kw = _viewed(implementation, me, args, kw)
            device = _device(me, (*args, *kw.values()))
            break
    if not isinstance(me, Typed):
        me = me(args, kw)
    if _trace._open:
        result = _trace.recorded(me.name, lambda: _on_device(device, implementation, me, args, kw))
    elif device is None or device == _cuda.current_device():
        result = implementation(me, *args, **kw)
    else:
        result = _on_device(device, implementation, me, args, kw)
    if kind is not None:
        return _in_kind(kind, result)
    return result if like is None else implementation.in_class(like, result)


def _like(implementation, args, kw):
    """The operand that has NumPy's way to give results its class (ndarray's subclasses have), if
    the routine asks for it: those of `blasx.linalg`."""
    place = getattr(implementation, "like", None)
    if place is None:
        return None
    x = args[place] if len(args) > place else kw.get("ab"[place])
    return x if x.__class__ not in PLAIN and hasattr(x, "__array_wrap__") else None


def _on_device(device, implementation, me, args, kw):
    if device is None:
        return implementation(me, *args, **kw)
    _trace.note(device=f"gpu:{device}")
    if device == _cuda.current_device():
        return implementation(me, *args, **kw)
    with _cuda.cupy.cuda.Device(device):
        return implementation(me, *args, **kw)


def _device(me, operands):
    device = None
    for x in operands:
        x = x.data if x.__class__ is Ragged else x[0] if x.__class__ is list and x else x
        if x.__class__ in NATIVE and x.__class__ is not np.ndarray:
            device = _same(me, device, x.data.device_id)
    return device


def _same(me, device, another):
    """`another` device, which must be the first one's, if there was one."""
    if device is not None and device != another:
        raise TypeError(f"{_name(me)}: its arrays must be all on one device, got GPUs {device} and "
                        f"{another}")
    return another


def _name(me):
    return me.name if isinstance(me, Typed) else me.args[0]


def _viewed(implementation, me, args, kw):
    """The operands as NumPy's or CuPy's arrays, and the first that is of another library."""
    operands = (*args, *kw.values())
    native = [_members(x) if x.__class__ in (list, tuple, Ragged) else
              x if x.__class__ in PLAIN else _native(x) for x in operands]
    if any(x is None and y is not None for x, y in zip(native, operands)):
        _refuse(implementation, me, args, kw, native)
    firsts = [(x[0], y[0]) if foreign(x) else (x, y)
              for x, y in zip(operands, native)]
    kind = next((x for x, y in firsts
                 if y is not x and hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray)),
                None)
    return kind, native[:len(args)], dict(zip(kw, native[len(args):]))


def _refuse(implementation, me, args, kw, native):
    """Raise the TypeError of the operand that is neither a number nor an array."""
    names = [*unwrap(implementation).__code__.co_varnames[1:len(args) + 1], *kw]
    argument, x = next((name, x) for name, x, y in zip(names, (*args, *kw.values()), native)
                       if y is None and x is not None)
    raise TypeError(f"{_name(me)}: {argument} must be a number or an array, got "
                    f"{type(x).__name__} {x!r:.60}")


def _members(x):
    """A list with its foreign arrays as NumPy's or CuPy's, or None if something in it is neither;
    members in a buffer, which is either's."""
    if x.__class__ is Ragged:
        data = x.data if x.data.__class__ in NATIVE else _native(x.data)
        return None if data is None else x if data is x.data else Ragged(data, x.shapes, x.offsets)
    if not foreign(x):
        return x
    native = [_native(y) for y in x]
    return None if any(y is None for y in native) else native


def _native(x):
    """`x` as a NumPy or CuPy array without a copy, a number as it is; None if it is neither."""
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    if isinstance(x, (int, float, complex, str, np.generic)):
        return x.item() if isinstance(x, np.generic) else x
    root = type(x).__module__.partition(".")[0]
    if root == "cupy":
        ndarray = _know_cupy().ndarray
        return x if type(x) is ndarray else x.view(ndarray)
    if isinstance(x, type):  # it has the methods of its objects
        return None
    if hasattr(x, "__dlpack_device__"):
        x = x.detach() if root == "torch" else x
        if x.__dlpack_device__()[0] == 1:  # kDLCPU
            return np.from_dlpack(x)
        return _know_cupy().from_dlpack(x)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    return None


def no_gpu():
    """Why there is no GPU to work on; nothing where there is one."""
    _cuda.check_fork()
    try:
        return "" if _know_cupy().cuda.runtime.getDeviceCount() else "CuPy sees no GPU"
    except Exception as failure:  # no CuPy, no driver, one that does not answer
        return f"there is no GPU that CuPy can use ({type(failure).__name__}: {failure})"


def _know_cupy():
    """CuPy, whose arrays are ours to work on from now on."""
    if _cuda.cupy is None:
        _cuda.start()
        NATIVE.add(_cuda.cupy.ndarray)
    return _cuda.cupy


def _in_kind(like, result):
    """`result` with its arrays as the library of `like` makes them (no copy)."""
    if isinstance(result, list):
        return [_in_kind(like, r) for r in result]
    if isinstance(result, tuple):
        return type(result)(_in_kind(like, r) for r in result) if type(result) is tuple \
            else type(result)(*(_in_kind(like, r) for r in result))
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not hasattr(result, "__dlpack__"):
        return result
    root = type(like).__module__.partition(".")[0]
    module = sys.modules["jax"].numpy if root in ("jax", "jaxlib") else sys.modules[root]
    if not hasattr(module, "from_dlpack"):
        return result
    return module.from_dlpack(result)
