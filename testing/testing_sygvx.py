"""As sygvd, all or some of the eigenvalues."""

from .case import Case
from .eig_checks import selected
from .generalized import definite, generalized, generalized_spectrum, values


def make(p):
    p.A, p.B = p.hermitian(p.n), definite(p)
    how, p.part = selected(p, values(p))
    p.call(p.hidden(p.A), p.hidden(p.B), itype=p.itype, jobz=p.jobz, uplo=p.uplo, **how)


def check(p, w, z, m, ifail, info):
    found = generalized_spectrum(p, w[:m], p.part)
    return found | generalized(p, w[:m], z[:, :m]) if p.jobz == "V" else found


CASE = Case("sygvx", "syev", "w z m ifail info", make, check, flags="itype jobz uplo range",
            names={"s": "ssygvx", "d": "dsygvx", "c": "chegvx", "z": "zhegvx"})
