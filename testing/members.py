"""A batched routine's reference: SciPy's own, one member after the other."""

import numpy as np
import scipy.linalg.lapack


def by_members(routine):
    """lapack(p) for a Case: the leading axis of every array argument is the batch."""
    def lapack(p):
        function = getattr(scipy.linalg.lapack, p.letter + routine)
        results = [function(*(x[i] for x in p.args), **p.kwargs) for i in range(p.batch)]
        return tuple(np.stack([np.asarray(x) for x in output]) for output in zip(*results))

    return lapack
