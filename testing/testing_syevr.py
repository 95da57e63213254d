"""All or some eigenvalues and -vectors of a Hermitian matrix, MRRR."""

import numpy as np

from . import errors
from .case import Case
from .eig_checks import decomposed, selected, spectrum


def make(p):
    p.A = p.hermitian(p.n)
    how, p.part = selected(p, np.linalg.eigvalsh(errors.wide(p.A)) if p.n else np.zeros(0))
    p.call(p.hidden(p.A), compute_v=int(p.jobz == "V"), lower=p.lower, **how)


def check(p, w, z, m, support, info):
    found = spectrum(p, p.A, w[:m], p.part)
    return found | decomposed(p, p.A, w[:m], z[:, :m]) if p.jobz == "V" else found


# MRRR computes each eigenvector by itself: orthogonal to a larger constant than QR or D&C.
CASE = Case("syevr", "syev", "w z m isuppz info", make, check, flags="jobz uplo range",
            limits={"|I-U^H U|": 100},
            names={"s": "ssyevr", "d": "dsyevr", "c": "cheevr", "z": "zheevr"})
