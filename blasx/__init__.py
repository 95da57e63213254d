"""blasx: BLAS and LAPACK by name, on CPU and GPU."""

from ._routine import TransferWarning
from ._trace import trace
from .blas3 import *  # noqa: F403
from .lu import *  # noqa: F403
