"""A copy of a matrix or of one of its triangles, exactly."""

import numpy as np

from .case import Case


def make(p):
    p.A, p.B = p.matrix(p.m, p.n), p.random(p.m, p.n)
    p.call(p.A, uplo=p.uplo, b=p.B)


def part(shape, uplo):
    mask = np.ones(shape, bool)
    return {"A": lambda x: x, "L": np.tril, "U": np.triu}[uplo](mask)


def check(p, b):
    return {"copied": bool(np.array_equal(b, np.where(part(p.A.shape, p.uplo), p.A, p.B)))}


CASE = Case("lacpy", "aux", "b", make, check, columns="M N", flags={"uplo": "ALU"},
            flops=lambda p: (2 * p.m * p.n * p.dtype.itemsize, 0), rate="GByte/s", unit="ms",
            in_place=True, modes=("native",))
