"""python -m tests.sanitize: all kernels under compute-sanitizer on the GPUs: memcheck, racecheck.

First a planted overrun and a planted race must be reported: a checker that sees nothing would pass
everything. Small batches, every type and layout, orders at the edges of the variants; every buffer
an allocation of its own, so that a step outside is seen, of whole packs of 16 bytes: memcheck takes
a copy that asks for the first bytes of a pack (cp.async) for one of all 16. The CPU's sanitizers,
which see what it asks for, see these bytes (tests/test_kernels*.py).
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

LETTERS = "sdczhb"
ORDERS = (1, 3, 4, 7, 8, 13, 16, 31, 32)   # of kernels()
SIZES = [(n, n, n) for n in (1, 5, 8, 15, 24, 32, 33, 40, 64, 65, 96, 129, 200)]
SIZES += [(70, 9, 33), (9, 70, 17), (150, 40, 40), (40, 150, 150)]  # (m, n, k) of routines()
PARTS = 3  # of the sizes, in a process each
FACTORS = [(300, 300, 300), (700, 250, 1), (250, 700, 1), (1100, 1100, 1)]  # of one_matrix()
PRODUCTS = [(640, 640, 512), (769, 1024, 520), (100, 300, 200)]
SOLVE = "gesv_", "getrs_", "posv_", "potrs_", "gels_", "trsm_"  # also for one right-hand side
PIVOTED = "geqp3", "sytrf", "sytrs", "sysv", "hetrf", "hetrs", "hesv"
PLANTED = {
    "memcheck": "b[threadIdx.x + 1] = a[threadIdx.x];",
    "racecheck": "__shared__ double s[64]; s[threadIdx.x] = a[threadIdx.x];"
                 " b[threadIdx.x] = s[63 - threadIdx.x];",
}


def check(gpu, tool, *what):
    """Run this file under a tool on one of the GPUs; its exit status."""
    start = time.perf_counter()
    run = subprocess.run(
        ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--print-limit", "5",
         sys.executable, "-m", "tests.sanitize", *what], capture_output=True, text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu)})
    lines = (run.stdout + run.stderr).strip().splitlines()
    if run.returncode not in (0, 9):
        print(*lines[-12:], sep="\n")
    summary = next((x for x in reversed(lines) if "SUMMARY" in x), lines[-1] if lines else "")
    print(f"{tool:9} {' '.join(what):20} exit {run.returncode}  {summary}"
          f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    return run.returncode


def apart():
    """No pool: every array an allocation of its own."""
    from cupy import cuda
    cuda.set_allocator(lambda size: cuda.MemoryPointer(cuda.Memory(-(-size // 16) * 16), 0))


def planted(tool):
    """A kernel with a bug that `tool` must see."""
    import cupy
    apart()
    a, b = cupy.zeros(64), cupy.zeros(64)
    text = f'extern "C" __global__ void k(const double* a, double* b) {{ {PLANTED[tool]} }}'
    cupy.RawKernel(text, "k")((1,), (64,), (a, b))
    cupy.cuda.Device().synchronize()


def kernels():
    """Every routine, type and order, members by rows and by columns, in place and not."""
    import cupy
    import numpy as np

    import blasx
    apart()
    rng = np.random.default_rng(0)
    launches = 0
    for letter, dtype in zip("sdcz", ("f4", "f8", "c8", "c16")):
        call = {name: getattr(blasx, f"{letter}{name}_batched")
                for name in ("getrf", "getrs", "gesv", "potrf", "potrs", "posv")}
        for n in ORDERS:
            a = rng.standard_normal((19, n, n)).astype(dtype)
            a[1], a[2] = rng.integers(-1, 2, (n, n)), 0
            h = (a @ a.conj().transpose(0, 2, 1) + 4 * np.eye(n)).astype(dtype)
            b = rng.standard_normal((19, n, 3)).astype(dtype)
            for order in "CF":
                def device(x):
                    x = cupy.asarray(x)
                    return x if order == "C" else x.transpose(0, 2, 1).copy().transpose(0, 2, 1)
                for overwrite in (0, 1):
                    lu, piv, _ = call["getrf"](device(a), overwrite)
                    for trans in (0, 1, 2):
                        call["getrs"](lu, piv, device(b), trans, overwrite)
                    call["gesv"](device(a), device(b), overwrite, overwrite)
                    for lower in (0, 1):
                        c, _ = call["potrf"](device(h), lower, overwrite)
                        call["potrs"](c, device(b), lower, overwrite)
                        call["posv"](device(h), device(b), lower, overwrite, overwrite)
                    launches += 11
    cupy.cuda.Device().synchronize()
    print("launches:", launches)


def one_warp_to_a_panel():
    """lu_shared.cuh without its barrier of some warps, which racecheck does not follow: with one
    it reports, now and then, what a warp writes before __syncthreads and another reads after it
    (every warp in the panel: nothing; one: nothing; CUDA 13.0)."""
    from blasx import _tuned
    for kernel in ("getrf_shared", "gesv_shared"):
        for rows in _tuned.table(90)[kernel].values():
            for row in rows:
                row["PANEL"] = 1


def judged(attempts, **options):
    """Run testers, (case, letter, size, flags, mode, right-hand sides) each; how many failed."""
    import cupy
    import numpy as np

    from testing import run, tester
    from testing.options import Options
    apart()
    rng, tests, failed = np.random.default_rng(0), 0, 0
    for case, letter, size, flags, mode, sides in attempts:
        asked = Options(check=1, warmup=False, device="gpu", mode=mode, nrhs=sides, **options)
        tester.prepare(asked)
        row = run.attempt(case, letter, size, flags, asked, rng, None)
        tests += 1
        if row["failed"]:
            failed += 1
            run.print_row(case, row)
    cupy.cuda.Device().synchronize()
    print("tests:", tests, "failed:", failed)
    return failed


def routines(letters, part=0, parts=1, tool=None):
    """Every batched routine through its tester, answers judged: for each type and size one of its
    combinations of flags, another each time. `part` of `parts` takes its share of the sizes."""
    from testing.cases import CASES
    if tool == "racecheck":
        one_warp_to_a_panel()

    def attempts():
        tests = count()
        for case in (c for c in CASES if c.group in ("batched", "vbatched")):
            flags, columns = list(case.variants()), case.columns.split()
            sizes = [x for x in SIZES[part::parts]
                     if x[0] == x[1] or ("M" in columns and "N" in columns)]
            for letter in letters:
                for size in sizes if letter in case.typed else ():
                    if tool == "racecheck" and case.name.startswith("gesvd") and size[2] > 128:
                        continue  # by QR, Cholesky, products, syevd, each under it by itself
                    for sides in (1, 5) if case.name.startswith(SOLVE) else (5,):
                        yield case, letter, size, flags[next(tests) % len(flags)], "auto", sides

    return judged(attempts(), batch=2)


def one_matrix(letter):
    """What has panels and products of ours for one matrix, what pivots and gemm, through their
    testers."""
    from testing.cases import CASES
    factors = [c for c in CASES if {"native", "hybrid"} <= set(c.modes)]
    products = [c for c in CASES if c.name == "gemm"]
    pivoted = [c for c in CASES if c.name in PIVOTED]
    return judged((case, letter, size, flags, mode, 1)
                  for cases, sizes, mode in ((factors, FACTORS, "native"),
                                             (pivoted, FACTORS[:2], "auto"),
                                             (products, PRODUCTS, "auto"))
                  for case in cases if letter in case.typed
                  for size in sizes for flags in case.variants())


def large_ways(letter):
    """What only large matrices come to by the tuned rows, of small ones: blocks of several parts,
    panels whose products are by remainders or pairs, these products and those by digits, LU between
    butterflies, solves by blocks, tall least squares, the polar factor."""
    import cupy

    import blasx
    from blasx import _tuned
    from blasx._types import TYPES
    apart()
    dtype, random = TYPES[letter].dtype, cupy.random.RandomState(0)

    def normal(*shape):
        x = random.standard_normal(shape)
        x = x + 1j * random.standard_normal(shape) if letter in "cz" else x
        return x.astype(dtype, order="F")

    def row(kernel, **change):
        found = _tuned.table(90)[kernel][letter][-1]
        return {kernel: {k: v for k, v in found.items() if k not in ("to", "vendor")} | change}

    def routine(name):
        return getattr(blasx, letter + name)

    a, b = normal(900, 900), normal(900, 3)
    spd = (a @ a.conj().T / 900 + cupy.eye(900)).astype(dtype, order="F")
    with _tuned.using(letter, **row("getrf_rows", joined=256, block=128, panel=64, strip=32,
                                    lead=1, cusolver=0)):
        lu, piv, _ = routine("getrf")(a, mode="native")
    with _tuned.using(letter, **row("trsv_blocks", upto=4)):
        for trans in (0, 1, 2):
            routine("getrs")(lu, piv, b, trans)
    if letter in "sd":
        with _tuned.using(letter, **row("potrf_panel", width=640 if letter == "s" else 256)):
            for lower in (0, 1):
                routine("potrf")(spd, lower, mode="native")
    if letter == "s":
        for x, y in ((a[:300], a), (a.T[:300], a[:, :131])):
            with _tuned.using(letter, **row("gemm_digits", side=1, depth=1)):
                routine("gemm")(1, x, y)
    if letter == "d":
        with _tuned.using("s", getrf_windows=dict(joined=256, block=64, WINDOW=128, ahead=1,
                                                  whole=256, turns=1, pays=1)):
            blasx.dsgesv_rbt(a, b)
    if letter in "dz":
        for conjugated in (0, 2):
            routine("gemm")(1, a[:300], b @ b.conj().T, trans_b=conjugated, variant="crt")
        with _tuned.using(letter, **row("gesdd_polar")):
            routine("gesdd")(a[:, :200])
    routine("gels")(normal(3000, 40), normal(3000, 2), mode="native")
    cupy.cuda.Device().synchronize()
    print("ways of large matrices")


def layers(letter):
    """Every layer of blasx.nn forward and backward, and a step of AdamW; convolution by boxes."""
    from copy import deepcopy

    import cupy
    import numpy as np

    from blasx import nn
    from blasx._types import TYPES
    from tests.test_nn_device import LAYERS
    apart()
    dtype = TYPES[letter].dtype
    images = nn.Conv2d(72, 80, 3, padding=1, rng=0), np.ones((2, 72, 9, 11), "f4")
    for layer, x in [*LAYERS, images]:
        there = deepcopy(layer).to(cupy, dtype)
        x = cupy.asarray(x.astype(dtype) if x.dtype.kind == "f" else x)
        y = there.forward(x)
        there.backward(cupy.ones(y.shape, "f4").astype(dtype))
        nn.AdamW(there).step()
    cupy.cuda.Device().synchronize()
    print("layers:", len(LAYERS) + 1)


def main(arguments):
    if arguments[:1] == ["planted"]:
        return planted(arguments[1])
    if arguments[:1] == ["kernels"]:
        return bool(kernels())
    if arguments[:1] == ["routines"]:
        letters, part, parts, tool = arguments[1:]
        return bool(routines(letters, int(part), int(parts), tool))
    if arguments[:1] == ["one_matrix"]:
        return bool(one_matrix(arguments[1]))
    if arguments[:1] == ["large_ways"]:
        return large_ways(arguments[1])
    if arguments[:1] == ["layers"]:
        return layers(arguments[1])
    kernels()  # fills the disk cache, so that the tools do not run over the compiler
    routines(LETTERS)
    for letter in LETTERS:
        one_matrix(letter)
    for letter in "sdcz":
        large_ways(letter)
    for letter in "sdhb":
        layers(letter)
    jobs = [(tool, "planted", tool) for tool in PLANTED]
    jobs += [(tool, "kernels") for tool in PLANTED]
    jobs += [(tool, "routines", letter, str(part), str(PARTS), tool)
             for part in reversed(range(PARTS)) for letter in LETTERS for tool in PLANTED]
    jobs += [(tool, "one_matrix", letter) for letter in LETTERS for tool in PLANTED]
    jobs += [(tool, "large_ways", letter) for letter in "sdcz" for tool in PLANTED]
    jobs += [(tool, "layers", letter) for letter in "sdhb" for tool in PLANTED]
    import cupy
    gpus = cupy.cuda.runtime.getDeviceCount()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [i % gpus for i in range(len(jobs))]
        status = dict(zip(jobs, pool.map(lambda gpu, job: check(gpu, *job), places, jobs)))
    bad = [job for job, found in status.items() if found != (9 if job[1] == "planted" else 0)]
    print("clean" if not bad else f"NOT clean: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
