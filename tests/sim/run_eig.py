"""Runs syevd_block, built by `build` with ENTRY of run_svd, through its problems; for a process
that has the sanitizers:

    python -m tests.sim.run_eig LIBRARY KERNEL LETTER CONSTANTS(json) [n ...]

Four schedules must agree to the bit; a member alone gives what it gives in a batch; eigenvalues are
judged against NumPy's, eigenvectors by residual and orthogonality; the triangle that is not named
and the imaginary parts of the diagonal are nan.
"""

import json
import sys

import numpy as np
from cffi import FFI

from blasx._types import BY_DTYPE, TYPES
from blasx.batched._block import svd_room, teams_of

from .run import PASS, SCHEDULES, Memory, poisoned, same_under_all_schedules
from .run_gemm import random

ffi = FFI()


def problems(rng, dtype, n):
    """Members: random, zero, rank one, scaled near over- and underflow, graded, nan, identity,
    eigenvalues +1 and -1, infinite."""
    a = np.array([random(rng, dtype, n, n) for _ in range(10)])
    huge, tiny = (np.ldexp(dtype.type(1).real, k) for k in (
        {8: 1015, 4: 122}[dtype.type(0).real.itemsize],
        {8: -1060, 4: -142}[dtype.type(0).real.itemsize]))
    q = np.linalg.qr(a[8])[0]
    a[1] = 0
    a[2] = 1
    a[7] = np.eye(n)
    a[8] = q * np.where(np.arange(n) % 2, -1, 1) @ q.conj().T
    a = (a + a.conj().transpose(0, 2, 1)) / 2
    a[3] *= huge
    a[4] *= tiny
    grades = np.power(dtype.type(10), -np.arange(n) / 2)
    a[5] *= grades * grades[:, None]
    a[6, n // 2, n // 2] = np.nan
    a[9, 0, 0] = np.inf
    return a.astype(dtype)


def hidden(a, lower):
    """`a` with nan where nothing may be read."""
    n = a.shape[1]
    a, other, j = a.copy(), np.tri(n, k=-1, dtype=bool), np.arange(n)
    a[:, other.T if lower else other] = np.nan
    if a.dtype.kind == "c":
        a.imag[:, j, j] = np.nan
    return a


def judge(a, w, v, info):
    n, eps = len(a), np.finfo(a.dtype).eps
    if not np.isfinite(a).all():
        assert info == 1 and np.isnan(w).all() and (v is None or np.isnan(v).all())
        return
    assert info == 0 and (w[:-1] <= w[1:]).all()
    wide = np.result_type(a.dtype, np.float64)
    e = int(np.frexp(np.abs(a).max())[1]) if np.abs(a).max() else 0
    unit = np.ldexp(a.real, -e).astype(wide) + (
        1j * np.ldexp(a.imag, -e) if a.dtype.kind == "c" else 0)
    values = np.ldexp(w.astype(float), -e)
    floor = np.ldexp(float(np.finfo(a.dtype).smallest_subnormal), -e)  # of w itself
    right = np.linalg.eigvalsh(unit)
    bound = PASS * n * eps * max(1.0, np.abs(right).max()) + floor
    assert np.abs(values - right).max() < bound, (values, right)
    if v is None:
        return
    v = v.astype(wide)
    error = np.abs(v.conj().T @ v - np.eye(n)).max() / (n * eps)
    assert error < PASS, error
    assert np.abs(v * values @ v.conj().T - unit).max() < bound


def run(launch, dtype, c, n, order, lower, vectors):
    a = problems(np.random.default_rng(n), dtype, n)
    stored = hidden(a, lower)
    members = teams_of(c)
    real = dtype.type(0).real.dtype
    numbers, shared = svd_room(BY_DTYPE[dtype].letter, n, False, c)

    def simulate(a, schedule):
        """In place where there are vectors."""
        batch = len(a)
        source = Memory(a, order)
        w, info = poisoned((batch, n), real, "C"), poisoned((batch,), np.int32, "C")
        work = poisoned((batch, 1 if c["SHARED"] else numbers), dtype, "C")
        cells = [*source.matrix(not lower), not lower, *source.matrix(), vectors, w.address,
                 info.address, work.address, n, n, batch]
        launch(-(-batch // members), 32 * c["WARPS"], schedule, shared,
               ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in cells]))
        return [x.array.copy() for x in (w, info, source)]

    found = same_under_all_schedules([simulate(stored, schedule) for schedule in SCHEDULES])
    for i in (0, 8):
        for x, y in zip(found, simulate(stored[i:i + 1], 0)):
            assert x[i].tobytes() == y[0].tobytes(), "a member depends on its batch"
    w, info, v = found
    if not vectors:
        assert v.tobytes() == stored.tobytes(), "A was written to"
    for i in range(len(a)):
        judge(a[i], w[i], v[i] if vectors else None, info[i])


def main(library, kernel, letter, constants, *orders):
    ffi.cdef(f"void sim_{kernel}(unsigned, unsigned, int, unsigned, const uint64_t *);")
    launch = getattr(ffi.dlopen(library), "sim_" + kernel)
    for i, n in enumerate(map(int, orders)):
        with np.errstate(all="ignore"):
            run(launch, TYPES[letter].dtype, json.loads(constants), n, "CF"[i % 2], i // 2 % 2,
                int(i % 3 != 2))
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
