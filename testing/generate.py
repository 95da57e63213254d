"""python -m testing generate: the matrix generator, and a check of its singular values."""

import numpy as np

from blasx._types import TYPES

from . import errors, matrices
from .options import Parser, checked, letters, parse_sizes


def parser():
    p = Parser(prog="testing generate", description=__doc__, allow_abbrev=False)
    p.add_argument("names", nargs="*", help="generator names; without --check they are printed")
    p.add_argument("--all", action="store_true", help="every name there is")
    p.add_argument("--check", action="store_true", help="svdvals(A) == sigma within 30 n eps")
    p.add_argument("-n", "-N", dest="size", default="20,13", help="m[,n]")
    p.add_argument("-p", dest="precisions", type=letters, default="sdcz")
    p.add_argument("--cond", type=checked(float, 1), default=0.0)
    p.add_argument("--condD", type=checked(float, 1), default=1.0)
    p.add_argument("--seed", type=int, default=0)
    return p


def main(arguments):
    asked = parser().parse_args(arguments)
    names = list(matrices.all_names()) if asked.all else asked.names
    if not names:
        raise ValueError("name a matrix, or --all")
    (m, n, _), *_ = parse_sizes(asked.size)
    lines = [judge(name, letter, m, n, asked) for name in names for letter in asked.precisions]
    failed = sum(status == "failed" for _, status in lines)
    print(f"% {len(lines)} matrices, {failed} failed")
    return min(failed, 255)


def judge(name, letter, m, n, asked):
    """Generate one matrix and print it, or the error of its known singular values."""
    kind = matrices.parse(name)
    if kind.type in ("poev", "heev", "geev", "geevx", "jordan"):
        n = m
    a, sigma = matrices.generate(kind, m, n, TYPES[letter].dtype, np.random.default_rng(asked.seed),
                                 asked.cond or None, asked.condD)
    if not asked.check:
        print(f"% {name}, {letter}, {m} x {n}\n{a}\nsigma = {sigma}")
        return name, ""
    error, status = checked_values(a, sigma, errors.EPS[letter])
    print(f"{letter}  {name:32} {error:>9}  {status}")
    return name, status


def checked_values(a, sigma, eps):
    """|svdvals(A) - sigma| / |sigma| against 30 n eps; '---' where sigma is not known or
    overflows."""
    y, e = errors.unit(a)
    if not np.isfinite(y).all():
        return "overflow", "ok" if not np.isfinite(sigma).all() else "failed"
    if not np.isfinite(sigma).all():
        return "---", "ok"
    values = np.linalg.svd(y, compute_uv=False)
    error = errors.difference(values, errors.shift(sigma, -e))
    return f"{error:.2e}", "ok" if error < 30 * max(a.shape) * eps else "failed"
