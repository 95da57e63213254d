"""A batched routine's reference and starting point: SciPy's own, one member after the other."""

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from blasx._types import TYPES

from .lu_checks import lapack_factors


def by_members(routine):
    """lapack(p) for a Case: the leading axis of every array argument is the batch."""
    def lapack(p):
        name = TYPES[p.letter].sums + routine
        function = getattr(scipy.linalg.lapack, name, None) or getattr(scipy.linalg.blas, name)
        results = [function(*(member(x, i) for x in p.args),
                            **{k: member(x, i) for k, x in p.kwargs.items()})
                   for i in range(p.batch)]
        results = [x if isinstance(x, tuple) else (x,) for x in results]
        return tuple(np.stack([np.asarray(x) for x in output]) for output in zip(*results))

    return lapack


def member(x, i):
    return x[i] if isinstance(x, np.ndarray) else x


def member_factors(p, routine, *flags):
    """lapack_factors of every matrix in p.A, stacked."""
    found = [lapack_factors(p, routine, a, *flags) for a in p.A]
    found = found or [lapack_factors(p, routine, np.eye(p.n, dtype=p.dtype), *flags)]
    return [np.stack(x)[:p.batch] for x in zip(*found)]
