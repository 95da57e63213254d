"""C = alpha A B^T + alpha B A^T + beta C or with A^T B, one triangle of C."""

import numpy as np

from . import errors, flops
from .case import Case
from .errors import H, wide
from .storage import half
from .testing_syrk import make as syrk


def make(p, transpose=np.transpose):
    syrk(p, transpose)
    p.alpha, p.B = p.number(), p.random(*p.A.shape, scale=p.scale**0.5)
    p.call(p.alpha, p.A, p.B, beta=p.beta, c=p.stored, trans="NTC".index(p.trans),
           lower=p.lower)


def check(p, C, transpose=np.transpose):
    A, B = wide(p.A), wide(p.B)
    if p.trans != "N":
        A, B = transpose(A), transpose(B)
    other = np.conj(p.alpha) if transpose is H else p.alpha
    reference = p.alpha * A @ transpose(B) + other * B @ transpose(A) + p.beta * wide(p.C)
    return {"error": errors.higham(half(C, p.uplo), half(reference, p.uplo), 2 * p.k,
                                   (p.alpha, A, B), (p.beta, p.C)),
            "triangle": errors.untouched(C, p.stored, p.uplo)}


CASE = Case("syr2k", "blas", "C", make, check, lambda p: flops.syr2k(p.k, p.n),
            flags={"uplo": None, "trans": "NT"}, columns="N K", limit=3, always=True, unit="ms")
