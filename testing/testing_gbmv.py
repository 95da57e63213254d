"""y = alpha op(A) x + beta y with a band matrix."""

from . import flops
from .case import Case
from .errors import op
from .level2 import check_product, product
from .storage import band, within


def make(p):
    p.ku = min(p.ku, max(p.m - 1, 0))  # SciPy's name wants m >= kl + ku + 1
    p.kl = min(p.kl, max(p.m - 1 - p.ku, 0))
    p.A = within(p.matrix(p.m, p.n), p.kl, p.ku)
    product(p, op(p.A, p.trans).shape, p.m, p.n, p.kl, p.ku, band(p.A, p.kl, p.ku),
            trans="NTC".index(p.trans))


def check(p, y):
    return check_product(p, y, op(p.A, p.trans), min(p.kl + p.ku + 1, max(p.m, p.n)))


CASE = Case("gbmv", "blas", "y", make, check, lambda p: flops.gbmv(p.m, p.n, p.kl, p.ku),
            flags="trans inc", columns="M N KL KU", limit=3, always=True, unit="ms")
