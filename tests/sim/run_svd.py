"""Runs gesvd_vectors or gesvd_values, built by `build` with ENTRY, through its problems; for a
process that has the sanitizers:

    python -m tests.sim.run_svd LIBRARY KERNEL LETTER CONSTANTS(json) [m,n ...]

Four schedules must agree to the bit; a member alone gives what it gives in a batch; singular values
are judged against NumPy's, factors by residual and orthogonality.
"""

import json
import sys

import numpy as np
from cffi import FFI

from blasx._types import BY_DTYPE, TYPES
from blasx.batched._block import svd_room, teams_of

from .run import PASS, SCHEDULES, Memory, poisoned, same_under_all_schedules
from .run_gemm import random

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, int schedule, unsigned shared,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""
ffi = FFI()


def problems(rng, dtype, m, n):
    """Members: random, zero, rank one, scaled near over- and underflow, graded, nan, orthogonal
    columns, infinite."""
    a = np.array([random(rng, dtype, m, n) for _ in range(10)])
    huge, tiny = (np.ldexp(dtype.type(1).real, k) for k in (
        {8: 1015, 4: 122}[dtype.type(0).real.itemsize],
        {8: -1060, 4: -142}[dtype.type(0).real.itemsize]))
    a[1] = 0
    a[2] = 1
    a[3] *= huge
    a[4] *= tiny
    a[5] *= np.power(dtype.type(10), -np.arange(n) / 2)
    a[6, m // 2, n - 1] = np.nan
    a[7] = np.eye(m, n)
    a[8, :, n // 2:] = a[8, :, :n - n // 2]
    a[9, 0, 0] = np.inf
    return a


def judge(a, s, t, w, info):
    (m, n), eps = a.shape, np.finfo(a.dtype).eps
    if not np.isfinite(a).all():
        assert info == 1 and np.isnan(s).all() and (t is None or np.isnan(t).all())
        return
    assert info == 0 and (s[:-1] >= s[1:]).all() and (s >= 0).all()
    wide = np.result_type(a.dtype, np.float64)
    e = int(np.frexp(np.abs(a).max())[1]) if np.abs(a).max() else 0
    unit = np.ldexp(a.real, -e).astype(wide) + (
        1j * np.ldexp(a.imag, -e) if a.dtype.kind == "c" else 0)
    values = np.ldexp(s.astype(float), -e)
    floor = np.ldexp(float(np.finfo(a.dtype).smallest_subnormal), -e)  # of s itself
    bound = PASS * m * eps * max(1.0, values[0]) + floor
    right = np.linalg.svd(unit, compute_uv=False)
    assert np.abs(values - right).max() < bound, (values, right)
    if t is None:
        return
    t, w = t.astype(wide), w.astype(wide)
    for q in (t, w):
        error = np.abs(q.conj().T @ q - np.eye(q.shape[1])).max() / (m * eps)
        assert error < PASS, error
    assert np.abs(t[:, :n] * values @ w.conj().T - unit).max() < bound


def run(launch, kernel, dtype, c, m, n, order, full, adjoint):
    rng = np.random.default_rng(m + n)
    a = problems(rng, dtype, m, n)
    members = teams_of(c)
    vectors = kernel == "gesvd_vectors"
    real = dtype.type(0).real.dtype
    numbers, shared = svd_room(BY_DTYPE[dtype].letter, n, vectors, c)
    k = m if full else n

    def simulate(a, schedule):
        batch = len(a)
        source = Memory(a.conj().transpose(0, 2, 1) if adjoint else a, order)
        S = poisoned((batch, n), real, "C")
        info = poisoned((batch,), np.int32, "C")
        work = poisoned((batch, 1 if c["SHARED"] else numbers), dtype, "C")
        T, W = (poisoned((batch, *x), dtype, order) for x in ((m, k), (n, n)))
        cells = [*source.matrix(adjoint), adjoint]
        if vectors:
            cells += [*T.matrix(), 0, *W.matrix(), adjoint]
        cells += [S.address, info.address, work.address, m, n]
        cells += [k, batch] if vectors else [batch]
        launch(-(-batch // members), 32 * c["WARPS"], schedule, shared,
               ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in cells]))
        return [x.array.copy() for x in (S, info, *((T, W) if vectors else ()))]

    found = same_under_all_schedules([simulate(a, schedule) for schedule in SCHEDULES])
    for i in (0, 8):
        for x, y in zip(found, simulate(a[i:i + 1], 0)):
            assert x[i].tobytes() == y[0].tobytes(), "a member depends on its batch"
    s, info, *rest = found
    for i in range(len(a)):
        t, w = (rest[0][i], rest[1][i]) if vectors else (None, None)
        judge(a[i], s[i], t, w.conj() if vectors and adjoint else w, info[i])


def main(library, kernel, letter, constants, *shapes):
    ffi.cdef(f"void sim_{kernel}(unsigned, unsigned, int, unsigned, const uint64_t *);")
    launch = getattr(ffi.dlopen(library), "sim_" + kernel)
    for i, shape in enumerate(shapes):
        m, n = map(int, shape.split(","))
        with np.errstate(all="ignore"):
            run(launch, kernel, TYPES[letter].dtype, json.loads(constants), m, n, "CF"[i % 2],
                i % 2 == 0, i % 3 == 2)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
