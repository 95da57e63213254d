"""The one loop of all testers: make, call, time, check, print."""

import json
import platform
import sys
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter, strftime

import numpy as np
import scipy

from blasx import RefinementWarning

from . import flops
from .case import as_tuple, on_device
from .cases import CASES, find
from .options import DEFAULT_SIZES, DEFAULT_SIZES_BATCHED, parse, parse_sizes

VALUES = {"M": "m", "N": "n", "K": "k", "NRHS": "nrhs", "BatchCount": "batch", "KL": "kl",
          "KU": "ku"}


class Refused(Exception):
    """A request that no line can answer; `status` is the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


# Devices


def gpu_is_there():
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # no CuPy, no driver, or one that does not answer: then there is no GPU
        return False


def synchronize(device):
    if device == "gpu":
        import cupy

        cupy.cuda.get_current_stream().synchronize()


# One problem


def timed(call, device):
    """Seconds of one call until the device is done, and what it returned."""
    synchronize(device)
    start = perf_counter()
    result = call()
    synchronize(device)
    return perf_counter() - start, result


def measure(case, p, options):
    """Call the routine as often as asked. Returns its outputs, a dict of what was measured (the
    median's seconds, the first call's, what ran), and whether the inputs were left alone."""
    import blasx

    function = case.function(p.letter)
    args, kwargs = p.args, p.kwargs
    asked = {"mode": options.mode} if case.takes_mode(p.letter) else {}
    if options.device == "gpu" or options.check or case.always:  # ours stay as they are
        args = [copied(x, options.device) for x in args]
        kwargs = {k: copied(x, options.device) for k, x in kwargs.items()}

    def call():
        """A call on fresh operands where the name overwrites them unasked."""
        fresh = args
        if case.in_place:
            fresh = [x.copy(order="K") if hasattr(x, "ndim") else x for x in args]
        return timed(lambda: function(*fresh, **kwargs, **asked), options.device)

    with blasx.trace() as trace:
        first, result = call()
    times = [] if options.warmup else [first]
    while len(times) < options.niter:
        times.append(call()[0])
    ran = trace.calls[-1].variant.split("+") if trace.calls else []
    same = case.in_place or all(map(unchanged, (*p.args, *p.kwargs.values()),
                                    (*args, *kwargs.values())))
    return as_tuple(result), {"seconds": median(times), "first_seconds": first,
                              "variant": "+".join(dict.fromkeys(ran))}, same


def copied(x, device):
    if isinstance(x, list):
        return [copied(y, device) for y in x]
    return x.copy(order="K") if isinstance(x, np.ndarray) and device == "cpu" else on_device(
        x, device)


def unchanged(before, after):
    if isinstance(before, list):
        return all(map(unchanged, before, after))
    if before is after or not isinstance(before, np.ndarray):
        return True
    return np.array_equal(before, as_tuple(after)[0], equal_nan=before.dtype.kind in "fc")


def run_one(case, letter, sizes, flags, options, rng, fault=None):
    """One line: make the problem, call, time and check it. Returns the row as a dict.

    fault(case, p, outputs) may spoil the outputs before they are judged."""
    p = case.problem(letter, sizes, flags, rng, options)
    outputs, measured, same = measure(case, p, options)
    row = {"routine": case.typed[letter], "m": p.m, "n": p.n, "k": p.k, "nrhs": p.nrhs,
           "batch": p.batch, "kl": p.kl, "ku": p.ku, "flags": flags,
           "matrix": options.matrix or case.matrix, "device": options.device, **measured,
           "lapack_seconds": None, "operations": None, "errors": {}, "errors_over_eps": {},
           "failed": [], "status": ""}
    if case.flops:
        row["operations"] = flops.total(case.flops(p), p.is_complex and case.rate == "Gflop/s")
    if options.check or case.always:
        row |= judged(case, p, fault(case, p, outputs) if fault else outputs, same)
    if options.mode not in ("auto", mode_of(row["variant"])):
        row["failed"].append(f"mode: {mode_of(row['variant'])} ran")
        row["status"] = "failed"
    if options.lapack and case.has_reference(letter):
        row["lapack_seconds"] = timed(lambda: case.reference(p), "cpu")[0]
    return row


def judged(case, p, outputs, same):
    """The part of a row that says how right the outputs are."""
    found = case.errors(p, outputs) | {"inputs unchanged": same}
    values = {k: v for k, v in found.items() if not isinstance(v, bool)}
    failed = case.failures(p, found)
    named = case.named(outputs)
    return {"errors": values, "errors_over_eps": {k: v and v / p.eps for k, v in values.items()},
            "failed": failed, "status": "failed" if failed else "ok",
            **{what: int(np.max(named[what]))
               for what in ("info", "iter") if what in named and np.size(named[what])}}


def mode_of(variant):
    """native, vendor, hybrid or cpu: what the parts of a trace's variant amount to on the GPU. What
    own kernels do with products by cuBLAS is native."""
    parts = set(variant.split("+"))
    vendor, cpu = parts & {"cublas", "cusolver"}, parts & {"cpu", "scipy", "lapack"}
    if cpu:
        return "hybrid" if parts - cpu else "cpu"
    return "vendor" if "cusolver" in vendor or parts <= vendor else "native"


def refuse_mode(case, mode, device):
    """The modes of a routine: on the CPU auto only, on the GPU what its Case says too."""
    modes = ("auto", *case.modes) if device == "gpu" else ("auto",)
    if mode not in modes:
        raise Refused(f"{case.name} has no mode {mode!r} on the {device}; it has "
                      + ", ".join(modes), 2)


# Printing


def environment(options):
    """The lines above the table: what ran, on what."""
    import blasx

    config = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
    lines = [f"% blasx {blasx.__version__}, Python {platform.python_version()}, NumPy "
             f"{np.__version__}, SciPy {scipy.__version__}, LAPACK: {config['name']} "
             f"{config['version']}", f"% host {platform.node()}, {platform.machine()}"]
    if options.device == "gpu":
        import cupy

        d = cupy.cuda.Device()
        q = cupy.cuda.runtime.getDeviceProperties(d.id)
        lines.append(
            f"% CUDA runtime {cupy.cuda.runtime.runtimeGetVersion()}, driver "
            f"{cupy.cuda.runtime.driverGetVersion()}, CuPy {cupy.__version__}\n"
            f"% device {d.id}: {q['name'].decode()}, {q['totalGlobalMem'] / 2**20:.1f} MiB memory, "
            f"capability {d.compute_capability[0]}.{d.compute_capability[1:]}")
    else:
        lines.append("% device cpu")
    return [*lines, "% " + strftime("%a %b %d %H:%M:%S %Y")]


def performance(operations, seconds, case):
    """'Gflop/s (time)', the time alone, or dashes for what did not run."""
    scaled = None if seconds is None else seconds * (1e3 if case.unit == "ms" else 1)
    if operations is None:
        return "   ---  " if scaled is None else f"{scaled:8.4f}"
    if scaled is None:
        return "  ---   (  ---  )"
    return f"{operations / seconds * 1e-9:7.2f} ({scaled:7.2f})"


def heading(case, letter, options):
    """The names of the columns."""
    unit = f"{case.rate} ({case.unit})" if case.flops else f"time ({case.unit})"
    cells = [f"{word:>11}" if word == "BatchCount" else f"{word:>5}"
             for word in case.columns.split()]
    times = [f"{'CPU ' + unit:>17}", f"{'blasx ' + unit:>19}"]
    if case.group == "blas":
        times.reverse()
    cells += times + ([f"{'cold (' + case.unit + ')':>10}"] if options.cold else [])
    return cells


def line(case, row, names, options):
    cells = [f"{row[VALUES[word]]:{11 if word == 'BatchCount' else 5}d}"
             for word in case.columns.split()]
    times = [f"{performance(row['operations'], row['lapack_seconds'], case):>17}",
             f"{performance(row['operations'], row['seconds'], case):>19}"]
    if case.group == "blas":
        times.reverse()
    cells += times
    if options.cold:
        cells.append(f"{row['first_seconds'] * (1e3 if case.unit == 'ms' else 1):10.2f}")
    if "iter" in case.outputs:
        cells.append(f"{row.get('iter', '---'):>4}")
    for name in names:
        value = row["errors"].get(name)
        cells.append(f"{'---' if value is None else format(value, '8.2e'):>{max(len(name), 8)}}")
    if row["failed"]:
        cells.append(f"({', '.join(row['failed'])})")
    return "  ".join([*cells, f" {row['status']}"]).rstrip()


def table(case, letter, flags, options, rng):
    """All lines of one routine with one set of flags; the header waits for the error's names."""
    rows = []
    for sizes in options.sizes:
        row = run_one(case, letter, sizes, flags, options, rng)
        rows.append(row)
        if len(rows) == 1:
            names = list(row["errors"])
            head = heading(case, letter, options)
            if "iter" in case.outputs:
                head.append("Iter")
            head += [f"{name:>8}" for name in names]
            print(f"% {case.typed[letter]} " + ", ".join(f"{k} = {v}" for k, v in flags.items()))
            print("%" + "  ".join(head)[1:])
            print("%" + "=" * len("  ".join(head)))
        print(line(case, row, names, options), flush=True)
        if options.verbose:
            print(f"%   ran: {row['variant'] or 'native'}; error/eps: "
                  + ", ".join(f"{k} {v:.2f}" for k, v in row["errors_over_eps"].items()
                              if v is not None), flush=True)
    return rows


# The command


def prepare(options, batched=False):
    """Fill in what depends on the machine and on the routine."""
    if not options.device:
        options.device = "gpu" if gpu_is_there() else "cpu"
    elif options.device == "gpu" and not gpu_is_there():
        raise Refused("--device gpu: CuPy sees no GPU here", 1)
    if not options.sizes:
        options.sizes = parse_sizes(DEFAULT_SIZES_BATCHED if batched else DEFAULT_SIZES)


def write_json(path, options, rows, **more):
    text = json.dumps({"environment": [x[2:] for x in environment(options)],
                       "command": sys.argv[1:], **more, "rows": rows}, indent=1, default=str)
    Path(path).write_text(text.replace("NaN", "null").replace("Infinity", "null") + "\n")


def main(name, arguments):
    """`python -m testing <name> <arguments>`; returns the exit status."""
    try:
        case, letter = find(name)
    except KeyError as error:
        raise Refused(error.args[0]) from None
    options = parse(f"testing {name}", arguments)
    prepare(options, case.group in ("batched", "vbatched"))
    if options.factor:
        if not case.refined or letter not in (None, *case.refined.typed):
            raise Refused(f"{name} has no --factor: dgesv and zgesv have")
        case = case.refined
    refuse_mode(case, options.mode, options.device)
    letters = [letter] if letter else [x for x in options.precisions if x in case.typed]
    if not letters:
        raise Refused(f"{name} exists as {', '.join(case.typed.values())}")
    unknown = {f: v for f, v in options.flags.items() if f in case.variants()[0]
               and not any(variant[f] == v for variant in case.variants())}
    if unknown:
        raise Refused(f"{case.name}: no such flag " + ", ".join(f"{k}={v}" for k, v in
                                                                unknown.items()))
    variants = case.variants() if options.all_flags else [
        {f: options.flags.get(f, v) for f, v in case.variants()[0].items()}]
    print("\n".join(environment(options)))
    print(f"% Usage: python -m {__package__} {name} [options] [-h|--help]\n")
    rng, rows = np.random.default_rng(options.seed), []
    with warnings.catch_warnings():
        for said in (RuntimeWarning, RefinementWarning):  # Iter says so, too
            warnings.simplefilter("ignore", said)
        for x in letters:
            for flags in variants:
                rows += table(case, x, flags, options, rng)
                print()
    if options.json:
        write_json(options.json, options, rows)
    return min(sum(row["status"] == "failed" for row in rows), 255)


__all__ = ["CASES", "Refused", "main", "run_one"]
