"""BLAS under SciPy's names: ``from scipy.linalg.blas import dgemm`` becomes ``blasx.blas``."""

from scipy.linalg import blas as _scipy

from .blas3 import *  # noqa: F403


def __getattr__(name):
    """SciPy's own function, for the names of scipy.linalg.blas that blasx does not have."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(_scipy, name)
