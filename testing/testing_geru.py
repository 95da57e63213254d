"""A = alpha x y^T + A, complex."""

from . import flops
from .case import Case
from .testing_ger import check, make

CASE = Case("geru", "blas", "A", make, check,
            lambda p: flops.ger(p.m, p.n), names="cz", flags={"inc": ((1, 1), (-1, 1))},
            columns="M N", limit=3, always=True, unit="ms")
