"""Sum of |re| + |im|."""

import numpy as np

from .case import Case
from .level1 import ONE_INC
from .testing_nrm2 import check, make


def size(x):
    return float(np.sum(abs(x.real) + abs(x.imag)))


CASE = Case("asum", "blas", "value", make, lambda p, value: check(p, value, size),
            lambda p: (0, p.n), flags=ONE_INC, limit=3,
            names={"s": "sasum", "d": "dasum", "c": "scasum", "z": "dzasum"}, always=True,
            unit="ms")
