"""python -m bench sweep [ROUTINE ...] [-p sd] [--to 200 | --orders N-N,N,...] [--json FILE]
    [--before FILE]

Cliffs: the time a member takes for every order n = 1, 2, ..., in every batched routine, cold, the
median of five, of two such medians the least where there seems to be a cliff, which is where
time(n + 1) > 1.3 ((n + 1) / n)^3 time(n). Whether it is one is then asked with so many members that
the last wave of blocks counts little. 1 if there is one. Orders that take longer than in the FILE
of a sweep before are printed, too: rows of the table have changed since.
Members are uniformly random numbers, dominant on the diagonal except for eigen- and singular
values, where that would spare Jacobi's iteration most of its sweeps.
"""

import argparse
import json
from functools import cache
from pathlib import Path
from statistics import median

from blasx._types import TYPES
from blasx.tune import orders_of

from . import compare, timing
from .timing import Side

MOST = 100_000  # members
SLOWER = 1.08  # times as long as before that are told
WHOLE = 60  # members to a multiprocessor: whole waves of 1, 2, 3, 4, 5, 6, 10 or 12 blocks
STACKS = 24  # of members, factors, answers, workspace, that memory is kept for
FACTORED = {"getrf", "potrf", "geqrf"}  # by which operands of others are made
WITHIN = {"getrs": {"trsm"}, "gesv": {"getrs", "trsm"}, "getri": {"trsm"}, "potrs": {"trsm"},
          "posv": {"potrs", "trsm"}, "potri": {"trsm"}, "gels": {"ormqr", "trsm"},
          "trsv": {"trsm"}, "slogdet": {"getrf"}, "syevd": {"gemm", "ormqr"},
          "sygvd": {"potrf", "trsm", "syevd", "gemm", "ormqr"},
          "gesvd": {"syevd", "gemm", "syrk", "trsm", "ormqr"}}  # what a routine goes by
ROUTINES = {"gemm", "gemv", "symm", "syrk", "trsm", "trmm", "getrf_nopiv", "orgqr", "ormqr"} | (
    FACTORED | {*WITHIN})


def real(name):
    """hemm's, heevd's, ... name in real types."""
    return "sy" + name[2:] if name.startswith("he") else name


def calls(letter, a):
    """{routine: its call}: on A, its factors, or A and another stack; out of place. Factors are
    made when a routine asks for them first."""
    import blasx
    cupy, n = timing.gpu(), a.shape[1]
    b, h, x = a[:, :, :1].copy(), "he" if letter in "cz" else "sy", uniform(letter, n, len(a))

    def named(name):
        return getattr(blasx, f"{letter}{name}_batched")

    lu = cache(lambda: named("getrf")(a)[:2])
    c = cache(lambda: named("potrf")(a, 1)[0])
    qr = cache(lambda: named("geqrf")(a)[:2])
    half = a[:, :, :max(1, n // 2)].copy()
    made, line = cupy.empty_like(a), a[:, :, 0].copy()
    return {
        "gemm": lambda: named("gemm")(1, a, x, 0, made, overwrite_c=1),
        "gemv": lambda: named("gemv")(1, a, line),
        h + "mm": lambda: named(h + "mm")(1, a, x, 0, made, overwrite_c=1),
        h + "rk": lambda: named(h + "rk")(1, a),
        "trsv": lambda: named("trsv")(a, line, lower=1),
        "trsm": lambda: named("trsm")(1, a, half, lower=1),
        "trmm": lambda: named("trmm")(1, a, half, lower=1),
        "getrf": lambda: named("getrf")(a),
        "getrf_nopiv": lambda: named("getrf_nopiv")(a),
        "slogdet": lambda: named("slogdet")(a),
        "getrs": lambda: named("getrs")(*lu(), b),
        "gesv": lambda: named("gesv")(a, b),
        "getri": lambda: named("getri")(*lu()),
        "potrf": lambda: named("potrf")(a, 1),
        "potrs": lambda: named("potrs")(c(), b, 1),
        "potri": lambda: named("potri")(c(), 1),
        "posv": lambda: named("posv")(a, b, 1),
        "geqrf": lambda: named("geqrf")(a),
        "orgqr": lambda: named("ungqr" if letter in "cz" else "orgqr")(*qr()),
        "ormqr": lambda: named("unmqr" if letter in "cz" else "ormqr")("L", "N", *qr(), b),
        "gels": lambda: named("gels")(a, b),
        h + "evd": lambda: named(h + "evd")(x),
        h + "gvd": lambda: named(h + "gvd")(x, a),
        "gesvd": lambda: named("gesvd")(x),
    }


def uniform(letter, n, batch):
    """Numbers whose parts are in (-1, 1)."""
    random, dtype = timing.gpu().random.RandomState(n), TYPES[letter].dtype
    x = timing.gpu().empty((batch, n, n), dtype)
    for part in (x.real, x.imag) if letter in "cz" else (x,):
        part[...] = random.uniform(-1, 1, x.shape, part.dtype)
    return x


def matrices(letter, n, batch):
    """Random, dominant on the diagonal, so that each is definite taken by either triangle."""
    x = uniform(letter, n, batch)
    x /= n
    x.reshape(batch, n * n)[:, ::n + 1] += 2
    return x


def begun(command, about, arguments, **more):
    """The options of a command for `routines`, types and orders, of which all is compiled; `more`:
    {its own: (what reads it, default)}. With `reach` what serves so many orders above these is
    compiled, too."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {command}", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routines", nargs="*", metavar="ROUTINE")
    parser.add_argument("-p", dest="letters", default="sd", metavar="sdcz")
    parser.add_argument("--to", type=int, default=200)
    parser.add_argument("--orders", type=orders_of, metavar="N-N,N,...", help="instead of to --to")
    parser.add_argument("--bytes", type=float, default=100e6, help="of a batch")
    for name, (read, default) in more.items():
        parser.add_argument(f"--{name}", type=read, default=default, metavar=name.upper())
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", help="what to record where git cannot tell")
    options = parser.parse_args(arguments)
    options.orders = sorted(options.orders or range(1, options.to + 1))
    options.routines = {real(x) for x in options.routines} or ROUTINES
    if unknown := options.routines - ROUTINES:
        parser.error(f"{' '.join(sorted(unknown))}: not among {' '.join(sorted(ROUTINES))}")
    reach = range(getattr(options, "reach", 0) + 1)
    within = set().union(*map(WITHIN.get, options.routines & {*WITHIN}))
    try:
        timing.compile_ahead(options.letters, {n + i for n in options.orders for i in reach},
                             options.routines | FACTORED | within)
    except timing.NoGpu as missing:
        parser.exit(2, f"bench {command}: {missing}\n")
    return options


def main(arguments):
    options = begun("sweep", __doc__, arguments, before=(times_in, {}))
    report = compare.machine(True, options.commit) | {"us": {}, "steps": []}
    for letter in options.letters:
        found = times(letter, options.bytes, options.orders, options.routines)
        again(letter, options.bytes, found)
        large = in_whole_waves(letter, options.bytes, found)
        for routine, us in found.items():
            report["us"][letter + routine] = {n: round(t, 5) for n, t in us.items()}
            rises = dict(steps(us))
            report["steps"] += [
                [letter + routine, n, round(rise, 3), round(step(large[routine], n), 3)]
                for n, rise in rises.items() if rise > 1]
            print(f"{letter}{routine:6} highest step {max(rises.values(), default=0):.2f} of what "
                  "is allowed", flush=True)
        if options.json:  # what there is after each type, as a sweep takes long
            Path(options.json).write_text(json.dumps(report) + "\n")
    for name, n, times_as_long in slower(report["us"], options.before):
        print(f"{name} at {n}: {times_as_long:.2f} times as long as before")
    cliffs = [x for x in report["steps"] if x[3] > 1]
    for name, n, few, many in cliffs:
        print(f"cliff: {name} at {n}: {many:.2f} times what is allowed ({few:.2f} of few members)")
    return int(bool(cliffs))


def times_in(file):
    """The times in the file of a sweep."""
    try:
        return dict(json.loads(Path(file).read_text())["us"])
    except (OSError, ValueError, KeyError, TypeError):
        raise argparse.ArgumentTypeError(f"{file} is not the file of a sweep") from None


def slower(us, before):
    """(routine, order, how many times as long as before), of a report's times and its file's."""
    for name, times in us.items():
        for n, t in times.items():
            was = before.get(name, {}).get(str(n), t)
            if t > SLOWER * was:
                yield name, n, t / was


def step(us, n):
    """The step to order n in units of what is allowed."""
    return us[n] / us[n - 1] / (1.3 * (n / (n - 1)) ** 3)


def steps(us):
    """(order, the step to it)"""
    for n in us:
        if n - 1 in us:
            yield n, step(us, n)


def high(found):
    """(order, routines) for both orders of each step above what is allowed."""
    orders = {}
    for routine, us in found.items():
        for n, rise in steps(us):
            for k in (n - 1, n) if rise > 1 else ():
                orders.setdefault(k, set()).add(routine)
    return sorted(orders.items())


def again(letter, nbytes, found):
    """A step above what is allowed may be a hiccup of the machine's, which one order in some
    thousand has: both of its orders are timed once more, and the least counts."""
    for n, names in high(found):
        for routine, us in times(letter, nbytes, [n], {*map(real, names)}).items():
            found[routine][n] = min(found[routine][n], us[n])


def in_whole_waves(letter, nbytes, found):
    """{routine: {order: microseconds a member}} of the orders of steps above what is allowed, with
    WHOLE members to each of the GPU's multiprocessors, or as many as it has memory for, if these
    are more."""
    large, device = {}, timing.gpu().cuda.Device()
    for n, names in high(found):
        each = TYPES[letter].dtype.itemsize * n * n
        whole = WHOLE * device.attributes["MultiProcessorCount"] * each
        many = max(nbytes, min(whole, device.mem_info[0] / STACKS))
        for routine, us in times(letter, many, [n], {*map(real, names)}).items():
            large.setdefault(routine, {}).update(us)
    return large


def members(letter, n, nbytes):
    """How many of order n are timed at once."""
    return int(min(MOST, max(200, nbytes / (TYPES[letter].dtype.itemsize * n * n))))


def times(letter, nbytes, orders, routines):
    """{routine: {order: microseconds a member}}"""
    found = {}
    for n in orders:
        batch = members(letter, n, nbytes)
        a = matrices(letter, n, batch)
        for routine, call in calls(letter, a).items():
            if real(routine) in routines:
                side = Side(tuple, call)
                sample = timing.gpu_clock(3 * a.nbytes)(side)
                us = 1e3 * median(sample() for _ in range(5)) / batch
                found.setdefault(routine, {})[n] = us
        timing.release()
    return found
