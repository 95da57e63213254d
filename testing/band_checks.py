"""What the testers of band LU share."""

import numpy as np

from . import errors
from .errors import wide
from .storage import band, within


def band_matrix(p):
    """A band matrix and its storage with kl rows of room above, as gbtrf and gbsv want it."""
    p.A = within(p.matrix(p.n, p.n), p.kl, p.ku)
    return band(p.A, p.kl, p.ku, above=p.kl)


def factored(p, lu, piv, info):
    """|A - P L U| / (N |A|), P and L being undone column by column from the last."""
    n, kl, ku = p.n, p.kl, p.ku
    if not np.all((np.arange(n) <= piv) & (piv <= np.minimum(np.arange(n) + kl, n - 1))):
        return {"|A-PLU|/(N*|A|)": np.nan, "pivots": False}
    (A, e), U, lu = errors.unit(p.A), np.zeros((n, n), wide(lu).dtype), wide(lu)
    for d in range(min(kl + ku, n - 1) + 1 if n else 0):
        U += np.diag(errors.shift(lu[kl + ku - d, d:], -e), d)
    for j in reversed(range(n)):
        below = min(kl, n - 1 - j)
        U[j + 1: j + 1 + below] += np.outer(lu[kl + ku + 1: kl + ku + 1 + below, j], U[j])
        U[[j, piv[j]]] = U[[piv[j], j]]
    return {"|A-PLU|/(N*|A|)": errors.ratio(errors.fro(A - U), errors.fro(A)) / max(n, 1),
            "pivots": True, "info": int(info) == errors.first_zero(lu[kl + ku])}
