"""Small problems of every routine, for the tests by property: arguments by name, in any layout."""

import inspect

import numpy as np

from blasx._types import TYPES
from testing.case import as_tuple
from testing.cases import CASES
from testing.options import Options

ROUTINES = [(case, letter) for case in CASES for letter in case.typed
            if TYPES[letter].is_known and case.group != "vbatched"]  # those: test_ragged.py
IDS = [case.typed[letter] for case, letter in ROUTINES]
LAYOUTS = ("F", "C", "view", "rows", "steps", "reversed", "apart")
GUARD = 77


class Call:
    """One call of one routine: `arguments` by name, as they are to be passed."""

    def __init__(self, case, letter, sizes, variant=0, seed=0, batch=3, nrhs=2, kl=1, ku=2):
        flags = case.variants()
        self.options = Options(batch=batch, nrhs=nrhs, kl=kl, ku=ku)
        self.case, self.function = case, case.function(letter)
        self.name, self.parameters = self.function.__name__, signature(self.function)
        self.p = case.problem(letter, sizes, flags[variant % len(flags)],
                              np.random.default_rng(seed), self.options)
        bound = inspect.signature(self.function).bind(*self.p.args, **self.p.kwargs)
        self.arguments, self.frames = dict(bound.arguments), {}

    @property
    def arrays(self):
        """The names of the arguments that are arrays."""
        return [k for k, x in self.arguments.items() if isinstance(x, np.ndarray)]

    @property
    def overwritable(self):
        return [k for k in self.arrays if f"overwrite_{k}" in self.parameters]

    def lay(self, layouts, xp=np):
        """Give every array a layout (the list is gone through in circles) and a frame around."""
        names = self.arrays
        self.layouts = dict(zip(names, layouts * len(names)))
        for k, layout in self.layouts.items():
            self.arguments[k], self.frames[k] = laid(self.arguments[k], layout, xp)

    def run(self, **more):
        """The routine's own answer, as a tuple."""
        result = self.function(**{**self.arguments, **more})
        return result if isinstance(result, tuple) else (result,)

    def failures(self, outputs):
        """What is wrong with the outputs, as the tester judges them; with the errors found."""
        outputs = as_tuple(tuple(outputs))
        found = self.case.errors(self.p, outputs)
        return {what: found[what] for what in self.case.failures(self.p, found)}


def signature(f):
    return inspect.signature(f).parameters


def problem(routine, *args, **kw):
    return Call(*routine, *args, **kw)


def laid(x, layout, xp=np):
    """`x` in a layout, and the array of guards that it lies in (itself where it is whole)."""
    if layout in ("F", "C"):
        y = xp.empty(x.shape, x.dtype, order=layout)
        y[...] = xp.asarray(x)
        return y, y
    if layout == "apart":  # every other one of twice as many members, by columns without a gap
        order = [0, *range(1, x.ndim)[::-1]]
        shape = 2 * len(x) + 1, *x.shape[1:]
        frame = xp.full([shape[i] for i in order], GUARD, x.dtype).transpose(order)
        y = frame[1::2]
        y[...] = xp.asarray(x)
        return y, frame
    step = 2 if layout == "steps" else 1
    shape = [s * step + 3 for s in x.shape]
    # rows and columns change places, the batch stays in front
    order = [*range(x.ndim - 2), *range(max(x.ndim - 2, 0), x.ndim)[::-1]]
    if layout in ("view", "reversed") and x.ndim > 1:
        frame = xp.full([shape[i] for i in order], GUARD, x.dtype).transpose(order)
    else:
        frame = xp.full(shape, GUARD, x.dtype)
    y = frame[tuple(slice(1, 1 + s * step, step) for s in x.shape)]
    if layout == "reversed":
        y = y[(slice(None, None, -1),) * x.ndim]
    y[...] = xp.asarray(x)
    return y, frame


def host(x):
    return x.get() if hasattr(x, "get") else np.asarray(x)


def contents(arrays):
    """What a dict of arrays holds, bit for bit."""
    return {k: host(x).tobytes() for k, x in arrays.items()}
