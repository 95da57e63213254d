"""C = op(A) op(B) of bytes: exactly, or f(scale op(A) op(B) + bias) in single precision."""

import numpy as np
import scipy.special

from . import errors, flops
from .case import Case
from .errors import op


def make(p):
    def bytes_of(*shape):
        return p.rng.integers(-128, 128, shape, np.int8)

    p.A = bytes_of(*((p.m, p.k) if p.transA == "N" else (p.k, p.m)))
    p.B = bytes_of(*((p.k, p.n) if p.transB == "N" else (p.n, p.k)))
    trans = {"trans_a": "NT".index(p.transA), "trans_b": "NT".index(p.transB)}
    if p.f == "exact":
        p.call(p.A, p.B, **trans)
        return
    size = 1 / (5461.0 * max(p.k, 1) ** 0.5)  # a byte is 74 large: sums are near 1 after it
    p.scale = (p.rng.uniform(0.5, 1, (p.m, 1)) * size).astype("f4")
    p.bias = p.rng.uniform(-1, 1, p.n).astype("f4")
    p.call(p.A, p.B, **trans, scale=p.scale, bias=p.bias,
           activation=None if p.f == "scaled" else p.f)


def product(p):
    return op(p.A, p.transA).astype("f8") @ op(p.B, p.transB).astype("f8")


def check(p, C):
    exact = product(p)
    if p.f == "exact":
        return {"exact": C.dtype == np.int32 and np.array_equal(C, exact.astype("i8").astype("i4"))}
    x, size = p.scale * exact + p.bias, abs(p.scale * exact) + abs(p.bias)
    y = {"scaled": x, "relu": np.maximum(x, 0), "gelu": x * scipy.special.ndtr(x)}[p.f]
    return {"error": errors.ratio(abs(C - y), size), "dtype": C.dtype == np.float32}


CASE = Case("igemm", "blas", "C", make, check, lambda p: flops.gemm(p.m, p.n, p.k),
            names={"i": "igemm"}, flags={"transA": "NT", "transB": "NT",
                                         "f": ("exact", "scaled", "relu", "gelu")},
            columns="M N K", limit=10, always=True, unit="ms", rate="Gop/s", lapack=product)
