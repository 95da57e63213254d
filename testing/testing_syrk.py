"""C = alpha A A^T + beta C or alpha A^T A + beta C, one triangle of C."""

import numpy as np

from . import errors, flops
from .case import Case
from .errors import H, wide
from .storage import half


def make(p, transpose=np.transpose):
    hermitian = transpose is H
    p.A = p.matrix(*((p.n, p.k) if p.trans == "N" else (p.k, p.n)))
    p.A = p.A / p.real.type(p.scale**0.5)  # A A^T is then on the scale asked for
    p.C = p.random(p.n, p.n, scale=p.scale)
    p.C = half(p.C, "L") + transpose(np.tril(p.C, -1))
    if hermitian:
        p.C[range(p.n), range(p.n)] = p.C.diagonal().real
    p.alpha, p.beta, p.stored = p.number(hermitian), p.number(hermitian), p.hidden(p.C)
    p.call(p.alpha, p.A, beta=p.beta, c=p.stored, trans="NTC".index(p.trans), lower=p.lower)


def check(p, C, transpose=np.transpose):
    A = wide(p.A) if p.trans == "N" else transpose(wide(p.A))
    reference = p.alpha * A @ transpose(A) + p.beta * wide(p.C)
    return {"error": errors.higham(half(C, p.uplo), half(reference, p.uplo), p.k,
                                   (p.alpha, A, A), (p.beta, p.C)),
            "triangle": errors.untouched(C, p.stored, p.uplo)}


CASE = Case("syrk", "blas", "C", make, check, lambda p: flops.syrk(p.k, p.n),
            flags={"uplo": None, "trans": "NT"}, columns="N K", limit=3, always=True, unit="ms")
