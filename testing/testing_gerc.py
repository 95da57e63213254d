"""A = alpha x y^H + A, complex."""

from . import flops
from .case import Case
from .testing_ger import check, make

CASE = Case("gerc", "blas", "A", make, lambda p, A: check(p, A, True),
            lambda p: flops.ger(p.m, p.n), names="cz", flags={"inc": ((1, 1), (-1, 1))},
            columns="M N", limit=3, always=True, unit="ms")
