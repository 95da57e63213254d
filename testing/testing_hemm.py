"""C = alpha A B + beta C or alpha B A + beta C, A Hermitian."""

from . import flops
from .case import Case
from .errors import H
from .testing_symm import check, make

CASE = Case("hemm", "blas", "C", lambda p: make(p, H), check,
            lambda p: flops.symm(p.side, p.m, p.n), names="cz", flags="side uplo",
            columns="M N", limit=3, always=True, unit="ms")
