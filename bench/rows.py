"""python -m bench rows [ROUTINE ...] [-p sd] [--to 200 | --orders N-N,N,...] [--reach 8]
    [--json FILE]

Whether rows serve an order as well as those of a larger one: every batched routine of `bench sweep`
as it is and with its rows looked up as of each of the next orders, as far as these are others,
cold, the answers compared. Members are at least so many that the last of the GPU's blocks count
little, and the least of three samples counts, on each of two allocations. What is faster by 1.05 is
printed with the rows; the file has all times.
"""

import json
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from blasx import _clock, _spaces, _tuned

from . import compare, sweep, timing
from .timing import Side

LEAST = 1056   # members: eight for each multiprocessor of Hopper
SAMPLES = 3
ALLOCATIONS = 2
AGREE = 1e-2   # the largest difference of answers, of their largest number
WORTH = 1.05
SPECTRAL = {"syevd", "sygvd", "gesvd"}  # whose vectors may differ


@contextmanager
def as_of(n, m):
    """What is asked of the table for order n is answered for order m; gives {kernel: its row}. A
    RuntimeError where constants do not fit order n."""
    asked, why = {}, _tuned.why

    def answered(kernel, letter, order, gpu, *more, **named):
        found = why(kernel, letter, m if order == n else order, gpu, *more, **named)
        if order == n and found[0]:
            values = _tuned.capitals(found[0])
            asked.setdefault(kernel, values)
            if m > n and values and not _spaces.fits(kernel, letter, n, values, gpu):
                raise RuntimeError(f"{kernel} {values} for order {n}")
        return found

    with mock.patch.object(_tuned, "why", answered):
        _tuned.forget()
        try:
            yield asked
        finally:
            _tuned.forget()


def agree(routine, found, expected):
    """Whether the numbers of two answers do."""
    def numbers(answer):
        return [x for x in (answer if isinstance(answer, tuple) else (answer,))
                if x is not None and x.dtype.kind in "fc" and x.size
                and (routine not in SPECTRAL or x.ndim == 2)]

    return all(float(abs(x - y).max()) < AGREE * float(abs(y).max())
               for x, y in zip(numbers(found), numbers(expected), strict=True))


def others(routine, call, n, reach):
    """{m: {kernel: its row}} of n, and of the orders above it by whose rows the call's answer is as
    by its own, the first of each that differ."""
    with as_of(n, n) as rows:
        expected, found = call(), {n: rows}
    for m in range(n + 1, n + reach + 1):
        with as_of(n, m) as rows:
            try:
                answer = call()
            except (RuntimeError, MemoryError):
                continue  # they have no room for it
        if rows not in found.values() and agree(routine, answer, expected):
            found[m] = rows
    return found


def times(letter, n, routines, reach, nbytes):
    """{routine: {m: (microseconds a member, {kernel: row})}} of order n as of m."""
    found, batch = {}, max(LEAST, sweep.members(letter, n, nbytes))
    for _ in range(ALLOCATIONS):
        a = sweep.matrices(letter, n, batch)
        for routine, call in sweep.calls(letter, a).items():
            if sweep.real(routine) not in routines:
                continue
            best = found.setdefault(routine, {})
            served = ({m: rows for m, (_, rows) in best.items()}
                      or others(sweep.real(routine), call, n, reach))
            samples = {}
            for turn in range(SAMPLES):
                for m, rows in served.items() if len(served) > 1 else ():
                    with as_of(n, m):
                        call()  # looks up what the sample uses
                        if turn == 0:
                            samples[m] = _clock.gpu_clock(3 * a.nbytes)(Side(tuple, call))
                        us = 1e3 * samples[m]() / batch
                    best[m] = min(us, best.get(m, (us,))[0]), rows
        a = call = samples = None
        timing.release()
    return {routine: best for routine, best in found.items() if best}


def described(rows, instead):
    return ", ".join(kernel + " " + " ".join(f"{k}={v}" for k, v in row.items())
                     for kernel, row in rows.items() if instead.get(kernel) != row) or "no kernel"


def main(arguments):
    options = sweep.begun("rows", __doc__, arguments, reach=(int, 8))
    report = compare.machine(True, options.commit) | {"us": {}}
    for letter in options.letters:
        for n in options.orders:
            for routine, us in times(letter, n, options.routines, options.reach,
                                     options.bytes).items():
                name = f"{letter}{routine} {n}"
                report["us"][name] = {m: round(t, 6) for m, (t, _) in us.items()}
                (own, rows), (m, (best, found)) = us[n], min(us.items(), key=lambda x: x[1][0])
                if own > WORTH * best:
                    print(f"{name} as {m}: {own / best:.2f} times as fast: "
                          f"{described(found, rows)} for {described(rows, found)}", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(report) + "\n")
