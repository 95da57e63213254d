"""x^H y, complex."""

from . import flops
from .case import Case
from .testing_dot import check, make

CASE = Case("dotc", "blas", "value", make, lambda p, value: check(p, value, True),
            lambda p: flops.axpy(p.n), names="cz", flags="inc", limit=3, always=True, unit="ms")
