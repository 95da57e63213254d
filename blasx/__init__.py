"""blasx: BLAS and LAPACK by name, for one matrix or a hundred thousand, on CPU and GPU.

Every routine has its typed names (sgemm dgemm cgemm zgemm) and the generic one (gemm, where the
arrays' dtype decides), all with SciPy's signatures. NumPy arrays run on the CPU, CuPy arrays on
the GPU in the current stream; anything that speaks DLPack is taken without a copy.

`blasx.blas` and `blasx.lapack` stand in for scipy.linalg.blas and scipy.linalg.lapack;
`blasx.linalg` has NumPy's names, for stacks; `trace()` records what ran where.
"""

from . import blas, lapack, linalg
from ._config import show_config
from ._ragged import Ragged
from ._routine import RefinementWarning, TransferWarning
from ._trace import trace
from .batched import *
from .blas import *
from .lapack import *

__version__ = "0.1.0"
