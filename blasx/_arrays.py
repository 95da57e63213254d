"""Arrays that are not NumPy's: CuPy's, and those of any library that speaks DLPack."""

import sys

import numpy as np

from . import _trace
from ._routine import PLAIN, Typed


def call(implementation, me, args, kw):
    """Run `implementation` on operands of which some are not NumPy's.

    CuPy arrays are used as they are, in the current stream of the device that holds them. Other
    arrays (torch, jax) are viewed through DLPack, and array results are returned in their kind.
    """
    device = kind = None
    inner = []
    for x in (*args, *kw.values()):
        if x.__class__ not in PLAIN:
            y = _native(x, me)
            if y is not x:
                kind = x
            x = y
            if x.__class__ is not np.ndarray and x.__class__ not in PLAIN:
                device = x.data.device_id
        inner.append(x)
    args, kw = inner[:len(args)], dict(zip(kw, inner[len(args):]))
    if not isinstance(me, Typed):
        me = me(args, kw)
    if _trace._open:
        result = _trace.recorded(me.name, lambda: _on_device(device, implementation, me, args, kw))
    else:
        result = _on_device(device, implementation, me, args, kw)
    return result if kind is None else _in_kind(kind, result)


def _on_device(device, implementation, me, args, kw):
    if device is None:
        return implementation(me, *args, **kw)
    from . import _cuda
    _trace.note(device=f"gpu:{device}")
    if device == _cuda.current_device():
        return implementation(me, *args, **kw)
    import cupy
    with cupy.cuda.Device(device):
        return implementation(me, *args, **kw)


def _native(x, me):
    """`x` as a NumPy or CuPy array without a copy; what is no array at all as it is."""
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    if isinstance(x, (int, float, complex, str, np.generic)):
        return x.item() if isinstance(x, np.generic) else x
    root = type(x).__module__.partition(".")[0]
    if root == "cupy":
        return x
    if hasattr(x, "__dlpack_device__"):
        x = x.detach() if root == "torch" else x
        if x.__dlpack_device__()[0] == 1:  # kDLCPU
            return np.from_dlpack(x)
        import cupy
        return cupy.from_dlpack(x)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    name = me.name if isinstance(me, Typed) else me.args[0]
    raise TypeError(f"{name}: takes numbers and arrays, got {type(x).__name__} {x!r:.60}")


def _in_kind(like, result):
    """`result` with its arrays as the library of `like` makes them (no copy)."""
    if isinstance(result, tuple):
        return type(result)(_in_kind(like, r) for r in result) if type(result) is tuple \
            else type(result)(*(_in_kind(like, r) for r in result))
    if not hasattr(result, "__dlpack__") or isinstance(result, np.generic):
        return result
    root = type(like).__module__.partition(".")[0]
    module = sys.modules["jax"].numpy if root in ("jax", "jaxlib") else sys.modules[root]
    if not hasattr(module, "from_dlpack"):
        return result
    return module.from_dlpack(result)
