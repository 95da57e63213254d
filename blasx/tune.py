"""python -m blasx.tune [routine ...] [--quick]: finds what is fastest on this GPU.

The constants of every kernel (all kernels, or those of the routines named: getrf, gemm_batched, or
one kernel's: getrf_block) are searched in the space that blasx/_spaces.py states. Every candidate
is compiled, checked for a right answer, and timed through the public routine: cold, in turn with
the others, by the median. The best row for an order goes into the user's cache folder as soon as it
is found, and from then on wins over the row that ships; so a run may be stopped, and several may
run at once. --show says what would run for given orders, and why.
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from statistics import median

import numpy as np

import blasx

from . import _clock, _errors, _ladder, _sources, _spaces, _tuned
from ._progress import Progress
from ._types import TYPES

SAMPLES = 7
BYTES = 2**27   # of a problem's operands
FEW = 8         # candidates of a stage where it has to be quick
FAR = 1.4       # candidates so much slower than the best are sampled once
QUICK_TO = 128  # the largest order then
# Routines of one matrix, and of blasx.nn
ONE = ("gemm", "igemm", "split", "crt", "getrf_large", "potrf_large", "geqrf_large", "gels_tall",
       "mixed", "mixed_rbt", "gesdd", "trsm_large", "getrf_hybrid", "potrf_hybrid",
       "geqrf_hybrid", "host", "geqp3", "sysv", *_ladder.RUNGS)
LAYERS = ("norm softmax cross_entropy activation dropout adam lstm attention convolution embedding "
          "add").split()
# Of a row, beside its order: they are kept.
RULES = ("side", "depth", "block", "panel", "ahead", "cusolver", "width", "upto", "tall",
         "chunk", "fp16", "tf32", "pace", "joined", "strip", "turns", "even", "lead", "begins",
         "between", "often", "pairs", "triangles", "fewer", "rest", "rows",
         "part", "every", "apart", "pays", "halved", "unless", "only", "gram", "values", "whole",
         "least", "narrow", "numbers", "vectors", "joins")
LATER = {  # kernels that serve a routine past the rows of its own, the first of each that has a row
    "gesv": (("getrf_small", "getrf_shared", "getrf_block"),
             ("getrs_small", "getrs_lines", "getrs_block")),
    "posv": (("potrf_panels", "potrf_columns", "potrf_small", "potrf_block"),
             ("potrs_lines", "potrs_warp", "potrs_block", "trsm_lines", "trsm_block")),
    "potrs": (("trsm_lines", "trsm_block"),),
    "ormqr_one": (("ormqr_small", "ormqr_strips", "ormqr_block"),)}
FIRST = {  # kernels of others that serve it, too
    "geqrf": ("geqrf_shared",), "symm": ("symm_lines", "gemm_warp"),
    "syrk": ("syrk_lines", "syrk_split", "gemm_warp"),
    "getrf_nopiv": ("getrf_small", "getrf_shared")}
WITH = {"symm": "symm_block"}  # where this has a row FIRST's serve, too
FACTORING = "geqrf_small", "geqrf_shared", "geqrf_left", "geqrf_block"
BEFORE = {"gels_warp": FACTORING,
          **dict.fromkeys(("orgqr_strips", "ormqr_strips"), ("larft_panels",))}
AFTER = {  # what follows a kernel, the first of each that has a row; before it alike
    "laswp_identity": (("trsm_small", "trsm_block"),) * 2,
    "other_triangle": (("gemm_thread", "gemm_warp", "gemm_split", "gemm_block"),),
    "lascl_batched": (FACTORING, ("ormqr_warp", "ormqr_small", "ormqr_strips", "ormqr_block"),
                      ("gels_solve",)),
    **dict.fromkeys(("sytrd_rows", "sytrd_block", "sytrd_cluster"),
                    (("stedc_leaf", "steqr_lane"), ("stedc_merge", "lasr_rows")))}


# -- what is timed


@dataclass
class Problem:
    """A routine on random operands; `residual(operands, answer)` is small if the answer is right
    (_errors.py)."""

    operands: tuple
    run: callable
    residual: callable
    wall: callable = None  # waits for answers that the host has a part in: timed by its clock

    def error(self, answer):
        """The worst of some members; inf if any member has a number that is not finite."""
        if not all(bool(abs(x).max() < float("inf")) for x in answer):
            return float("inf")
        operands = self.operands
        if operands and operands[0].ndim == 3:
            batch, *shape = operands[0].shape
            few = max(4, min(2000, 2**22 // (shape[0] * shape[1])))
            some = slice(None, None, max(1, batch // few))
            operands, answer = ([x[some] for x in y] for y in (operands, answer))
        try:
            return self.residual(operands, answer)
        except IndexError:  # a pivot that is no row
            return float("inf")

    @property
    def nbytes(self):
        return sum(x.nbytes for x in self.operands) or 2**40  # the host's are in no cache


def problem(routine, letter, n, batch, xp):
    """The problem of order n by which the kernels of a routine are timed."""
    t, rng = TYPES[letter], xp.random.default_rng(n)

    def random(*shape):
        parts = [rng.standard_normal(shape, dtype=TYPES[t.sums].real)
                 for _ in range(1 + t.is_complex)]
        x = parts[0] + t.dtype.type(1j) * parts[1] if t.is_complex else parts[0]
        return x.astype(t.dtype, copy=False)

    def adjoint(x):
        return x.conj().swapaxes(-1, -2)

    if routine in LAYERS:
        return layer_problem(routine, random(batch * n, n), random(batch * n, n), xp)
    a, one = random(batch, n, n), xp.eye(n, dtype=t.dtype)
    b, square = random(batch, n, 1), random(batch, n, n)
    how, wall = {}, None
    if xp is not np and (routine.endswith("_hybrid") or routine == "host"):
        how = {"device": "gpu"} if routine == "host" else {"mode": "hybrid"}

        def wall(answers):
            xp.cuda.Device().synchronize()
    if routine in ("potrf", "potrf_large", "potrf_hybrid", "potrs", "posv", "potri"):
        a = a @ adjoint(a) / n + one
    if routine in ("getrf_nopiv", "trsm", "trsv", "trmm"):
        a = a / n + one
    triangle = xp.tril(a)
    solution, matrix_product = _errors.solution, _errors.product
    match routine:
        case "getrf":
            return Problem((a,), blasx.getrf_batched, lambda of, x: _errors.lu(*of, *x[:2]))
        case "getrf_large" | "getrf_hybrid":
            getrf = getattr(blasx, letter + "getrf")
            return Problem((a[0],), lambda a: getrf(a, **how)[:2],
                           lambda of, x: _errors.lu(*of, *x), wall)
        case "geqrf_large" | "geqrf_hybrid":
            geqrf = getattr(blasx, letter + "geqrf")
            return Problem((a[0],), lambda a: geqrf(a, **how)[:1],
                           lambda of, x: _errors.triangular_of_qr(*of, *x), wall)
        case "geqp3":
            geqp3 = getattr(blasx, letter + "geqp3")
            return Problem((a[0],), lambda a: geqp3(a)[:2], lambda of, x:
                           _errors.triangular_of_qr(of[0][:, x[1].astype(int) - 1], x[0]))
        case "sysv":
            sysv, a = getattr(blasx, letter + "sysv"), a[0] + a[0].T
            return Problem((a, b[0]), lambda a, b: (sysv(a, b, lower=1)[2],),
                           lambda of, x: solution(*of, *x))
        case "host":
            gemm, (a, b) = getattr(blasx, letter + "gemm"), (
                x if xp is np else x.get() for x in (a[0], square[0]))
            c = np.zeros((n, n), t.dtype, order="F")
            return Problem((), lambda: (gemm(1, a, b, 0, c, overwrite_c=1, **how),),
                           lambda of, x: matrix_product(a, b, *x, a), wall)
        case "getrf_nopiv":
            return Problem((a,), blasx.getrf_nopiv_batched, lambda of, x: _errors.lu(
                *of, x[0], xp.broadcast_to(xp.arange(n), x[0].shape[:2])))
        case "getrs":
            lu, piv, _ = blasx.getrf_batched(a)
            return Problem((lu, piv, b, a), lambda lu, piv, b, a: blasx.getrs_batched(lu, piv, b),
                           lambda of, x: solution(of[3], of[2], x[0]))
        case "getri":
            lu, piv, _ = blasx.getrf_batched(a)
            return Problem((lu, piv, a), lambda lu, piv, a: blasx.getri_batched(lu, piv),
                           lambda of, x: solution(of[2], one, x[0]))
        case "gesv":
            return Problem((a, b), blasx.gesv_batched, lambda of, x: solution(*of, x[2]))
        case "gesv_vbatched":
            orders = np.random.default_rng(n).integers(1, n + 1, 2 * batch)
            shapes = [np.stack((orders, x), 1) for x in (orders, np.ones_like(orders))]

            def systems(*data):
                return [blasx.Ragged(x, of) for x, of in zip(data, shapes)]

            def residual(of, answer):
                (a, b), (_, x) = systems(*of), systems(of[0], *answer)
                return max(solution(a[i][None], b[i][None], x[i][None])
                           for i in range(0, len(a), 16))
            return Problem(tuple(random(int(x.prod(1).sum())) for x in shapes), lambda a, b: (
                blasx.gesv_vbatched(*systems(a, b))[2].data,), residual)
        case "potrf":
            return Problem((a,), lambda a: blasx.potrf_batched(a, 1),
                           lambda of, x: _errors.cholesky(*of, x[0]))
        case "potrs":
            c, _ = blasx.potrf_batched(a, 1)
            return Problem((c, b, a), lambda c, b, a: blasx.potrs_batched(c, b, 1),
                           lambda of, x: solution(of[2], of[1], x[0]))
        case "posv":
            return Problem((a, b), lambda a, b: blasx.posv_batched(a, b, 1),
                           lambda of, x: solution(*of, x[1]))
        case "potri":
            c, _ = blasx.potrf_batched(a, 1)
            return Problem((c, a), lambda c, a: blasx.potri_batched(c, 1), lambda of, x: solution(
                of[1], one, xp.tril(x[0]) + adjoint(xp.tril(x[0], -1))))
        case "geqrf":
            return Problem((a,), blasx.geqrf_batched,
                           lambda of, x: _errors.triangular_of_qr(*of, x[0]))
        case "orgqr":
            qr, tau, _ = blasx.geqrf_batched(a)
            return Problem((qr, tau), blasx.orgqr_batched,
                           lambda of, x: _errors.quotient(adjoint(x[0]) @ x[0] - one, like=x[0]))
        case "ormqr" | "ormqr_one":
            qr, tau, _ = blasx.geqrf_batched(a)
            q, _ = blasx.orgqr_batched(qr, tau)
            c = square if routine == "ormqr" else b
            return Problem((qr, tau, c, q), lambda qr, tau, c, q: blasx.ormqr_batched(
                "L", "N", qr, tau, c), lambda of, x: matrix_product(of[3], of[2], x[0], a))
        case "gels":
            a = a if n <= 16 or n > 64 else a[:, :, :16 if n <= 32 else 32]  # gels_small's
            return Problem((a, b), blasx.gels_batched,
                           lambda of, x: _errors.least_squares(*of, x[1]))
        case "gesvd":
            return Problem((a,), lambda a: blasx.gesvd_batched(a, 1, 0), lambda of, x:
                           _errors.singular(*of, x[0], x[1][:, None], x[2]))
        case "gesvd_values":
            return Problem((a,), lambda a: blasx.gesvd_batched(a, 0), lambda of, x: _errors.near(
                x[1][:4], xp.linalg.svd(_errors.wide(of[0][:4]), compute_uv=False), t.dtype, n))
        case "syevd":
            return Problem((a + adjoint(a),), blasx.syevd_batched,
                           lambda of, x: _errors.eigen(*of, x[0][:, None], x[1]))
        case "trsm":
            return Problem((triangle, square), lambda a, b: (blasx.trsm_batched(1, a, b, 0, 1),),
                           lambda of, x: solution(*of, *x))
        case "trsv":
            return Problem((triangle, b), lambda a, b: (
                blasx.trsv_batched(a, b[:, :, 0], 1)[..., None],),
                lambda of, x: solution(*of, *x))
        case "trmm":
            return Problem((triangle, square), lambda a, b: (blasx.trmm_batched(1, a, b, 0, 1),),
                           lambda of, x: matrix_product(*of, *x, a))
        case "gemv":
            return Problem((a, b), lambda a, x: (blasx.gemv_batched(1, a, x[:, :, 0])[..., None],),
                           lambda of, x: matrix_product(*of, *x, a))
        case "gemm_batched":
            return Problem((a, square), lambda a, b: (blasx.gemm_batched(1, a, b),),
                           lambda of, x: matrix_product(*of, *x, a))
        case "symm":
            whole = triangle + xp.tril(a, -1).swapaxes(1, 2)
            return Problem((triangle, square, whole), lambda a, b, _: (
                blasx.symm_batched(1, a, b, lower=1),),
                lambda of, x: matrix_product(of[2], of[1], x[0], a))
        case "syrk":
            return Problem((a,), lambda a: (blasx.syrk_batched(1, a, lower=1),),
                           lambda of, x: matrix_product(
                of[0], of[0].swapaxes(1, 2), x[0] + xp.tril(x[0], -1).swapaxes(1, 2), a))
        case "gemm" | "split":
            gemm = getattr(blasx, letter + "gemm")
            return Problem((a[0], square[0]), lambda a, b: (gemm(1, a, b),),
                           lambda of, x: matrix_product(*of, *x, a[0]))
        case "igemm":
            return Problem(tuple((20 * x[0].real).astype("i1") for x in (a, square)),
                           lambda a, b: (blasx.igemm(a, b, scale=1.0),),
                           lambda of, x: 100 * float(abs(
                               of[0].astype("f8") @ of[1].astype("f8") - x[0]).max()))
        case "mixed" | "mixed_rbt":
            real = blasx.dsgesv_rbt if routine == "mixed_rbt" else blasx.dsgesv
            double, solve = ("z", blasx.zcgesv) if t.is_complex else ("d", real)
            a = (a[0] / n**0.5 + 2 * one).astype(TYPES[double].dtype)
            return Problem((a, b[0].astype(a.dtype)), lambda a, b: (solve(a, b)[0],),
                           lambda of, x: solution(*of, *x))
        case "trsm_large":
            trsm, t = getattr(blasx, letter + "trsm"), xp.tril(a[0] / n + one)
            return Problem((t, square[0]), lambda t, b: (trsm(1, t, b, lower=1),),
                           lambda of, x: solution(*of, *x))
        case "gesdd":
            gesdd = getattr(blasx, letter + "gesdd")
            return Problem((a[0],), lambda a: gesdd(a)[:3],
                           lambda of, x: _errors.singular(*of, *x))
        case "gels_tall":
            gels, many = getattr(blasx, letter + "gels"), 200
            a, b = (xp.concatenate([x[0]] * many) for x in (a, b))
            a[n:] *= xp.linspace(0.5, 1, len(a) - n)[:, None].astype(t.real)
            return Problem((a, b), lambda a, b: gels(a, b, overwrite_a=1)[:1],
                           lambda of, r: _errors.triangular_of_qr(of[0], *r))
        case "crt":
            gemm = getattr(blasx, letter + "gemm")
            return Problem((a[0], square[0]), lambda a, b: (gemm(1, a, b, variant="crt"),),
                           lambda of, x: matrix_product(*of, *x, a[0]))
        case "potrf_large" | "potrf_hybrid":
            potrf = getattr(blasx, letter + "potrf")
            return Problem((a[0],), lambda a: potrf(a, 1, **how)[:1],
                           lambda of, x: _errors.cholesky(*of, *x), wall)
        case "gemm_naive" | "gemm_tiled":
            return Problem((a[0], square[0]), lambda a, b: (
                _ladder.multiply(routine, 1, a, b, 0, xp.empty_like(a)),),
                lambda of, x: matrix_product(*of, *x, a[0]))
    raise ValueError(f"no routine {routine} is tuned")


def layer_problem(routine, x, dy, xp):
    """A layer forward and backward over rows; the step of an optimiser."""
    from . import nn
    from .nn._arrays import added

    def run(x, dy):
        n, model = x.shape[1], nn.Layer()
        match routine:
            case "norm":
                layer = nn.LayerNorm(n, dtype=x.dtype).to(xp)
            case "cross_entropy":
                layer = nn.CrossEntropy()
                return layer.forward(x, xp.arange(len(x)) % n).reshape(1), layer.backward()
            case "lstm":
                layer = nn.LSTM(n, n, dtype=x.dtype, rng=0).to(xp)
                x, dy = (a[:len(a) // 4 * 4].reshape(-1, len(a) // 4, n).swapaxes(0, 1)
                         for a in (x, dy))
            case "attention":
                rows = min(len(x), 2048)  # more than those for few lines serve
                x, dy = (a[:min(len(a) // rows, 64) * rows].reshape(-1, rows, n) for a in (x, dy))
                layer = nn.DotProductAttention(fused=True)
                return layer.forward(x, dy, x), *layer.backward(dy)
            case "convolution":
                high = min(len(x), 14)
                wide = min(len(x) // high, 14)
                images = min(len(x) // (high * wide), 64)
                x, dy = (a[:images * high * wide].reshape(images, n, high, wide)
                         for a in (x, dy))
                layer = nn.Conv2d(n, n, 3, padding=1, dtype=x.dtype, rng=0).to(xp)
                found = layer.forward(x), layer.backward(dy)
                return *found, layer.weight.grad, layer.bias.grad
            case "embedding":
                layer = nn.Embedding(64, n, dtype=x.dtype, rng=0).to(xp)
                layer.forward(xp.arange(len(dy)) * 7919 % 64)
                layer.backward(dy)
                return (layer.weight.grad,)
            case "add":
                return (added(x, dy),)
            case "adam":
                model.w = nn.Parameter(x.copy())
                model.w.add(dy)
                nn.Adam(model, 0.1).step()
                return (model.w.value,)
            case _:
                layer = {"softmax": nn.Softmax, "activation": nn.GELU,
                         "dropout": lambda: nn.Dropout(0.5)}[routine]()
        return layer.forward(x), layer.backward(dy)

    def residual(of, found):
        wanted = run(*(a.astype(xp.float64) for a in of))
        return max(_errors.near(a, b, x.dtype, x.shape[1]) for a, b in zip(found, wanted))

    return Problem((x, dy), run, residual)


class Side:
    """A Problem as _clock.py takes it."""

    overwrites = ()

    def __init__(self, problem):
        self.problem, self.run, self.wall = problem, problem.run, problem.wall

    def operands(self):
        return tuple(x.copy() for x in self.problem.operands)


def batch_of(routine, letter, n, multiprocessors):
    """Members: BYTES of them, but one for each multiprocessor."""
    room = BYTES // 8 if routine.startswith("gesvd") else BYTES
    return max(multiprocessors, min(100_000, room // (n * n * TYPES[letter].dtype.itemsize)))


# -- the search


def search(kernel, letter, n, gpu, measure, quick=False):
    """[(ms, constants), ...] best first, of one kernel on matrices of order n, what was used before
    among them; constants are None for the routine without this kernel. `measure(candidates,
    samples)` gives the ms of each, or None where it is wrong or fails."""
    space = _spaces.SPACES[kernel]
    found = _tuned.row(kernel, letter, n, gpu)
    best = [searched(found)] if found else []
    if not best or not _spaces.fits(kernel, letter, n, best[0], gpu):
        best = [_spaces.nearest(kernel, letter, n, best[0] if best else {}, gpu)]
    if best == [None]:
        raise RuntimeError(f"nothing of {kernel} fits this GPU at order {n}")
    before, keep, samples = best, *((1, 3) if quick else (2, SAMPLES))
    for stage in space.stages(letter, n):
        choice = {k for change in stage for k in change} & _spaces.OPTIONAL
        new = [{k: x for k, x in v.items() if k not in choice} | change
               for v in best for change in stage]
        new = [v for i, v in enumerate(new) if v not in new[:i] + best
               and _spaces.fits(kernel, letter, n, v, gpu)]
        if quick:
            new = sorted(new, key=lambda v: -sum(best[0].get(k) == x for k, x in v.items()))[:FEW]
        best = [v for _, v in ranked(best + new, measure, samples)][:keep + 2]
        last, best = best, best[:keep]
    last += [v for v in before if v not in last]
    return ranked(last + [None] * space.may_leave(n), measure, samples)


def searched(row):
    """What a search decides of a row: the constants, and what the launch is told beside them."""
    return {k: v for k, v in row.items() if k.isupper() or k in _spaces.OPTIONAL}


def ranked(candidates, measure, samples):
    times = zip(measure(candidates, samples), range(len(candidates)))
    right = sorted((ms, i) for ms, i in times if ms is not None)
    if not right:
        raise RuntimeError("no candidate gives a right answer")
    return [(ms, candidates[i]) for ms, i in right]


def as_row(kernel, to, timed):
    """What the table says of the outcome of a search."""
    (ms, best), *rest = timed
    own = next(v for _, v in timed if v) if _spaces.SPACES[kernel].vendor else {}
    row = {"to": to} | (best if best else own | {"vendor": 1} if own else {})
    row["ms"] = round(ms, 5)
    return row | ({"runner_up_ms": round(rest[0][0], 5)} if rest else {})


def alone(kernel):
    """The kernels that a routine asks before this one, switched off; not those that it precedes."""
    names = list(_spaces.SPACES)
    routine = _spaces.SPACES[kernel].routine
    before = [k for k in names[:names.index(kernel)]
              if _spaces.SPACES[k].routine == routine and kernel not in BEFORE.get(k, ())]
    first = FIRST.get(routine, ())
    first = first[:first.index(kernel)] if kernel in first else first
    others = [k for k in first if _spaces.SPACES[k].routine != routine]
    return {k: None for k in before + others if _spaces.SPACES[k].optional}


def measured(kernel, letter, problem, sample, prepare, say):
    """The `measure` of a search: `prepare(candidates)` compiles them, `sample()` times the routine
    once."""
    def using(values):
        return _tuned.using(letter, **alone(kernel), **{kernel: values})

    def measure(candidates, samples):
        prepare([v for v in candidates if v is not None])
        times = [[] for _ in candidates]

        def attempt(i, wrong=float("inf")):
            values = candidates[i]
            try:
                with using(values):
                    error = wrong = problem.error(problem.run(*problem.operands))
                    if error < _errors.PASS:
                        times[i].append(sample())
            except (RuntimeError, MemoryError) as failure:
                lines = str(failure).strip().splitlines()  # a compiler's may begin with warnings
                wrong = next((x for x in lines if "error" in x), lines[0])
            if not times[i]:
                say(f"{kernel} {letter} {values}: {wrong}, left out")

        def again(i):
            with using(candidates[i]):
                problem.run(*problem.operands)  # looks up what the sample uses
                times[i].append(sample())

        for i in range(len(candidates)):
            attempt(i)
        fastest = min((t[0] for t in times if t), default=0)
        near = [i for i, t in enumerate(times) if t and t[0] <= FAR * fastest]
        for _ in range(samples - 1):
            for i in near:
                again(i)
        return [median(t) if t else None for t in times]

    return measure


def jobs(kernels, letters, orders, gpu, quick):
    """[(kernel, letter, to, n), ...]: the rows that are tuned, each at an order n."""
    found = []
    for kernel, letter in product(kernels, letters):
        space = _spaces.SPACES[kernel]
        if letter not in space.letters:
            continue
        far = space.largest if space.largest > _spaces.MOST else 512
        present = {r["to"]: min(r["to"], far if r["to"] > _spaces.MOST else space.largest)
                   for r, _ in _tuned.rows(kernel, letter, gpu)
                   if r["to"] and (r["to"] <= space.largest or _tuned.capitals(r))}
        wanted = {n: n for n in orders} if orders else present | {n: n for n in space.orders}
        found += [(kernel, letter, to, n) for to, n in sorted(wanted.items())
                  if space.smallest <= n <= (QUICK_TO if quick and not orders else space.largest)
                  and _spaces.nearest(kernel, letter, n, {}, gpu)]
    return found


def tune(todo, gpu, machine, keep, progress, quick=False):
    """Tune the rows of `jobs`. `machine(kernel, letter, n)` is a context whose value is the measure
    of a search; `keep(kernel, letter, row)` writes."""
    for done, (kernel, letter, to, n) in enumerate(todo):
        progress(done, len(todo), f"{kernel} {letter} {n}")
        try:
            with machine(kernel, letter, n) as measure:
                timed = search(kernel, letter, n, gpu, measure, quick)
        except (RuntimeError, MemoryError) as failure:
            progress.say(f"{kernel} {letter} {n}: {str(failure).strip()}")
            continue
        found, row = _tuned.row(kernel, letter, n, gpu), as_row(kernel, to, timed)
        row |= {k: found[k] for k in RULES if found and k in found}
        before = [ms for ms, v in timed if found and v == searched(found)]
        keep(kernel, letter, row)
        progress.say(f"{kernel} {letter} " + " ".join(f"{k}={v}" for k, v in row.items())
                     + (f", before {before[0]:.5f} ms" if before else ""))
    progress(len(todo), len(todo), "done")


# -- on this GPU


def compile_one(job):
    """In a process of its own: fills the disk cache."""
    from ._kernel import compiled
    kernel, letter, values, arch = job
    try:
        compiled(_sources.program(kernel, TYPES[letter].cpp, values), arch)
    except RuntimeError:
        pass  # compiled again, it fails again, and is left out


def on_gpu(cupy, gpu, pool, say):
    """The `machine` of `tune`."""
    from ._kernel import architecture
    device = cupy.cuda.Device()
    arch, multiprocessors = architecture(device.id), device.attributes["MultiProcessorCount"]

    @contextmanager
    def machine(kernel, letter, n):
        routine = _spaces.SPACES[kernel].routine
        batch = 1 if routine in ONE else batch_of(routine, letter, n, multiprocessors)
        def prepare(candidates):
            if _spaces.SPACES[kernel].compiled:
                list(pool.map(compile_one, [(kernel, letter, _tuned.capitals(v), arch)
                                            for v in candidates]))

        try:
            of = problem(routine, letter, n, batch, cupy)
            sample = _clock.gpu_clock(of.nbytes)(Side(of))
            yield measured(kernel, letter, of, sample, prepare, say)
        finally:
            of = sample = None
            cupy.get_default_memory_pool().free_all_blocks()

    return machine


# -- the command


def orders_of(text):
    """Orders as they are written: 1-16,32,33."""
    orders = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        low, high = int(low), int(high or low)
        if not 0 < low <= high:
            raise argparse.ArgumentTypeError(f"{part}: orders go up, from 1 on")
        orders |= set(range(low, high + 1))
    return sorted(orders)


def show(routines, letters, orders, gpu):
    """What would run for matrices of these orders, and why."""
    for routine, letter, n in product(routines, letters, orders):
        line = f"{routine} {letter} n={n}: "
        spaces = {k: s for k, s in _spaces.SPACES.items() if s.routine == routine}
        if not any(letter in s.letters for s in spaces.values()):
            yield line + "no kernel of ours is for this type"
            continue
        served = routine not in WITH or _tuned.why(WITH[routine], letter, n, gpu)[0]
        first = FIRST.get(routine, ()) if served else ()
        kernels = [k for k in (*first, *spaces) if letter in _spaces.SPACES[k].letters]
        own = [(k, *_tuned.why(k, letter, n, gpu)) for k in kernels
               if _spaces.SPACES[k].smallest <= n]
        used = next(([x] for x in own if x[1] and not x[1].get("vendor")), None)
        then = AFTER.get(used[0][0], ()) if used else ()
        if not used:
            used, then = [], LATER.get(routine, ())

        def first_of(names):
            return next((x for k in names if (x := (k, *_tuned.why(k, letter, n, gpu)))[1]), None)
        later = [first_of(names) for names in then]
        used = used + later if used or later and all(later) else None
        for i, x in list(enumerate(used or ()))[::-1]:
            if x and x[0] in BEFORE:
                k, row, origin = first_of(BEFORE[x[0]])
                same = {"NB": x[1]["NB"]} if k == "larft_panels" else {}
                used.insert(i, (k, row | same, origin))
        if not used and routine.startswith("gesvd") and n <= _spaces.MOST:
            yield line + "the polar factor, by potrf, trsm and gemm of batches, then syevd"
            continue
        if not used:
            reasons = {f"{k}: {'slower' if row else origin}" for k, row, origin in own}
            yield line + f"NVIDIA's library or one matrix at a time ({'; '.join(sorted(reasons))})"
            continue
        yield line + ", then ".join(described(*x) + for_few(x[0], letter, x[1], gpu) for x in used)


def for_few(kernel, letter, row, gpu):
    """Which rows to the same order serve few columns instead."""
    few = [str(r["lines"]) for r, _ in _tuned.rows(kernel, letter, gpu)
           if r["to"] == row["to"] and "lines" in r]
    own = f"; rows of their own for up to {', '.join(few)} columns, lines or members"
    return own if few else ""


def described(kernel, row, origin):
    constants = " ".join(f"{k}={v}" for k, v in _tuned.capitals(row).items())
    times = f", {row['ms']} ms" if "ms" in row else ", chosen without a record of its time"
    times += f", the next variant {row['runner_up_ms']}" if "runner_up_ms" in row else ""
    kernel = f"syevd of A^H A, then {kernel}" if row.get("gram") else kernel
    if kernel == "potri_parts":
        kernel = f"diagonal blocks alone, trsm, symm and gemm, then {kernel}"
    constants += ", for values alone the tridiagonal" if row.get("vectors") else ""
    return f"{kernel} {constants} (row to {row['to']} of {origin}{times})"


def ship(gpu):
    """Writes rows into kernels/tuned/, for all users."""
    folder = _sources.FOLDER / "tuned" / f"sm{gpu.capability}"

    def keep(kernel, letter, row):
        folder.mkdir(exist_ok=True)
        file = folder / f"{kernel}.json"
        letters = json.loads(file.read_text()) if file.exists() else {}
        kept = [r for r in letters.get(letter, []) if not _tuned.instead(row, r)]
        letters[letter] = sorted([*kept, row], key=_tuned.place)
        blocks = [f'  "{k}": [\n' + ",\n".join("    " + json.dumps(r) for r in rows) + "\n  ]"
                  for k, rows in letters.items()]
        file.write_text("{\n" + ",\n".join(blocks) + "\n}\n")

    return keep


def main(arguments):
    routines = sorted({s.routine for s in _spaces.SPACES.values()})
    parser = argparse.ArgumentParser(prog="python -m blasx.tune", description=__doc__.partition(
        "\n\n")[0], epilog="routines: " + " ".join(routines))
    parser.add_argument("routine", nargs="*", help="all by default; or a kernel's name")
    parser.add_argument("--quick", action="store_true", help=f"fewer candidates, to {QUICK_TO}")
    parser.add_argument("--letters", default="sdcz", help="types, of sdczh")
    parser.add_argument("--orders", type=orders_of, metavar="N-N,N,...",
                        help="those of the rows there are by default")
    parser.add_argument("--show", action="store_true", help="what would run, and why")
    parser.add_argument("--ship", action="store_true", help="write kernels/tuned/ instead")
    options = parser.parse_args(arguments)
    names = options.routine or list(_spaces.SPACES)
    kernels = [k for k, s in _spaces.SPACES.items() if k in names or s.routine in names]
    unknown = [x for x in names if x not in routines and x not in kernels]
    if unknown or not options.letters or set(options.letters) - set("sdczh"):
        parser.error(f"no routine {' '.join(unknown)}" if unknown else "letters are of sdczh")
    try:
        cupy = _clock.gpu()
    except _clock.NoGpu as none:
        cupy = None
        if not options.show:
            print(none, file=sys.stderr)
            return 1
    gpu = _spaces.HOPPER
    if cupy:
        from ._kernel import gpu as of_device
        gpu = of_device(cupy.cuda.Device().id)
    if options.show:
        print(f"{gpu.name}" if cupy else f"No GPU here; on an {gpu.name}:")
        chosen = list(dict.fromkeys(_spaces.SPACES[k].routine for k in kernels))
        orders = options.orders or (4, 16, 32, 64, 128, 512)
        print(*show(chosen, options.letters, orders, gpu), sep="\n")
        return 0
    keep = ship(gpu) if options.ship else lambda *row: _tuned.write(*row, gpu)
    todo = jobs(kernels, options.letters, options.orders, gpu, options.quick)
    progress = Progress()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        tune(todo, gpu, on_gpu(cupy, gpu, pool, progress.say), keep, progress, options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
