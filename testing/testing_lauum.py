"""U U^H or L^H L, over the triangle."""

from . import errors, flops
from .case import Case
from .errors import H, wide
from .storage import half


def make(p):
    p.A = p.triangular(p.n)
    p.A = p.A / p.real.type(p.scale)
    p.A[range(p.n), range(p.n)] = p.A.diagonal().real  # as a Cholesky factor has it
    p.stored = p.hidden(p.A)
    p.call(p.stored, lower=p.lower)


def check(p, a, info):
    T = wide(p.A)
    product = H(T) @ T if p.uplo == "L" else T @ H(T)
    return {"error": errors.higham(half(a, p.uplo), half(product, p.uplo), p.n, (1.0, T, T)),
            "triangle": errors.untouched(a, p.stored, p.uplo)}


CASE = Case("lauum", "aux", "a info", make, check, lambda p: flops.potrf(p.n), flags="uplo",
            matrix="rand_dominant", limit=3)
