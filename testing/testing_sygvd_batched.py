"""A x = w B x and its kin for many pairs."""

from copy import copy

import numpy as np

from .case import Case
from .generalized import definite, generalized, generalized_spectrum
from .members import by_members


def make(p):
    p.A, p.B = p.stack(lambda: p.hermitian(p.n)), p.stack(lambda: definite(p))
    p.call(p.hidden(p.A), p.hidden(p.B), itype=p.itype, jobz=p.jobz, uplo=p.uplo)


def check(p, w, v, info):
    found, one = {}, copy(p)
    for i in range(p.batch):
        one.A, one.B = p.A[i], p.B[i]
        errors = generalized_spectrum(one, w[i])
        if p.jobz == "V":
            errors |= generalized(one, w[i], v[i])
        for what, value in errors.items():
            worse = min if isinstance(value, bool) else np.maximum  # nan stays
            found[what] = worse(found.get(what, value), value)
    return {what: x if isinstance(x, bool) else float(x) for what, x in found.items()}


CASE = Case("sygvd_batched", "batched", "w v info", make, check, flags="itype jobz uplo",
            names={"s": "ssygvd_batched", "d": "dsygvd_batched", "c": "chegvd_batched",
                   "z": "zhegvd_batched"},
            columns="BatchCount N", unit="ms",
            lapack=lambda p: by_members("hegvd" if p.is_complex else "sygvd")(p),
            modes=("native",))
