"""MAGMA's matrix generator, type[_distribution][_scaling][_dominant], and a few types more: ties,
hilbert, kahan, wilkinson.

`generate("svd_geo_small", m, n, dtype, rng, cond)` returns the matrix and its singular values
(NaN where they are not known). Everything is made in double precision and rounded once.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from blasx._types import finfo

TYPES = ("zero", "ones", "identity", "jordan", "kronecker", "hilbert", "kahan", "wilkinson", "rand",
         "rands", "randn", "ties", "diag", "svd", "poev", "heev", "geev", "geevx")
SAME_TYPE = {"zeros": "zero", "spd": "poev", "syev": "heev"}
DISTRIBUTIONS = ("rand", "rands", "randn", "logrand", "arith", "geo", "cluster0", "cluster1",
                 "rarith", "rgeo", "rcluster0", "rcluster1", "specified")
SCALINGS = ("", "ufl", "ofl", "small", "large")
WITH_SPECTRUM = ("diag", "svd", "poev", "heev", "geev", "geevx")
HERMITIAN = ("zero", "ones", "identity", "kronecker", "diag", "poev", "heev")


@dataclass(frozen=True)
class Kind:
    """A parsed generator name."""

    type: str
    distribution: str = "rand"
    scaling: str = ""
    dominant: bool = False


def parse(name):
    first, *rest = name.split("_")
    kind = {"type": SAME_TYPE.get(first, first)}
    for word in rest:
        if word in DISTRIBUTIONS:
            kind["distribution"] = word
        elif word in SCALINGS:
            kind["scaling"] = word
        elif word == "dominant":
            kind["dominant"] = True
        else:
            raise ValueError(f"matrix {name!r}: unknown word {word!r}")
    if kind["type"] not in TYPES:
        raise ValueError(f"matrix {name!r}: unknown type {first!r}")
    return Kind(**kind)


def all_names():
    """Every type with every distribution that it uses, every scaling, dominant or not."""
    for t in TYPES:
        distributions = DISTRIBUTIONS[:-1] if t in WITH_SPECTRUM else ("",)
        for words in product(distributions, SCALINGS, ("", "dominant")):
            yield "_".join([t, *filter(None, words)])


def scale(kind, dtype):
    """What --matrix ..._ufl and its like multiply a matrix by; bytes have no such."""
    tiny = 1.0 if dtype.kind == "i" else float(finfo(dtype).tiny)
    return {"": 1.0, "ufl": tiny, "ofl": 1 / tiny,
            "small": tiny**0.5, "large": tiny**-0.5}[kind.scaling]


def random(rng, shape, is_complex, distribution="rand"):
    """uniform(0, 1), uniform(-1, 1) or normal entries, or -1, 0, 1 (ties); both parts of them if
    complex."""
    draw = {"rand": lambda: rng.random(shape), "rands": lambda: rng.uniform(-1, 1, shape),
            "randn": lambda: rng.standard_normal(shape),
            "ties": lambda: rng.integers(-1, 2, shape).astype(float)}[distribution]
    return draw() + 1j * draw() if is_complex else draw()


def spectrum(distribution, n, cond, rng, specified=None):
    """The n singular values that a distribution names, not sorted."""
    if n == 0:
        return np.zeros(0)
    if distribution == "specified":
        return np.asarray(specified, float)[:n]
    if distribution in ("rand", "rands", "randn"):
        return random(rng, n, False, distribution)
    if distribution[1:] in ("arith", "geo", "cluster0", "cluster1"):
        return spectrum(distribution[1:], n, cond, rng)[::-1].copy()
    t = np.arange(n) / max(n - 1, 1)
    sigma = np.ones(n)
    if distribution == "logrand":
        sigma = np.exp(-np.log(cond) * rng.random(n))
        sigma[:1], sigma[1:2] = 1, 1 / cond
    elif distribution == "arith":
        sigma = 1 - t * (1 - 1 / cond)
    elif distribution == "geo":
        sigma = cond ** -t
    elif distribution == "cluster0":
        sigma[1:] = 1 / cond
    elif distribution == "cluster1":
        sigma[n - 1 if n > 1 else n:] = 1 / cond
    return sigma


def haar(rng, m, n, is_complex):
    """m x n with orthonormal columns, Haar distributed: QR of a normal matrix, phases fixed."""
    q, r = np.linalg.qr(random(rng, (m, n), is_complex, "randn"))
    d = np.diagonal(r)
    return q * (d / np.where(d == 0, 1, abs(d)))


def with_spectrum(kind, m, n, is_complex, rng, sigma, condD):
    """diag, svd, poev, heev, geev, geevx out of the values sigma."""
    k = len(sigma)
    if kind.type == "diag":
        a = np.zeros((m, n))
        a[range(k), range(k)] = sigma
        return a
    u = haar(rng, m, k, is_complex)
    if kind.type == "svd":
        return (u * sigma) @ haar(rng, n, k, is_complex).conj().T
    if m != n:
        raise ValueError(f"matrix {kind.type}: {m} x {n} is not square")
    if kind.type == "geev":  # Schur form; the eigenvalues are sigma
        above = np.triu(random(rng, (n, n), is_complex, "rands"), 1) / max(n, 1)
        return u @ (np.diag(sigma) + above) @ u.conj().T
    if kind.type == "geevx":  # eigenvectors of condition condD
        d = spectrum("geo", n, condD, rng)
        x = (u * d) @ (v := haar(rng, n, n, is_complex)).conj().T
        return (x * sigma) @ (v / d) @ u.conj().T
    a = (u * sigma) @ u.conj().T
    return (a + a.conj().T) / 2


def constant(kind, m, n, cond):
    if kind.type == "ones":
        return np.ones((m, n))
    if kind.type == "kronecker":
        return np.ones((m, n)) + m / cond * np.eye(m, n)
    i, j = np.ogrid[:m, :n]
    if kind.type == "hilbert":
        return 1 / (i + j + 1.0)
    if kind.type == "kahan":  # rows s^i (1, -c, -c ...): nearly singular, which no diagonal shows
        return np.sin(1.2) ** i * (np.eye(m, n) - np.cos(1.2) * (j > i))
    if kind.type == "wilkinson":  # W+: eigenvalues in pairs that agree to many digits
        return abs(i - (n - 1) / 2) * (i == j) + (abs(i - j) == 1)
    a = np.zeros((m, n)) if kind.type == "zero" else np.eye(m, n)
    return a + np.eye(m, n, -1) if kind.type == "jordan" else a


def unit_columns(a, sigma):
    """Davies and Higham: rotate columns until each has norm 1; the singular values stay."""
    n = a.shape[1]
    a = a * np.sqrt(n / (sigma @ sigma))
    norms = np.linalg.norm(a, axis=0) ** 2
    for _ in range(n - 1):
        i, j = int(np.argmin(norms)), int(np.argmax(norms))
        if not norms[i] < 1 < norms[j]:
            break
        dot = a[:, i].conj() @ a[:, j]
        phase = dot / abs(dot) if dot != 0 else 1
        aii, aij, ajj = norms[i], abs(dot), norms[j]
        t = (aij + np.sqrt(max(aij**2 - (aii - 1) * (ajj - 1), 0))) / (ajj - 1)
        c = 1 / np.hypot(1, t)
        s = c * t
        left, right = a[:, i].copy(), a[:, j] / phase
        a[:, i], a[:, j] = c * left - s * right, s * left + c * right
        norms[i], norms[j] = 1, aii + ajj - 1
    return a


def badly_scaled(kind, a, sigma, condD, rng):
    """A D (D A D where A is Hermitian) with D log-uniform in (1/condD, 1)."""
    d = np.exp(-np.log(condD) * rng.random(a.shape[1]))
    if kind.type in HERMITIAN:
        return a * d * d[:, None]
    return (unit_columns(a, sigma) if a.shape[0] >= a.shape[1] and sigma.any() else a) * d


def make_dominant(a):
    """A_ii = the larger of its row's and its column's absolute sums, the old A_ii included."""
    k = min(a.shape)
    rows, columns = abs(a).sum(axis=1)[:k], abs(a).sum(axis=0)[:k]
    a[range(k), range(k)] = np.maximum(rows, columns)


def known_values(kind, m, n, cond):
    """The singular values of the types that are given by a formula."""
    k = min(m, n)
    if kind.type in ("zero", "identity"):
        return np.full(k, float(kind.type == "identity"))
    if kind.type == "ones":
        return np.eye(1, k)[0] * np.sqrt(m * n)
    return np.full(k, np.nan)


def generate(name, m, n, dtype, rng, cond=None, condD=1.0, sigma=None):
    """The m x n matrix `name` and its singular values, largest first (NaN: not known).

    cond is the ratio of the largest to the smallest singular value, where the distribution uses
    it (default sqrt(1/eps)); `sigma` gives those of the distribution _specified.
    """
    kind, dtype = name if isinstance(name, Kind) else parse(name), np.dtype(dtype)
    is_complex = dtype.kind == "c"
    cond = cond or float(finfo(dtype).eps / 2) ** -0.5
    if kind.type in WITH_SPECTRUM:
        sigma = spectrum(kind.distribution, min(m, n), cond, rng, sigma)
        if kind.type == "heev":
            sigma = sigma * rng.choice((-1.0, 1.0), len(sigma))
        if kind.type == "poev":
            sigma = abs(sigma)
        a = with_spectrum(kind, m, n, is_complex, rng, sigma, condD)
        sigma = abs(sigma)
        if kind.type in ("geev", "geevx"):
            sigma = np.full(n, np.nan)
        elif condD != 1:
            a, sigma = badly_scaled(kind, a, sigma, condD, rng), np.full(len(sigma), np.nan)
    elif kind.type in ("rand", "rands", "randn", "ties"):
        a, sigma = random(rng, (m, n), is_complex, kind.type), np.full(min(m, n), np.nan)
    else:
        a, sigma = constant(kind, m, n, cond), known_values(kind, m, n, cond)
    if kind.dominant:
        a, sigma = np.array(a), np.full(min(m, n), np.nan)
        make_dominant(a)
    factor = scale(kind, dtype)
    with np.errstate(over="ignore", under="ignore"):
        return (a * factor).astype(dtype), np.sort(sigma * factor)[::-1]
