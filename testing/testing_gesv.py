"""Solve A X = B by LU; with --factor in that precision, and by refinement to double precision.

iter < 0 is the fallback to double precision, a failure unless --allow-fallback."""

from . import errors, flops
from .case import Case
from .lu_checks import factored, solved


def make(p):
    p.A = p.matrix(p.n, p.n)
    p.b = p.rhs(p.n, p.nrhs)
    p.call(p.A, p.b)


def make_refined(p):
    make(p)
    p.kwargs = {"factor": p.options.factor, "refine": p.options.refine}


def check(p, lu, piv, x, info):
    return solved(p, x, info) | factored(p, lu, piv, info)


def check_refined(p, lu, piv, x, info, iter, backward_error, r, c):
    """The backward error that is claimed, which is not below that of A X = B."""
    if info:
        return {"info": bool(info == errors.lu_info(p.A, lu)), "iter": True}
    claimed, true = float(backward_error), errors.backward(p.A, x, p.b)
    return {**solved(p, x), "backward/sqrt(N)": claimed / max(p.n, 1) ** 0.5,
            "claimed": bool(true <= claimed + p.eps), "pivots": errors.pivots(piv, p.n),
            "dtype": x.dtype == p.dtype and lu.dtype == (
                p.dtype if iter < 0 else "c8" if p.is_complex else "f4")}


CASE = Case("gesv", "lu", "lu piv x info", make, check, lambda p: flops.gesv(p.n, p.nrhs),
            columns="N NRHS", always=True,
            refined=Case("gesv", "mixed", "lu piv x info iter backward_error r c", make_refined,
                         check_refined, lambda p: flops.gesv(p.n, p.nrhs),
                         names={"d": "dgesv", "z": "zgesv"}, columns="N NRHS", always=True))
