"""Solve A X = B, A Hermitian and indefinite."""

from . import flops
from .case import Case
from .errors import H
from .testing_sysv import check, make

CASE = Case("hesv", "hesv", "uduh ipiv x info", lambda p: make(p, H),
            lambda p, *outputs: check(p, *outputs, hermitian=True),
            lambda p: flops.sysv(p.n, p.nrhs), names="cz", flags="uplo", columns="N NRHS",
            always=True)
