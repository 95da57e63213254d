"""LAPACK under SciPy's names: ``from scipy.linalg.lapack import dgetrf`` becomes ``blasx.lapack``."""

from scipy.linalg import lapack as _scipy

from .lu import *  # noqa: F403


def __getattr__(name):
    """SciPy's own function, for the names of scipy.linalg.lapack that blasx does not have."""
    return getattr(_scipy, name)
