"""python -m testing selfcheck: are faults seen? Real results are spoiled in every way that fits,
one at a time, and each must be reported as failed."""

import warnings

import numpy as np

from blasx._types import TYPES

from .cases import CASES
from .options import Options
from .ragged import member

PIVOTS = ("piv", "ipiv", "jpvt")
NOT_JUDGED = ("work", "isuppz", "ifail")  # workspace, and what LAPACK leaves unset on success
SIZES = (6, 5, 4)


def faults(case, p, outputs):
    """(what, outputs with it) of everything that can be wrong with a result."""
    if case.members:
        for what, wrong in faults(case.members, p.members[0], member(outputs, 0)):
            yield what, tuple([x[0], *rest[1:]] for x, rest in zip(wrong, outputs))
        return
    named = case.named(outputs)
    for name, value in named.items():
        if name in NOT_JUDGED:
            continue

        def spoiled(change):
            copy = {k: np.array(v) for k, v in named.items()}
            copy[name] = change(copy[name])
            return tuple(reversed(copy.values()))

        value = np.asarray(value)
        if name == "info":
            yield "info wrong", spoiled(lambda x: x + 1)
            yield "info negative", spoiled(lambda x: x - 1)
        elif name == "iter":
            yield "fallback", spoiled(lambda x: x * 0 - 31)
        elif name in PIVOTS and value.size > 1:
            yield f"{name}: a pivot swapped", spoiled(other_pivot)
            yield f"{name}: out of range", spoiled(lambda x: x + 1000)
        elif value.dtype.kind in "fcV" and value.size:
            judged = region(case, p, name, value)
            yield f"{name}: NaN", spoiled(lambda x: put(x, judged, np.nan))
            yield f"{name}: scaled", spoiled(lambda x: scaled(x, judged))
            if name in ("c", "ldu", "udut", "uduh", "inv_a", "inv_c", "A", "C", "a"):
                yield from wrong_triangle(p, name, value, spoiled)
        elif value.size:
            yield f"{name}: off by one", spoiled(lambda x: x + 1)


def region(case, p, name, value):
    """Where an output is the routine's own: inside its triangle, among its m eigenvalues."""
    mask = np.isfinite(value) & (value != 0)
    if "uplo" in p.flags and value.ndim >= 2 and value.shape[-1] == value.shape[-2]:
        if name in ("c", "ldu", "udut", "uduh", "inv_a", "inv_c", "A", "C", "a"):
            mask &= (np.tril if p.uplo == "L" else np.triu)(np.ones(value.shape[-2:], bool))
    if "m" in case.outputs and name in "wz":
        mask[..., p.part.stop - p.part.start:] = False
    return mask


def put(x, mask, value):
    x[tuple(np.argwhere(mask)[-1])] = value
    return x


def scaled(x, mask):
    """The column of the largest judged element 1e-3 off; of 2-byte numbers, a quarter."""
    off = 1 + (1e-3 if x.itemsize > 2 else 0.25)
    if not x.ndim:
        return x * off
    largest = np.unravel_index(np.argmax(np.where(mask, abs(np.nan_to_num(x)), -1)), x.shape)
    column = largest[-1] if x.ndim > 1 else largest
    x[..., column] *= off
    return x


def other_pivot(piv):
    """Another row in the first place: a legal one where there is one."""
    first = piv.reshape(-1)
    first[0] = first[0] + 1 if first[0] <= 1 else first[0] - 1
    return piv


def wrong_triangle(p, name, value, spoiled):
    """One element of the triangle that is not the routine's, written."""
    if "uplo" not in p.flags or p.uplo not in "LU" or value.ndim < 2:
        return
    at = (..., 0, -1) if p.uplo == "L" else (..., -1, 0)

    def write(x):
        x[at] = 7.0
        return x

    yield f"{name}: wrong triangle written", spoiled(write)


def spoil(case, p, outputs):
    """The first fault that fits, for run --inject-fault."""
    return next((wrong for _, wrong in faults(case, p, outputs)), outputs)


def singular(case, letter):
    """A zero matrix, its info set to 0: a tester that ignores info would pass it."""
    p = case.problem(letter, SIZES, None, np.random.default_rng(1),
                     Options(check=1, matrix="zero", batch=3, allow_fallback=True))
    outputs = case.call(p)
    named = case.named(outputs)
    if not np.any(named.get("info", 0)):
        return None
    if case.failures(p, case.errors(p, outputs)):
        return "the honest result failed"
    named["info"] = np.asarray(named["info"]) * 0
    return case.failures(p, case.errors(p, tuple(reversed(named.values()))))


def main(arguments):
    """Returns 0 only if every honest result passes and every fault is caught."""
    if arguments in (["-h"], ["--help"]):
        print("python -m testing selfcheck: " + main.__doc__)
        return 0
    if arguments:
        raise ValueError("selfcheck takes no options")
    tried, missed = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES:
            for letter in filter(lambda x: TYPES[x].is_known, case.typed):
                for what, caught in verdicts(case, letter):
                    tried += 1
                    if not caught:
                        missed.append(f"{case.typed[letter]}: {what}")
    print("\n".join(f"{miss}  failed" for miss in missed))
    print(f"{tried} faults in {len(CASES)} cases, {len(missed)} not seen")
    return min(len(missed), 255)


def verdicts(case, letter):
    """(what, seen) of every fault of one typed name; "no fault" is seen if it passes."""
    flags = case.variants()[-1] if case.name not in ("gels",) else None
    p = case.problem(letter, SIZES, flags, np.random.default_rng(1),
                     Options(check=1, batch=3, nrhs=2, kl=2, ku=1, matrix="svd_arith", cond=4.0))
    outputs = case.call(p)
    yield "no fault", not case.failures(p, case.errors(p, outputs))
    for what, wrong in faults(case, p, outputs):
        yield what, bool(case.failures(p, case.errors(p, wrong)))
    ignored = singular(case, letter)
    if ignored is not None:
        yield "info ignored", bool(ignored) and ignored != "the honest result failed"
