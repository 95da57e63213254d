"""Index, from 0, of the first largest |re| + |im|."""

import numpy as np

from .case import Case, elements
from .level1 import ONE_INC, one_vector


def make(p):
    how = one_vector(p)
    p.call(p.x, **how)


def check(p, index):
    x = elements(p.x, p.n, p.incx)
    size = abs(x.real) + abs(x.imag)
    return {"index": p.n == 0 or int(index) == int(np.argmax(size))}


CASE = Case("iamax", "blas", "index", make, check, lambda p: (0, p.n),
            flags=ONE_INC, always=True, unit="ms",
            names={"s": "isamax", "d": "idamax", "c": "icamax", "z": "izamax"})
