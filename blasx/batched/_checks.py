"""Argument checks that the batched routines share; `me` is the typed name (`_routine.Typed`)."""

from functools import cache, partial
from importlib import import_module

import numpy as np

from . import _cpu


def on_gpu(name):
    """Returns the module `name` when called: imported when the first CuPy array is there, for it
    imports CuPy."""
    return cache(partial(import_module, "." + name, __package__))


def dimensions(x):
    """How many an array or a nested list has; none if it is neither."""
    if x.__class__ is list or x.__class__ is tuple:
        try:
            return np.ndim(x)
        except (ValueError, TypeError):  # of rows of different lengths, of arrays on a GPU
            return None
    return getattr(x, "ndim", None)


def square_stack(me, a, argument, overwrite=0):
    a = me.stack(a, argument, 3, overwrite)
    _, m, n = a.shape
    if m != n:
        me.illegal(argument, a.shape, "a stack of square matrices (batch, n, n)")
    return a


def right_hand_sides(me, b, overwrite, a, name):
    """`b` checked against the stack of matrices `a`, which has a name."""
    b = me.stack(b, "b", 2 if dimensions(b) == 2 else 3, overwrite)
    if b.shape[:2] != a.shape[:2]:
        batch, n, _ = a.shape
        me.illegal("b", b.shape, f"of shape ({batch}, {n}) or ({batch}, {n}, nrhs)")
    if overwrite:
        me.distinct(b, "b", **{name: a})
    return b


def pivots(me, piv, lu):
    """`piv` as 32-bit integers, a row number of its member for each of `lu`'s rows; NumPy's in C's
    order."""
    piv = me.integer_array(piv, "piv")
    if piv.shape != lu.shape[:2]:
        me.illegal("piv", piv.shape, f"of shape {lu.shape[:2]}")
    if _cpu.rows_within(piv, lu.shape[1]):
        return piv
    piv = me.integers(piv.reshape(-1), "piv", below=lu.shape[1]).reshape(lu.shape[:2])
    return np.ascontiguousarray(piv) if piv.__class__ is np.ndarray else piv
