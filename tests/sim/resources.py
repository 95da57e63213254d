"""python -m tests.sim.resources [--write] [--new] [KERNEL ...]: what kernels cost, on every
architecture.

Compiles each reachable variant to a cubin (no GPU needed), those of Hopper's own instructions for
it alone, and compares registers and spilled bytes with kernels/resources/<kernel>.json. A
difference is drift; a spill must have its "justified" entry there, which names the measurement that
shows it to be worth while: --write cites that of blasx.tune, which chose the variant among others
that do not spill, for the architecture it was made on. --new: only variants that have no record are
compiled, after rows were added; records of variants that no row reaches any more are left out.
"""

import io
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from cuda.core import Program, ProgramOptions

from blasx import _sources, _tuned
from blasx._spaces import SPACES
from blasx._types import TYPES
from blasx.tune import BEFORE

RECORDS = _sources.FOLDER / "resources"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")


def architectures(kernel, constants):
    """Those that a variant of a kernel is for."""
    text = _sources.source(f"{kernel}.cu")
    recent = constants.get("BULK") or "__cluster_dims__" in text and not (
        "BY_CLUSTERS __launch" in text and constants["CLUSTER"] == 1)
    return tuple(arch for arch in ARCHITECTURES if (arch == "sm_90a" or "wgmma" not in text)
                 and (arch != "sm_80" or not recent))


def variants():
    """(kernel, letter, constants) of all that the tuned table can reach, each once."""
    seen = {}
    for kernel, letters in _tuned.table(90).items():
        for letter, rows in letters.items():
            for row in rows:
                constants = _tuned.capitals(row)
                if constants and SPACES[kernel].compiled:
                    seen[label(kernel, letter, constants)] = kernel, letter, constants
                if constants and BEFORE.get(kernel) == ("larft_panels",):  # of panels as wide
                    before = _tuned.constants("larft_panels", letter, row["to"], 90)
                    before["NB"] = constants["NB"]
                    seen[label("larft_panels", letter, before)] = "larft_panels", letter, before
                while row.get("halved") and constants["CLUSTER"] > 1:  # where members are many
                    constants = constants | {"CLUSTER": constants["CLUSTER"] // 2}
                    seen[label(kernel, letter, constants)] = kernel, letter, constants
    return seen


def label(kernel, letter, constants):
    return f"{kernel} {letter} " + " ".join(f"{k}={v}" for k, v in constants.items())


def resources(kernel, letter, constants, arch):
    """(registers, spilled bytes) that ptxas reports."""
    log = io.StringIO()
    options = ProgramOptions(std="c++17", arch=arch, fma=False, ptxas_options=["-v"])
    text = _sources.program(kernel, TYPES[letter].cpp, constants)
    Program(text, "c++", options).compile("cubin", logs=log)
    report = log.getvalue()
    if "serialized" in report:  # C7510 ...: products of four warps that wait for each other
        raise AssertionError(f"{label(kernel, letter, constants)}: {report}")
    registers = int(re.search(r"Used (\d+) registers", report)[1])
    spilled = sum(map(int, re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)",
                                      report)))
    return registers, spilled


def measure(keys, wanted=ARCHITECTURES):
    """{label: {arch: [registers, spilled bytes]}}"""
    table = variants()
    jobs = [(key, arch) for key in keys for arch in architectures(table[key][0], table[key][2])
            if arch in wanted]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda job: resources(*table[job[0]], job[1]), jobs))
    result = {}
    for (key, arch), numbers in zip(jobs, found):
        result.setdefault(key, {})[arch] = list(numbers)
    return result


def justification(key):
    """The measurement by which a variant was chosen, or None."""
    for kernel, letters in _tuned.table(90).items():
        for letter, rows in letters.items():
            for row in rows:
                if (label(kernel, letter, _tuned.capitals(row)) == key
                        and "runner_up_ms" in row):
                    return (f"blasx.tune on the H200: {row['ms']} ms, the next variant "
                            f"{row['runner_up_ms']} (kernels/tuned/sm90/{kernel}.json)")


def recorded():
    return {f"{file.stem} {key}": entry for file in sorted(RECORDS.glob("*.json"))
            for key, entry in json.loads(file.read_text()).items()}


def complaints(found, known):
    """What differs from the record, and what spills without a justification."""
    for key, numbers in found.items():
        entry = known.get(key, {})
        for arch, (registers, spilled) in numbers.items():
            if entry.get(arch) != [registers, spilled]:
                yield f"{key} {arch}: {registers} registers, {spilled} bytes; was {entry.get(arch)}"
            if spilled and "justified" not in entry:
                yield f"{key} {arch}: spills {spilled} bytes, and nothing justifies it"


def write(found, known):
    """The records of the kernels measured, a file each; what justified a spill still does."""
    lines = {}
    for key in sorted(found):
        spills = any(spilled for _, spilled in found[key].values())
        reason = known.get(key, {}).get("justified") or justification(key) if spills else None
        kernel, _, variant = key.partition(" ")
        entry = found[key] | ({"justified": reason} if reason else {})
        lines.setdefault(kernel, []).append(f"  {json.dumps(variant)}: {json.dumps(entry)}")
    for kernel, entries in lines.items():
        (RECORDS / f"{kernel}.json").write_text("{\n" + ",\n".join(entries) + "\n}\n")


def main(arguments):
    kernels = [x for x in arguments if x not in ("--write", "--new")]
    if unknown := set(kernels) - set(_tuned.table(90)):
        raise SystemExit(f"no kernel has a row by the name of {' '.join(sorted(unknown))}")
    keys = [key for key in variants() if not kernels or key.split()[0] in kernels]
    known = recorded()
    kept = [key for key in keys if key in known and "--new" in arguments]
    found = {key: {arch: known[key][arch] for arch in ARCHITECTURES if arch in known[key]}
             for key in kept}
    found |= measure([key for key in keys if key not in found])
    if "--write" in arguments:
        write(found, known)
    wrong = list(complaints(found, recorded()))
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
