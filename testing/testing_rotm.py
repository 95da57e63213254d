"""Modified plane rotation: (x, y) = H (x, y), H given by its flag -2, -1, 0 or 1."""

import numpy as np

from . import flops
from .case import Case
from .level1 import both, compared, near_one, two_vectors


def make(p):
    h11, h21, h12, h22 = p.rng.uniform(-1, 1, 4)
    p.h = {-2: [[1, 0], [0, 1]], -1: [[h11, h12], [h21, h22]], 0: [[1, h12], [h21, 1]],
           1: [[h11, 1], [-1, h22]]}[p.flag]
    p.h = np.array(p.h).astype(p.dtype).astype(float)
    how = two_vectors(p, p.scale)
    p.call(p.x, p.y, [float(p.flag), h11, h21, h12, h22], **how)


def check(p, x, y):
    x0, y0 = near_one(p, p.x, p.incx), near_one(p, p.y, p.incy)
    (a, b), (c, d) = p.h
    return both(compared(p, x, p.x, p.incx, (a, x0), (b, y0)),
                compared(p, y, p.y, p.incy, (c, x0), (d, y0)))


CASE = Case("rotm", "blas", "x y", make, check, lambda p: flops.rot(p.n), names="sd",
            flags={"flag": (-1, 0, 1, -2), "inc": None}, limit=3, always=True, unit="ms")
