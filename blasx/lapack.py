"""LAPACK under SciPy's names: ``from scipy.linalg.lapack import dgesv``, from blasx.lapack."""

import sys as _sys
from textwrap import fill as _fill

from scipy.linalg import lapack as _scipy

from ._funcs import best_type as find_best_lapack_type
from ._funcs import get_funcs as _get_funcs
from .band import *  # noqa: F403
from .cholesky import *  # noqa: F403
from .eig import *  # noqa: F403
from .indefinite import *  # noqa: F403
from .lu import *  # noqa: F403
from .mixed import *  # noqa: F403
from .norms import *  # noqa: F403
from .qr import *  # noqa: F403
from .svd import *  # noqa: F403
from .triangular import *  # noqa: F403

HAS_ILP64 = getattr(_scipy, "HAS_ILP64", False)

_ALIAS = {x + real: x + complex_ for x in "cz" for real, complex_ in (
    ("orgqr", "ungqr"), ("ormqr", "unmqr"), ("orglq", "unglq"), ("ormlq", "unmlq"),
    ("orgrq", "ungrq"), ("ormrq", "unmrq"), ("orghr", "unghr"),
    ("orghr_lwork", "unghr_lwork"))}


def get_lapack_funcs(names, arrays=(), dtype=None, ilp64=False):
    """Find LAPACK routines by name without letter, as scipy.linalg.lapack.get_lapack_funcs does.

    Parameters
    ----------
    names : str or sequence of str
        Of orthogonal routines the real name (orgqr) stands for the complex one (ungqr), too.
    arrays : sequence of arrays, optional
        NumPy's or CuPy's: the most general of their types decides.
    dtype : dtype, optional
        Taken where there are no arrays; double without it.
    ilp64 : {False, True, 'preferred'}
        True is refused where SciPy's LAPACK has 32-bit integers.

    Returns
    -------
    functions : a routine, or a list if `names` is a sequence
        With attributes typecode (s d c z), dtype, int_dtype.
    """
    return _get_funcs("LAPACK", _sys.modules[__name__], _ALIAS, names, arrays, dtype, ilp64,
                      HAS_ILP64)


def __getattr__(name):
    """SciPy's own function, for the names of scipy.linalg.lapack that blasx does not have."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(_scipy, name)


def __dir__():
    return sorted({*globals(), *dir(_scipy)})


__all__ = ["find_best_lapack_type", "get_lapack_funcs",
           *(name for name, x in globals().items() if getattr(x, "routine", None))]

__doc__ = (__doc__ or "") + "\n\n" + _fill(" ".join(x for x in __dir__() if x[0] != "_"), 99)
