"""A matrix, or a triangle of one, set to alpha off and beta on the diagonal."""

import numpy as np

from .case import Case
from .testing_lacpy import part


def make(p):
    p.alpha, p.beta, p.A = p.number(), p.number(), p.matrix(p.m, p.n)
    p.call(p.m, p.n, p.alpha, p.beta, uplo=p.uplo, a=p.A)


def check(p, a):
    wanted = np.where(part(p.A.shape, p.uplo), p.dtype.type(p.alpha), p.A)
    np.fill_diagonal(wanted, p.dtype.type(p.beta))
    return {"set": bool(np.array_equal(a, wanted))}


CASE = Case("laset", "aux", "a", make, check, columns="M N", flags={"uplo": "ALU"},
            flops=lambda p: (p.m * p.n * p.dtype.itemsize, 0), rate="GByte/s", unit="ms",
            in_place=True, modes=("native",))
