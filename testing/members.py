"""A batched routine's reference and starting point: SciPy's own, one member after the other."""

import numpy as np
import scipy.linalg.lapack

from .lu_checks import lapack_factors


def by_members(routine):
    """lapack(p) for a Case: the leading axis of every array argument is the batch."""
    def lapack(p):
        function = getattr(scipy.linalg.lapack, p.letter + routine)
        results = [function(*(x[i] for x in p.args), **p.kwargs) for i in range(p.batch)]
        return tuple(np.stack([np.asarray(x) for x in output]) for output in zip(*results))

    return lapack


def member_factors(p, routine, *flags):
    """lapack_factors of every matrix in p.A, stacked."""
    found = [lapack_factors(p, routine, a, *flags) for a in p.A]
    found = found or [lapack_factors(p, routine, np.eye(p.n, dtype=p.dtype), *flags)]
    return [np.stack(x)[:p.batch] for x in zip(*found)]
