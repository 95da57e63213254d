"""BLAS under SciPy's names: ``from scipy.linalg.blas import dgemm`` becomes ``blasx.blas``."""

import sys as _sys
from textwrap import fill as _fill

from scipy.linalg import blas as _scipy

from ._funcs import best_type as find_best_blas_type
from ._funcs import get_funcs as _get_funcs
from .blas1 import *  # noqa: F403
from .blas2 import *  # noqa: F403
from .blas3 import *  # noqa: F403

HAS_ILP64 = getattr(_scipy, "HAS_ILP64", False)

_ALIAS = {"cnrm2": "scnrm2", "znrm2": "dznrm2", "cdot": "cdotc", "zdot": "zdotc",
          "cger": "cgerc", "zger": "zgerc", "sdotc": "sdot", "sdotu": "sdot",
          "ddotc": "ddot", "ddotu": "ddot"}


def get_blas_funcs(names, arrays=(), dtype=None, ilp64=False):
    """Find BLAS routines by name without letter, as scipy.linalg.blas.get_blas_funcs does.

    Parameters
    ----------
    names : str or sequence of str
    arrays : sequence of arrays, optional
        NumPy's or CuPy's: the most general of their types decides.
    dtype : dtype, optional
        Taken where there are no arrays; double without it.
    ilp64 : {False, True, 'preferred'}
        True is refused where SciPy's BLAS has 32-bit integers.

    Returns
    -------
    functions : a routine, or a list if `names` is a sequence
        With attributes typecode (s d c z), dtype, int_dtype.
    """
    return _get_funcs("BLAS", _sys.modules[__name__], _ALIAS, names, arrays, dtype, ilp64,
                      HAS_ILP64)


def __getattr__(name):
    """SciPy's own function, for the names of scipy.linalg.blas that blasx does not have."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(_scipy, name)


def __dir__():
    return sorted({*globals(), *dir(_scipy)})


__all__ = ["find_best_blas_type", "get_blas_funcs",
           *(name for name, x in globals().items() if getattr(x, "routine", None))]

__doc__ = (__doc__ or "") + "\n\n" + _fill(" ".join(x for x in __dir__() if x[0] != "_"), 99)
