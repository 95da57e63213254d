"""Many matrices at once: the `_batched` names.

Arrays carry one leading batch dimension and any strides. A member's result does not depend, to
the bit, on the batch it is in. The typed names cast real numbers, or complex ones, to their type
(s: float32, d: float64, c: complex64, z: complex128, h: float16, b: bfloat16), the generic ones go
by that of their operands. Nothing is raised for a singular or indefinite member: `info` says which.
CPU: a compiled core for small members, LAPACK above, the batch split over the cores. GPU: own
kernels in the current stream, no synchronisation.
"""

from .._routine import public
from .blas import *
from .cholesky import *
from .eig import *
from .lu import *
from .qr import *
from .ragged import *
from .ragged_blas import *
from .ragged_qr import *
from .svd import *
from .triangular import *

__all__ = public(globals())
