"""Many matrices on the GPU: getrf getrs gesv getri potrf potrs posv, one right-hand side.

Sides: blasx in place and out of place (members by rows, as NumPy's users have them), and each peer
with members by columns, its own layout: torch and jax out of place, as their interfaces are; cuBLAS
and cuSOLVER through CuPy's low-level bindings, in place, with the arrays of pointers made before.
"""

import os
from functools import cache, partial

import numpy as np

from blasx import _errors as errors

from . import timing
from .timing import Row, Side

ROUTINES = ("getrf", "getrs", "gesv", "getri", "potrf", "potrs", "posv")
SIZES = ((4, 100_000), (8, 100_000), (16, 50_000), (32, 20_000), (64, 5000), (128, 1000),
         (256, 500), (512, 100))
JAX_UNTIL = 120  # seconds into the run: later rows leave jax out, which compiles each for seconds


def rows(letters, quick, family):
    """The rows of the family; their kernels are compiled first, several at once."""
    timing.gpu()
    timing.compile_ahead(letters, {n for n, _ in SIZES}, {*ROUTINES, "trsm"})
    for routine in ROUTINES:
        for letter in letters:
            for n, batch in SIZES:
                if n <= 32 or not quick:
                    yield row(routine, letter, n, batch // 10 if quick else batch)


def row(routine, letter, n, batch):
    a, b = problem(routine, letter, n, batch)
    nbytes = a.nbytes + b.nbytes * is_solve(routine)
    checks = {"getrf": lambda answer: errors.lu(a, *answer),
              "potrf": lambda answer: errors.cholesky(a, answer),
              "getri": lambda x: errors.solution(a, identity(a), x)}
    both_ways = 2 * a.nbytes if routine[-3:] in ("trf", "tri") else None
    peers = {"torch": torch_side,
             "cuBLAS" if "ge" in routine else "cuSOLVER": partial(nvidia_side, letter=letter)}
    if routine != "getri":
        peers["jax"] = jax_side
    return Row(routine, letter, f"{batch}x{n}x{n}",
               {"in place": partial(blasx_side, routine, letter, a, b, 1),
                "out of place": partial(blasx_side, routine, letter, a, b, 0)},
               {name: partial(side, routine, a, b) for name, side in peers.items()},
               checks.get(routine, lambda x: errors.solution(a, b, x)),
               timing.gpu_clock(nbytes), floor_bytes=both_ways)


def is_solve(routine):
    return routine[-3:] not in ("trf", "tri")


def identity(a):
    cupy = timing.gpu()
    return cupy.broadcast_to(cupy.eye(a.shape[1], dtype=a.dtype), a.shape)


def problem(routine, letter, n, batch):
    """A (batch, n, n), definite where the routine wants it, and B (batch, n, 1)."""
    cupy = timing.gpu()
    dtype = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter]
    random = cupy.random.RandomState(n)

    def normal(*shape):
        x = random.standard_normal(shape)
        return (x + 1j * random.standard_normal(shape) if letter in "cz" else x).astype(dtype)

    a, b = normal(batch, n, n), normal(batch, n, 1)
    if routine.startswith("po"):
        a = a @ a.conj().swapaxes(1, 2) / n + cupy.eye(n, dtype=dtype)
    return a, b


def columns(x):
    """A copy of a stack with its members by columns."""
    return x.swapaxes(1, 2).copy().swapaxes(1, 2)


def blasx_side(routine, letter, a, b, in_place):
    import blasx
    run = getattr(blasx, f"{letter}{routine}_batched")
    factors = {"getrs": lambda: blasx.getrf_batched(a)[:2],
               "getri": lambda: blasx.getrf_batched(a)[:2],
               "potrs": lambda: blasx.potrf_batched(a, 1)[:1]}.get(routine, lambda: (a.copy(),))
    order = {"getrf": lambda a: run(a, in_place), "potrf": lambda a: run(a, 1, in_place),
             "gesv": lambda a, b: run(a, b, in_place, in_place),
             "posv": lambda a, b: run(a, b, 1, in_place, in_place),
             "getrs": lambda lu, piv, b: run(lu, piv, b, 0, in_place),
             "getri": lambda lu, piv: run(lu, piv, in_place),
             "potrs": lambda c, b: run(c, b, 1, in_place)}[routine]
    answer = {"getrf": lambda r: r[:2], "potrf": lambda r: r[0], "gesv": lambda r: r[2],
              "posv": lambda r: r[1], "getrs": lambda r: r[0], "potrs": lambda r: r[0],
              "getri": lambda r: r[0]}[routine]
    overwrites = {"getrf": (0,), "potrf": (0,), "getri": (0,), "gesv": (0, 1), "posv": (0, 1),
                  "getrs": (2,), "potrs": (1,)}[routine]
    right = (lambda: (b.copy(),)) if is_solve(routine) else tuple
    return Side(lambda: (*factors(), *right()), order, answer, overwrites if in_place else ())


def torch_side(routine, a, b):
    import cupy
    import torch
    la = torch.linalg

    def matrix():
        return torch.from_dlpack(columns(a))

    eye = torch.from_dlpack(a).new_ones(a.shape[1]).diag().expand(a.shape)  # for the inverse
    factors = {"getrs": lambda: la.lu_factor_ex(matrix())[:2],
               "getri": lambda: (*la.lu_factor_ex(matrix())[:2], eye),
               "potrs": lambda: la.cholesky_ex(matrix())[:1]}.get(routine, lambda: (matrix(),))
    run = {"getrf": la.lu_factor_ex, "potrf": la.cholesky_ex, "gesv": la.solve_ex,
           "getrs": la.lu_solve, "getri": la.lu_solve,
           "potrs": lambda c, b: torch.cholesky_solve(b, c),
           "posv": lambda a, b: torch.cholesky_solve(b, la.cholesky_ex(a)[0])}[routine]

    def answer(result):
        if routine == "getrf":
            return cupy.from_dlpack(result[0]), cupy.from_dlpack(result[1]) - 1
        x = result if isinstance(result, torch.Tensor) else result[0]
        return cupy.from_dlpack(x)

    right = (lambda: (torch.from_dlpack(columns(b)),)) if is_solve(routine) else tuple
    return Side(lambda: (*factors(), *right()), run, answer)


def jax_side(routine, a, b):
    if timing.elapsed() > JAX_UNTIL:
        raise TimeoutError(f"left out: {JAX_UNTIL} s into the run, and jax compiles for seconds")
    jax = usable_jax()
    import cupy
    la, sla = jax.lax.linalg, jax.scipy.linalg
    from_cupy = jax.dlpack.from_dlpack
    factors = {"getrs": lambda: la.lu(from_cupy(a))[:2],
               "potrs": lambda: (la.cholesky(from_cupy(a), symmetrize_input=False),)}.get(
                   routine, lambda: (from_cupy(a.copy()),))
    run = {"getrf": lambda a: la.lu(a)[:2],
           "potrf": lambda a: la.cholesky(a, symmetrize_input=False),
           "gesv": jax.numpy.linalg.solve,
           "getrs": lambda lu, piv, b: sla.lu_solve((lu, piv), b),
           "potrs": lambda c, b: sla.cho_solve((c, True), b),
           "posv": lambda a, b: sla.cho_solve((la.cholesky(a, symmetrize_input=False), True), b)}
    answer = (lambda r: tuple(cupy.asarray(x) for x in r)) if routine == "getrf" else cupy.asarray
    right = (lambda: (from_cupy(b.copy()),)) if is_solve(routine) else tuple
    return Side(lambda: (*factors(), *right()), jax.jit(run[routine]), answer,
                wall=jax.block_until_ready)


@cache
def usable_jax():
    """jax with double precision, on the GPU, taking memory as it needs it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        raise RuntimeError("jax has no GPU here")
    return jax


def nvidia_side(routine, a, b, letter):
    """getrf, getrs and getriBatched of cuBLAS, potrfBatched and potrsBatched of cuSOLVER."""
    import cupy
    from cupy_backends.cuda.libs import cublas, cusolver
    batch, n = b.shape[:2]
    lu = "ge" in routine
    library = cublas if lu else cusolver
    handle = (cupy.cuda.device.get_cublas_handle() if lu
              else cupy.cuda.device.get_cusolver_handle())
    factor = getattr(library, letter + ("getrf" if lu else "potrf") + "Batched")
    solve = getattr(library, letter + ("getrs" if lu else "potrs") + "Batched")
    invert = getattr(cublas, letter + "getriBatched")
    status = np.zeros(1, "i4")  # getrsBatched reports its parameters on the host
    lower = cublas.CUBLAS_FILL_MODE_LOWER

    def trf(pa, piv, info):
        if lu:
            factor(handle, n, pa.data.ptr, n, piv.data.ptr, info.data.ptr, batch)
        else:
            factor(handle, lower, n, pa.data.ptr, n, info.data.ptr, batch)

    def trs(pa, piv, info, pb):
        if lu:
            solve(handle, cublas.CUBLAS_OP_N, n, 1, pa.data.ptr, n, piv.data.ptr, pb.data.ptr, n,
                  status.ctypes.data, batch)
        else:
            solve(handle, lower, n, 1, pa.data.ptr, n, pb.data.ptr, n, info.data.ptr, batch)

    def run(a, b, pa, pb, piv, info):
        if routine == "getri":
            invert(handle, n, pa.data.ptr, n, piv.data.ptr, pb.data.ptr, n, info.data.ptr, batch)
            return a, b, piv
        if routine[-3:] != "trs":
            trf(pa, piv, info)
        if is_solve(routine):
            trs(pa, piv, info, pb)
        return a, b, piv

    def operands():
        mine, right = columns(a), columns(a) if routine == "getri" else b.copy()
        piv, info = cupy.zeros((batch, n), "i4"), cupy.zeros(batch, "i4")
        these = mine, right, pointers(mine), pointers(right), piv, info
        if routine[-3:] in ("trs", "tri"):
            trf(these[2], piv, info)
        return these

    answer = {"getrf": lambda r: (r[0], r[2] - 1), "potrf": lambda r: r[0]}.get(
        routine, lambda r: r[1])
    overwrites = () if routine[-3:] in ("trs", "tri") else (0,)
    return Side(operands, run, answer, overwrites + ((1,) if is_solve(routine) else ()))


def pointers(x):
    """The addresses of a stack's members, on the device."""
    import cupy
    return cupy.arange(len(x), dtype="u8") * x.strides[0] + x.data.ptr
