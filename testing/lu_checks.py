"""What every LU must satisfy, and the systems solved with one."""

import numpy as np
import scipy.linalg.lapack

from . import errors


def lapack_factors(p, routine, A, *flags):
    """What a solver starts from: LAPACK's own factors, on the CPU."""
    if not len(A):  # SciPy refuses empty matrices
        return A, np.zeros(0, np.int32), 0
    *factors, info = getattr(scipy.linalg.lapack, p.letter + routine)(A, *flags)
    return *factors, info


def factored(p, lu, piv, info, column="|PA-LU|/(N*|A|)"):
    """The factors reproduce A, pivots and multipliers are those of partial pivoting, and info
    is the first exactly zero pivot."""
    if not errors.pivots(piv, p.A.shape[-2]):
        return {column: np.nan, "pivots": False}
    return {column: errors.lu(p.A, lu, piv), "pivots": True,
            "multipliers": errors.multipliers(lu, p.eps),
            "info": bool(np.all(np.asarray(info) == errors.lu_info(p.A, lu)))}


SOLVED = "||B - AX|| / N*||A||*||X||"


def solved(p, x, info=0, A=None):
    """The residual; what info says to be singular must be left as it was."""
    A = p.A if A is None else A
    if A.ndim == 2:
        good = (slice(None),) if np.all(np.asarray(info) == 0) else None
        if good is None:
            return {SOLVED: 0.0, "unsolved": bool(np.array_equal(x, p.b))}
        return {SOLVED: errors.solve(A, x, p.b)}
    good = np.asarray(info) == 0
    return {SOLVED: errors.solve(A[good], x[good], p.b[good]),
            "unsolved": bool(np.array_equal(x[~good], p.b[~good]))}


def estimated(p, rcond, reference, norm, singular):
    """An estimate of the condition is never above the true one, and seldom 10 times below; on a
    scale where 1 is the largest it is LAPACK's to rounding."""
    if singular or not len(p.A):
        return {"rcond": float(rcond) == (0.0 if len(p.A) else 1.0)}
    size = errors.norm1 if norm == "1" else errors.norm_inf
    A = errors.unit(p.A)[0]
    try:
        true = 1 / float(size(A) * size(np.linalg.inv(A)))
    except np.linalg.LinAlgError:
        true = 0.0
    rounding = p.options.tol * p.n * p.eps
    return {"|rcond-rcond_lapack|/N": abs(float(rcond) - float(reference)) / p.n,
            "rcond": bool(true * (1 - rounding) - rounding <= rcond <= 10 * true + rounding)}
