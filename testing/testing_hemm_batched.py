"""C = alpha A B + beta C or alpha B A + beta C for many matrices, A Hermitian."""

from . import flops
from .case import Case
from .errors import H
from .members import by_members
from .testing_symm_batched import check, make

CASE = Case("hemm_batched", "batched", "C", lambda p: make(p, H), check,
            lambda p: flops.times(p.batch, flops.symm(p.side, p.m, p.n)), names="cz",
            flags="side uplo", columns="BatchCount M N", limit=3, always=True, unit="ms",
            lapack=by_members("hemm"), modes=("native",))
