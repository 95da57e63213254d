"""python -m tests.mutate [KERNEL ...] [--most N] [--json FILE]: how much the CPU tests see.

Of each kernel's own text every barrier is dropped, every index shifted by one and every comparison
flipped, one at a time, in a copy of the project, and the kernel's tests on the CPU run there. A
mutant lives if they pass. What does not compile counts for nothing, and so does what EQUIVALENT
says to change no result. tests/mutants.json is what `--most 30` found, half an hour on two cores,
with the reason, found by reading, why each survivor does no harm.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent
FOLDERS = ("blasx", "kernels", "tests", "testing", "bench")
FILES = ("pyproject.toml", "setup.py", "README.md")
SECONDS = 240  # after which a mutant hangs, and is seen

# Kernels: the texts that are theirs, and the tests that run them
KERNELS = {
    "getrf_small": (("lu_tiles.cuh", "lu.cuh", "getrf_small.cu"),
                    ("tests/test_kernels.py",
                     "runs_on_the_cpu and getrf_small or rows_by_shared_memory")),
    "getri_shared": (("getri_shared.cu", "inverse_strips.cuh", "moves.cuh"),
                     ("tests/test_kernels_lu.py", "runs_on_the_cpu and getri_shared")),
    "potri_shared": (("potri_shared.cu", "inverse_strips.cuh"),
                     ("tests/test_kernels_cholesky.py", "runs_on_the_cpu and potri_shared")),
    "potri_small": (("potri_small.cu", "dealt_columns.cuh"),
                    ("tests/test_kernels_cholesky.py", "runs_on_the_cpu and potri_small")),
    "potrf_small": (("cholesky_tiles.cuh", "cholesky.cuh", "potrf_small.cu"),
                    ("tests/test_kernels.py", "runs_on_the_cpu and potrf_small")),
    "geqrf_small": (("qr_lanes.cuh", "geqrf_small.cu", "qr.cuh"),
                    ("tests/test_kernels_qr.py",
                     "runs_on_the_cpu and geqrf_small or windows_of_registers")),
    "posv_columns": (("posv_columns.cu", "cholesky_columns.cuh"),
                     ("tests/test_kernels_cholesky.py",
                      "runs_on_the_cpu and (posv_columns or potrf_columns)")),
    "posv_small": (("posv_small.cu", "cholesky_large.cuh"),
                   ("tests/test_kernels_cholesky.py", "runs_on_the_cpu and posv_small")),
    "posv_block": (("posv_block.cu", "cholesky_block.cuh", "solve_up.cuh"),
                   ("tests/test_kernels_cholesky.py",
                    "runs_on_the_cpu and (posv_block or potrf_block)")),
    "gels_shared": (("gels_shared.cu", "qr_shared.cuh"),
                    ("tests/test_kernels_qr.py", "in_shared_memory_run")),
    "ormqr_block": (("ormqr_block.cu", "qr_panels.cuh"),
                    ("tests/test_kernels_qr.py", "runs_on_the_cpu")),
    "geqrf_left": (("geqrf_left.cu", "qr_left.cuh"),
                   ("tests/test_kernels_qr.py",
                    "from_the_left_run and (c-16 or s-32 or z-8)")),
    "ormqr_strips": (("ormqr_strips.cu", "qr_strips.cuh", "larft_panels.cu"),
                     ("tests/test_kernels_qr.py",
                      "strips_run and (larft_panels and (s-sizes4 or d-sizes) or ormqr_strips and "
                      "(s-sizes18 or z-sizes21))")),
    "gesvd_vectors": (("gesvd_vectors.cu", "svd.cuh", "svd_tiles.cuh"),
                      ("tests/test_kernels_svd.py", "runs_on_the_cpu")),
    "gels_solve": (("gels_solve.cu",),
                   ("tests/test_kernels_qr.py", "runs_on_the_cpu and gels_solve")),
    "symm_lines": (("symm_lines.cu", "line_products.cuh", "lines.cuh"),
                   ("tests/test_kernels_blas.py",
                    "products_of_lines and (s-team0 or d-team4 or d-team5 or d-team12 or "
                    "d-team13 or z-team9)")),
    "syrk_lines": (("syrk_lines.cu",),
                   ("tests/test_kernels_blas.py",
                    "ranks_of_lines and (s-3-2 or s-4-1 or d-1-1 or d-5-1 or z-2-1)")),
}

# Lines of which a mutant computes the same, and why
EQUIVALENT = {
    r"\bcs == 1|by_rows": "which way memory is walked",
    r"threadIdx\.x % 32 == 0\) \w+\[warp\(\)\] = ": "all lanes of the warp hold that number",
}
FLIPS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "}
BARRIER = re.compile(r"\b(__syncthreads|__syncwarp|team_sync)\([^()]*\);")
COMPARISON = re.compile("|".join(map(re.escape, FLIPS)))
INDEX = re.compile(r"(?<=\w)\[([^\[\]]+)\]")
SKIPPED = re.compile(r"^\s*(//|#|template|static_assert|using)|__launch_bounds__|constexpr int")


def mutants(text):
    """(line, what, text) of every mutant; declarations of arrays keep their sizes."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        code = line.split("//")[0]
        if SKIPPED.search(line):
            continue
        for m in BARRIER.finditer(code):
            yield from mutant(lines, i, m, ";")
        for m in [] if any(re.search(x, code) for x in EQUIVALENT) else COMPARISON.finditer(code):
            yield from mutant(lines, i, m, FLIPS[m[0]])
        for m in INDEX.finditer(code):
            declares = re.search(r"(\b(int|unsigned|real_t|scalar_t|size|T|Row|bool|void)\b[^=;()]*"
                                 r"|\)|\(&\w+\))$", code[:m.start()])
            if not declares:
                yield from mutant(lines, i, m, f"[{m[1]} + 1]")


def mutant(lines, i, m, new):
    line = lines[i][:m.start()] + new + lines[i][m.end():]
    yield i + 1, f"{m[0].strip()} -> {new.strip()} at {m.start() + 1}", "\n".join(
        [*lines[:i], line, *lines[i + 1:]])


def copy_of_the_project(folder):
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "results"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def tested(project, name, text, tests):
    """How a mutant ends: killed, survived, or does not compile."""
    file = project / "kernels" / name
    kept = file.read_text()
    file.write_text(text)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p",
         "no:randomly", tests[0], "-k", tests[1]], cwd=project, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(project)},
        start_new_session=True)
    try:
        out, err = run.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)  # those that it started, which hang, too
        run.communicate()
        return "killed"
    finally:
        file.write_text(kept)
    if run.returncode == 0:
        return "survived"
    if run.returncode != 1:
        raise RuntimeError(out[-2000:] + err[-2000:])
    return "does not compile" if "CalledProcessError" in out else "killed"


def main(arguments):
    """Run the mutants; 1 if more than a tenth of a kernel's live."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", default=list(KERNELS))
    parser.add_argument("--most", type=int, help="mutants of a kernel: of more, evenly chosen ones")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    found, workers = {}, len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        free = Queue()
        for i in range(workers):
            free.put(copy_of_the_project(Path(folder) / str(i)))

        def one(job):
            kernel, name, line, what, text = job
            project = free.get()
            try:
                ends = tested(project, name, text, KERNELS[kernel][1])
            finally:
                free.put(project)
            print(f"{kernel} {name}:{line} {what}: {ends}", flush=True)
            return kernel, f"{name}:{line} {what}", ends

        for kernel in options.kernels:  # a mutant of what fails anyway would count as seen
            name = KERNELS[kernel][0][0]
            ends = tested(Path(folder) / "0", name, (ROOT / "kernels" / name).read_text(),
                          KERNELS[kernel][1])
            assert ends == "survived", f"{kernel}: its tests fail as it is"
        jobs = []
        for kernel in options.kernels:
            made = [(kernel, name, *m) for name in KERNELS[kernel][0]
                    for m in mutants((ROOT / "kernels" / name).read_text())]
            step = max(1.0, len(made) / (options.most or len(made)))
            jobs += [made[int(i * step)] for i in range(int(len(made) / step))]
        for kernel, what, ends in pool.map(one, jobs):
            of = found.setdefault(kernel, {"killed": 0, "made": 0, "survived": []})
            of["made"] += ends != "does not compile"
            of["killed"] += ends == "killed"
            if ends == "survived":
                of["survived"].append(what)
            if options.json:
                Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    for kernel, of in found.items():
        print(f"{kernel}: {of['killed']} of {of['made']} killed")
    return int(any(of["killed"] < 0.9 * of["made"] for of in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
