"""x = op(A) x, A a triangular band."""

from . import flops
from .case import Case
from .level2 import check_multiplied, triangular
from .storage import triangle_band, within


def make(p):
    T = within(p.triangular(p.n), p.kl, p.kl)
    triangular(p, T, triangle_band(p.hidden(T), p.kl, p.uplo), p.kl)


CASE = Case("tbmv", "blas", "x", make, check_multiplied, lambda p: flops.gbmv(p.n, p.n, p.kl, 0),
            flags={"uplo": None, "trans": None, "diag": None, "inc": ((1, 1), (-2, -2))},
            columns="N KL", matrix="rand_dominant", limit=3, always=True, unit="ms")
