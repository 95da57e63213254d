"""The plane rotation that zeroes b: -conj(s) a + c b = 0, c^2 + |s|^2 = 1."""

import numpy as np

from . import errors
from .case import Case


def make(p):
    p.a, p.b = (x.item() for x in p.matrix(2, 1)[:, 0])
    p.call(p.a, p.b)


def check(p, c, s):
    size = np.hypot(abs(p.a) / p.scale, abs(p.b) / p.scale)
    left = -np.conj(complex(s)) * (p.a / p.scale) + complex(c) * (p.b / p.scale)
    return {"error": errors.ratio(abs(left), size),
            "|c^2+|s|^2-1|": abs(abs(complex(c)) ** 2 + abs(complex(s)) ** 2 - 1)}


CASE = Case("rotg", "blas", "c s", make, check, flags="", limit=10, always=True, unit="ms",
            modes=())
