"""x = alpha x with a real alpha: csscal, zdscal."""

from . import flops
from .case import Case
from .level1 import ONE_INC
from .testing_scal import check, make

CASE = Case("rscal", "blas", "x", lambda p: make(p, real=True), check, lambda p: flops.scal(p.n),
            names={"c": "csscal", "z": "zdscal"}, flags=ONE_INC, limit=3, always=True, unit="ms",
            in_place=True)
