"""What the testers of vectors share: increments, and errors on the vectors' own scale."""

from . import errors
from .case import elements

ONE_INC = {"inc": ((1, 1), (3, 3))}  # a single vector: BLAS wants incx > 0 there


def two_vectors(p, y_scale):
    """x of the kind asked for and y, each with its own increment; the keywords they need."""
    p.incx, p.incy = p.inc
    p.x, p.y = p.matrix_vector(p.n, p.incx), p.vector(p.n, p.incy, scale=y_scale)
    return {"n": p.n, "incx": p.incx, "incy": p.incy}


def one_vector(p):
    p.incx = p.inc[0]
    p.x = p.matrix_vector(p.n, p.incx)
    return {"n": p.n, "incx": p.incx}


def near_one(p, buffer, inc):
    """The elements of a vector of the matrix's scale, divided by it, in double precision."""
    x = errors.wide(elements(buffer, p.n, inc))
    return errors.shift(x, -p.exponent)


def compared(p, result, before, inc, *terms):
    """Error of a result vector against the sum of its (factor, vector) terms, and its gaps."""
    reference = sum(a * v for a, v in terms)
    size = sum(abs(a) * errors.fro(v) for a, v in terms)
    return {"error": errors.ratio(errors.fro(near_one(p, result, inc) - reference), size),
            "gaps": errors.gaps(result, before, p.n, inc)}


def both(first, second):
    """Two outputs in one column: the worse error, and both verdicts."""
    worse = max(first["error"], second["error"], key=errors.nan_last)
    return {"error": worse, "gaps": first["gaps"] and second["gaps"]}
