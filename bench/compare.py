"""python -m bench compare FAMILY [--quick] [--json FILE]

blasx beside its peers, timed in one run: answers checked, sides interleaved, operands random and
cold (see timing.py). ratio = the best peer's time / ours: above 1 blasx is faster.
"""

import argparse
import json
import math
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from blasx import _errors as errors

from . import timing

FAMILIES = {"batched": "batched", "batched_blas": "batched_blas", "batched_qr": "batched_qr",
            "batched_spectral": "batched_spectral", "ragged": "ragged", "gemm": "single",
            "lapack": "single", "host": "single", "blas12": "single", "cpu": "cpu", "nn": "nn",
            "nn_gpu": "nn_gpu"}
ON_CPU = ("cpu", "nn")
PEERS = ("numpy", "scipy", "cupy-cuda12x", "cupy-cuda13x", "torch", "jax")


def main(arguments):
    """Measure a family; 1 if an answer of ours was wrong or missing, 2 without its device."""
    options = parse(arguments)
    module = import_module(f"bench.{FAMILIES[options.family]}")
    report = {**machine(options.family not in ON_CPU, options.commit), "rows": []}
    try:
        for row in module.rows(options.precision, options.quick, options.family):
            if options.only and row.routine not in options.only.split(","):
                continue
            for line, text in measured(row, options.family, options.samples):
                report["rows"].append(line)
                print(text, flush=True)
            if options.family not in ON_CPU:
                timing.release()
            if options.json:  # after every row: a run that is cut short leaves what it has
                Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    except timing.NoGpu as missing:
        print(f"bench compare {options.family}: {missing}", file=sys.stderr)
        return 2
    if options.only and not report["rows"]:
        print(f"bench compare {options.family}: no row of {options.only}", file=sys.stderr)
        return 2
    wrong = sum(line["ratio"] is None and bool(line["peers"]) for line in report["rows"])
    print(f"{len(report['rows'])} rows in {timing.elapsed():.0f} s, {wrong} without a right answer")
    return int(wrong > 0)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and types, small batches")
    parser.add_argument("--json", metavar="FILE", help="write the rows here")
    parser.add_argument("-p", "--precision", metavar="sdcz",
                        help="types (--quick: sd, else sdcz; of products h, b and i, too)")
    parser.add_argument("--only", metavar="NAME,...", help="rows of these names")
    parser.add_argument("--samples", type=int, help="samples of each side (--quick: 5, else 9)")
    parser.add_argument("--commit", help="what to record where git cannot tell")
    options = parser.parse_args(arguments)
    options.precision = options.precision or ("sd" if options.quick else "sdcz")
    options.samples = options.samples or (5 if options.quick else 9)
    return options


def measured(row, family, samples):
    """The JSON row and the printed line of each of our variants in `row`."""
    sides = {("ours", name): make for name, make in row.ours.items()}
    sides |= {("peer", name): make for name, make in row.peers.items()}
    found = timing.times(sides, row.check, row.clock, samples)
    peers = {name: found["peer", name] for name in row.peers}
    best = min((ms for ms, _, error in peers.values() if right(ms, error)), default=None)
    for variant in row.ours:
        ms, spread, error = found["ours", variant]
        line = {"family": family, "routine": row.routine, "dtype": row.letter, "shape": row.shape,
                "variant": variant, "ms": ms, "error": error,
                "peers": {name: {"ms": t, "error": e} for name, (t, _, e) in peers.items()},
                "ratio": best / ms if best and right(ms, error) else None}
        yield line, text(line, spread, {name: s for name, (_, s, _) in peers.items()}, row)


def right(ms, error):
    return ms is not None and math.isfinite(error) and error < errors.PASS


def text(line, spread, spreads, row):
    def side(name, ms, spread, error):
        if ms is None:
            return f"{name}: {error}"
        judged = "" if right(ms, error) else "  WRONG"
        return f"{name} {ms:.4g} ms +-{50 * spread:.0f}% (error {error:.2g}){judged}"

    parts = [side("blasx", line["ms"], spread, line["error"])]
    parts += [side(name, p["ms"], spreads[name], p["error"]) for name, p in line["peers"].items()]
    parts.append("ratio " + (f"{line['ratio']:.2f}" if line["ratio"] else "-"))
    if row.floor_bytes and line["ms"]:
        floor_ms = row.floor_bytes / timing.copy_bandwidth() * 1e3
        parts.append(f"{100 * floor_ms / line['ms']:.0f} % of the memory floor")
    head = f"{line['dtype']}{line['routine']} {line['shape']} {line['variant']}"
    return f"{head:44} " + " | ".join(parts)


def machine(with_gpu, commit=None):
    """What the rows were measured with: the head of every JSON file."""
    versions = {"python": platform.python_version(), "cpu": processor()}
    for name in PEERS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"commit": commit or output("git", "rev-parse", "--short", "HEAD") or "unknown",
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "gpu": smi("name") if with_gpu else None,
            "driver": smi("driver_version") if with_gpu else None, "versions": versions}


def processor():
    """The processor and the cores that this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    import os
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def smi(field):
    text = output("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader")
    return text.splitlines()[0] if text else None


def output(*command):
    """What a command prints, or "" if it cannot."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
