"""x^T y, complex."""

from . import flops
from .case import Case
from .testing_dot import check, make

CASE = Case("dotu", "blas", "value", make, check,
            lambda p: flops.axpy(p.n), names="cz", flags="inc", limit=3, always=True, unit="ms")
