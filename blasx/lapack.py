"""LAPACK under SciPy's names: import from blasx.lapack instead of scipy.linalg.lapack."""

from scipy.linalg import lapack as _scipy

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


def __getattr__(name):
    """SciPy's own function, for the names of scipy.linalg.lapack that blasx does not have."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(_scipy, name)
