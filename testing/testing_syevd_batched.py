"""Eigenvalues and -vectors of many Hermitian matrices."""

import numpy as np

from .case import Case
from .eig_checks import decomposed, spectrum
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.hermitian(p.n))
    p.call(p.hidden(p.A), compute_v=int(p.jobz == "V"), lower=p.lower)


def check(p, w, v, info):
    found = {}
    for i in range(p.batch):
        one = spectrum(p, p.A[i], w[i])
        if p.jobz == "V":
            one |= decomposed(p, p.A[i], w[i], v[i])
        for what, value in one.items():
            worse = min if isinstance(value, bool) else np.maximum  # nan stays
            found[what] = worse(found.get(what, value), value)
    return {what: x if isinstance(x, bool) else float(x) for what, x in found.items()}


CASE = Case("syevd_batched", "batched", "w v info", make, check, flags="jobz uplo",
            names={"s": "ssyevd_batched", "d": "dsyevd_batched", "c": "cheevd_batched",
                   "z": "zheevd_batched"},
            columns="BatchCount N", unit="ms",
            lapack=lambda p: by_members("heevd" if p.is_complex else "syevd")(p), modes=("native",))
