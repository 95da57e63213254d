"""Eigenvalues and -vectors of a Hermitian matrix, divide and conquer."""

from .case import Case
from .eig_checks import decomposed, spectrum


def make(p):
    p.A = p.hermitian(p.n)
    p.call(p.hidden(p.A), compute_v=int(p.jobz == "V"), lower=p.lower)


def check(p, w, v, info):
    found = spectrum(p, p.A, w)
    return found | decomposed(p, p.A, w, v) if p.jobz == "V" else found


CASE = Case("syevd", "syev", "w v info", make, check, flags="jobz uplo",
            names={"s": "ssyevd", "d": "dsyevd", "c": "cheevd", "z": "zheevd"})
