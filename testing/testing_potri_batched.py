"""A^-1 of many matrices from the factors of potrf_batched, one triangle."""

import numpy as np

from . import errors, flops
from .case import Case
from .members import by_members, member_factors
from .storage import half


def make(p):
    p.A = p.stack(lambda: p.positive(p.n))
    c, *_, indefinite = member_factors(p, "potrf", p.lower)
    p.regular = indefinite == 0
    p.stored = p.hidden(c)
    p.call(p.stored, lower=p.lower)


def check(p, inverse, info):
    X = np.array([half(x, p.uplo) for x in inverse[p.regular]]).reshape(sum(p.regular), p.n, p.n)
    X = X + errors.H(X) * ~np.eye(p.n, dtype=bool)
    zeros = [errors.first_zero(c.diagonal()) for c in p.stored]
    return {"||I-A*A^{-1}||_1/(N*cond(A))": errors.inverse(p.A[p.regular], X),
            "info": bool(np.array_equal(info, zeros)),
            "triangle": errors.untouched(inverse, p.stored, p.uplo)}


CASE = Case("potri_batched", "batched", "inv_a info", make, check,
            lambda p: flops.times(p.batch, flops.potri(p.n)), flags="uplo",
            columns="BatchCount N", matrix="rand_dominant", unit="ms",
            lapack=by_members("potri"), modes=("native", "vendor"))
