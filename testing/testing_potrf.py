"""Cholesky factorization. Judged by |A - L L^H|, as an ill-conditioned matrix has no small
difference between two factors; -c2 is MAGMA's |R - R_lapack|."""


from . import errors, flops
from .case import Case


def make(p):
    p.A = p.positive(p.n)
    p.call(p.hidden(p.A), lower=p.lower)


def check(p, c, info):
    error, right = errors.cholesky_info(p.A, c, p.uplo, info, p.eps)
    found = {"|A-LL^H|/(N*|A|)": error, "info": right, "triangle": errors.zeroed(c, p.uplo)}
    if p.options.check == 2 and info == 0:
        found["|R-R_lapack|/|R_lapack|"] = errors.difference(c, CASE.reference(p)[0])
    return found


CASE = Case("potrf", "chol", "c info", make, check, lambda p: flops.potrf(p.n), flags="uplo",
            matrix="rand_dominant", modes=("native", "hybrid", "vendor"))
