"""C = alpha A A^T + beta C or alpha A^T A + beta C for many matrices, one triangle of C."""

import numpy as np

from . import errors, flops
from .case import Case
from .errors import H, wide
from .members import by_members
from .storage import half


def transposed(x):
    return np.swapaxes(x, -1, -2)


def make(p, transpose=transposed):
    hermitian = transpose is H
    p.A = p.stack(lambda: p.matrix(*((p.n, p.k) if p.trans == "N" else (p.k, p.n))))
    p.A = p.A / p.real.type(p.scale**0.5)  # A A^T is then on the scale asked for
    p.C = p.random(p.batch, p.n, p.n, scale=p.scale)
    p.C = np.tril(p.C) + transpose(np.tril(p.C, -1))
    if hermitian:
        p.C[:, range(p.n), range(p.n)] = p.C[:, range(p.n), range(p.n)].real
    p.alpha, p.beta, p.stored = p.number(hermitian), p.number(hermitian), p.hidden(p.C)
    p.call(p.alpha, p.A, beta=p.beta, c=p.stored, trans="NTC".index(p.trans), lower=p.lower)


def check(p, C, transpose=transposed):
    A = wide(p.A) if p.trans == "N" else transpose(wide(p.A))
    reference = p.alpha * A @ transpose(A) + p.beta * wide(p.C)
    return {"error": errors.higham(half(C, p.uplo), half(reference, p.uplo), p.k,
                                   (p.alpha, A, A), (p.beta, p.C)),
            "triangle": errors.untouched(C, p.stored, p.uplo)}


CASE = Case("syrk_batched", "batched", "C", make, check,
            lambda p: flops.times(p.batch, flops.syrk(p.k, p.n)),
            flags={"uplo": None, "trans": "NT"}, columns="BatchCount N K", limit=3, always=True,
            unit="ms", lapack=by_members("syrk"), modes=("native",))
