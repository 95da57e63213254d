"""A x = w B x (itype 1), A B x = w x (2), B A x = w x (3), B positive definite."""

from .case import Case
from .generalized import definite, generalized, generalized_spectrum


def make(p):
    p.A, p.B = p.hermitian(p.n), definite(p)
    p.call(p.hidden(p.A), p.hidden(p.B), itype=p.itype, jobz=p.jobz, uplo=p.uplo)


def check(p, w, v, info):
    found = generalized_spectrum(p, w)
    return found | generalized(p, w, v) if p.jobz == "V" else found


CASE = Case("sygvd", "syev", "w v info", make, check, flags="itype jobz uplo",
            names={"s": "ssygvd", "d": "dsygvd", "c": "chegvd", "z": "zhegvd"})
