"""LU factorization with partial pivoting: |PA-LU| of a square, tall or wide matrix."""


from . import flops
from .case import Case
from .lu_checks import factored


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.call(p.A)


def check(p, lu, piv, info):
    return factored(p, lu, piv, info)


CASE = Case("getrf", "lu", "lu piv info", make, check, lambda p: flops.getrf(p.m, p.n),
            columns="M N")
