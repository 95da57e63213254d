"""Plane rotation: x = c x + s y, y = c y - s x, with real c and s."""

import numpy as np

from . import flops
from .case import Case
from .level1 import both, compared, near_one, two_vectors


def make(p):
    angle = p.rng.random() * 2 * np.pi
    p.c, p.s = float(p.real.type(np.cos(angle))), float(p.real.type(np.sin(angle)))
    how = two_vectors(p, p.scale)
    p.call(p.x, p.y, p.c, p.s, **how)


def check(p, x, y):
    x0, y0 = near_one(p, p.x, p.incx), near_one(p, p.y, p.incy)
    return both(compared(p, x, p.x, p.incx, (p.c, x0), (p.s, y0)),
                compared(p, y, p.y, p.incy, (p.c, y0), (-p.s, x0)))


CASE = Case("rot", "blas", "x y", make, check, lambda p: flops.rot(p.n), flags="inc", limit=3,
            names={"s": "srot", "d": "drot", "c": "csrot", "z": "zdrot"}, always=True, unit="ms")
