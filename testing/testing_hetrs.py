"""Solve A X = B with the factors of hetrf."""

from . import flops
from .case import Case
from .errors import H
from .testing_sytrs import check, make

CASE = Case("hetrs", "hesv", "x info", lambda p: make(p, "he", H), check,
            lambda p: flops.potrs(p.n, p.nrhs), names="cz", flags="uplo", columns="N NRHS",
            always=True)
