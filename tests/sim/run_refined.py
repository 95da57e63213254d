"""Mixed precision and tall least squares on a GPU that is simulated, cuBLAS and factorizations,
which have tests of their own, answered by the CPU; for a process that has the sanitizers:

    python -m tests.sim.run_refined FOLDER

dsgesv by solves of ours, that stop when they are not needed any more, and by cuSOLVER's; gesv with
products of half precision; dsgels; CholeskyQR twice.
"""

import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
from scipy.linalg import lapack

from tests.cublas_on_cpu import _vector, never

from . import run_potrf
from .gpu import Array, install

OURS = dict(WARPS=8, SIDES=4, upto=2)  # trsv_blocks
TALL = dict(WARPS=2, tall=4, chunk=16)
products = []


def blas(name, *arguments):
    """cuBLAS by the CPU's; what rounds its operands first, by NumPy."""
    if name != "GemmStridedBatchedEx":
        return run_potrf.blas(name, *arguments)
    from blasx.refined import rounded
    _, _, m, n, k, alpha, a, _, lda, _, b, _, ldb, _, beta, c, _, ldc, *_, compute, _ = arguments
    products.append(compute)
    factor = {74: "fp16", 75: "bf16", 77: "tf32"}[compute]

    def columns(at, ld, rows, count):
        flat = _vector(at, ld * (count - 1) + rows, 1, np.dtype("f4"))
        return np.lib.stride_tricks.as_strided(flat, (rows, count), (4, 4 * ld))

    C = columns(c, ldc, m, n)
    C[...] = alpha[0] * (rounded(columns(a, lda, m, k), factor)
                         @ rounded(columns(b, ldb, k, n), factor)) + beta[0] * C


def getrf(me, a, mode="auto"):
    a[...], piv, info = getattr(lapack, me.letter + "getrf")(np.asarray(a))
    return on_gpu(piv), on_gpu(np.array(info, "i4"))


def getrs(me, lu, piv, x, trans=0):
    assert not trans
    x[...] = getattr(lapack, me.letter + "getrs")(np.asarray(lu), np.asarray(piv), np.asarray(x))[0]
    return on_gpu(np.zeros((), "i4"))


def geqrf(me, a, tau, mode="auto"):
    a[...], tau[...] = getattr(lapack, me.letter + "geqrf")(np.asarray(a))[:2]
    return on_gpu(np.zeros((), "i4"))


def ormqr(me, side, trans, a, tau, c):
    f = getattr(lapack, me.letter + ("unmqr" if me.is_complex else "ormqr"))
    trans = trans if trans == "N" else "TC"[me.is_complex]
    c[...] = f(side, trans, np.asarray(a), np.asarray(tau), np.asarray(c), 640)[0]
    return on_gpu(np.zeros((), "i4"))


def potrf_one(me, a, lower):
    c, info = getattr(lapack, me.letter + "potrf")(np.asarray(a), lower, 0)
    a[...] = c
    return on_gpu(np.array(info, "i4"))


def potrs(me, c, x, lower):
    x[...] = getattr(lapack, me.letter + "potrs")(np.asarray(c), np.asarray(x), lower)[0]
    return on_gpu(np.zeros((), "i4"))


def laswp(a, piv, overwrite_a):
    for j, p in enumerate(piv.tolist()):
        a[[j, p]] = a[[p, j]]


def potrf(me, a, lower, overwrite_a):
    """Of a batch of one."""
    c, info = getattr(lapack, me.letter + "potrf")(np.asarray(a[0]))
    return on_gpu(c[None]), on_gpu(np.array([info], "i4"))


def on_gpu(x):
    a = Array(x.shape, x.dtype, order="F")
    a[...] = x
    return a


def matrix(rng, m, n, cond, is_complex=False):
    def orthonormal(rows):
        x = rng.standard_normal((rows, n)) + 1j * is_complex * rng.standard_normal((rows, n))
        return np.linalg.qr(x if is_complex else x.real)[0]
    return orthonormal(m) * np.logspace(0, -np.log10(cond), n) @ orthonormal(n).conj().T


def solvers(blasx, kernels, rng):
    """As the CPU: the solution, and whether the fallback was needed; looks at the device."""
    from blasx._tuned import using
    for name, low, cond, own in (("dsgesv", "s", 1e3, 1), ("dsgesv", "s", 1e3, 0),
                                 ("dsgesv", "s", 1e11, 1), ("zcgesv", "c", 1e2, 1)):
        a = matrix(rng, 20, 20, cond, name[0] == "z")
        b = (a @ rng.standard_normal((20, 2))).astype(a.dtype)
        kernels.launched.clear()
        with using(low, trsv_blocks=OURS if own else None), blasx.trace() as trace:
            x, piv, steps, info = getattr(blasx, name)(on_gpu(a), on_gpu(b))
        assert (int(steps) < 0) == (cond > 1e9) and int(info) == 0, (name, cond, steps)
        assert ("trsv_blocks" in kernels.launched) == bool(own)
        assert steps < 0 or trace.calls[0].syncs == int(steps) + 1
        error = abs(b - a @ np.asarray(x)).max() / (abs(a).sum(1).max() * abs(x).max())
        assert error < 20 * 2.0**-53, (name, cond, error)


def unfit(blasx, rng):
    """What does not fit single precision, or is nan, is solved in double: -2."""
    from blasx._tuned import using
    for worst, of_b in ((1e40, 1), (-1e60, 1), (1, 1e40)):
        a, b = matrix(rng, 20, 20, 10), of_b * rng.standard_normal((20, 1))
        a[:, 3] *= worst
        with using("s", trsv_blocks=OURS):
            x, _, steps, info = blasx.dsgesv(on_gpu(a), on_gpu(b))
        assert int(steps) == -2 and int(info) == 0, (worst, of_b, steps, info)
        assert abs(b - a @ np.asarray(x)).max() < 1e-13 * abs(a).sum(1).max() * abs(x).max()
    a[5, 5] = np.nan
    x, _, steps, _ = blasx.dsgesv(on_gpu(a), on_gpu(b))
    assert int(steps) == -2 and np.isnan(x).any()
    a, b = np.diag([1e-30, 1]), np.array([[1e20], [1]])  # x is more than single precision has
    x, _, steps, info = blasx.dsgesv(on_gpu(a), on_gpu(b))
    assert int(steps) == -2 and int(info) == 0 and abs(x[0, 0] - 1e50) < 1e36 and x[1, 0] == 1


def gels(blasx, rng):
    for letter, m, n, cond in (("d", 30, 12, 1e3), ("z", 12, 30, 10), ("d", 30, 12, 1e11)):
        for trans in "N" + "TC"[letter == "z"]:
            a = matrix(rng, max(m, n), min(m, n), cond, letter == "z")
            a = a if m >= n else a.conj().T
            op = a if trans == "N" else a.conj().T
            b = rng.standard_normal((30, 2)).astype(a.dtype)
            name = dict(d="dsgels", z="zcgels")[letter]
            x, steps, info = getattr(blasx, name)(on_gpu(a), on_gpu(b), trans)
            assert (int(steps) < 0) == (cond > 1e9) and int(info) == 0
            wanted = np.linalg.lstsq(op, b[:len(op)])[0]
            assert abs(x - wanted).max() < 100 * 2.0**-53 * cond * abs(wanted).max()


def taken_off(blasx, rng):
    """What the LU and the QR of one large matrix multiply by pairs; the LU in half precision, too,
    by cuBLAS or by kernels of ours."""
    from blasx import _cuda
    from blasx._routine import Typed
    from blasx.large import lu as large
    from blasx.large import qr as large_qr
    me, taken = Typed("sgetrf", "s"), []

    def multiply_pairs(alpha, a, b, beta, c, high_only=False, turns=None):
        taken.append(high_only)
        run_potrf.multiply_pairs(alpha, a, b, beta, c)

    models = dict(split=lambda *x: [run_potrf.Lines(y) for y in x], multiply_pairs=multiply_pairs,
                  by_pairs=lambda m, n, k, is_complex, device: not is_complex and device == 0)
    for precision, row, by in (("fp32", 0, [False]), ("fp16", 1, [True]), ("fp16", 0, [])):
        a = on_gpu(rng.standard_normal((20, 17)).astype("f4"))
        before, products[:], taken[:] = np.array(a), [], []
        it = SimpleNamespace(me=me, a=a, m=20, ld=_cuda.ld(a), device=0, pairs=True,
                             precision=precision, halves=precision == "fp16", turns=None,
                             part=lambda first, last, a=a: a[:, first:last])
        with mock.patch.multiple(large, **models, by_halves=lambda *x, row=row: row):
            large.Factoring.multiply(it, 4, 5, 12, 17, 9, 20)
        right = before.copy()
        right[9:, 12:] -= before[9:, 4:9] @ before[4:9, 12:]
        assert taken == by and products == [74] * (not by)
        assert (2e-5 if not by else -1) < abs(a - right).max() < (1e-5 if by else 2.0**-9 * 45)
    V, C, TH = (on_gpu(rng.standard_normal(x).astype("f4")) for x in ((20, 3), (20, 7), (3, 3)))
    before = np.array(C)
    it = SimpleNamespace(me=me, a=C, m=20, device=0, pairs=True, x=on_gpu(np.zeros((3, 7), "f4")),
                         y=on_gpu(np.zeros((3, 7), "f4")), block=3, ld=20, one=_cuda.scalar(me, 1),
                         zero=_cuda.scalar(me, 0), at=lambda i, j: C[i:, j:].data.ptr)
    it.gemm = lambda *of: large_qr.Factoring.gemm(it, *of)
    its = SimpleNamespace(v=lambda i, j: V.data.ptr, t=lambda j: TH.data.ptr, ld=20,
                          part=lambda above, m, width: V)
    with mock.patch.multiple(large_qr, **models, serving=lambda *x: None):
        large_qr.Factoring._take_off(it, 0, 3, its, 0, 7, 0)
    right = before - np.array(V) @ (np.array(TH) @ (np.array(V).T @ before))
    assert abs(C - right).max() < 1e-4 * abs(right).max()


def definite(blasx, rng):
    """dsposv by solves of ours, one triangle given; too many right-hand sides are cuSOLVER's."""
    from blasx._tuned import using
    u = matrix(rng, 70, 70, 1)
    for lower, cond, nrhs in ((0, 1e4, 1), (1, 1e4, 2), (0, 1e12, 2)):
        a = u * np.logspace(0, -np.log10(cond), 70) @ u.T
        a, b = (a + a.T) / 2, rng.standard_normal((70, nrhs))
        half = np.where(np.tri(70, dtype=bool) == bool(lower), a, np.nan)
        np.fill_diagonal(half, a.diagonal())
        with using("s", trsv_blocks=OURS):
            x, steps, info = blasx.dsposv(on_gpu(half), on_gpu(b), lower)
        assert (int(steps) < 0) == (cond > 1e9) and int(info) == 0, (lower, cond, steps)
        error = abs(b - a @ np.asarray(x)).max() / (abs(a).sum(1).max() * abs(x).max())
        assert error < 30 * 2.0**-53, (lower, cond, error)


def expert(blasx, rng):
    for factor, refine, cond, falls in (("fp16", "ir", 10, 0), ("fp16", "gmres", 1e4, 0),
                                        ("bf16", "ir", 1e9, 1), ("fp32", "ir", 1e3, 0)):
        a, products[:] = matrix(rng, 36, 36, cond), []
        a *= np.logspace(-90, 90, 36)[:, None] * np.logspace(20, -20, 36)
        b = rng.standard_normal((36, 2)) * np.logspace(-90, 90, 36)[:, None]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            s = blasx.dgesv(on_gpu(a), on_gpu(b), factor=factor, refine=refine)
        assert (int(s.iter) < 0) == falls == len(said), (factor, refine, cond, s.iter)
        assert bool(products) == (factor != "fp32")
        x, r, c = (np.asarray(y) for y in (s.x, s.r[:, None], s.c[:, None]))
        errors = [(abs(f - e @ y).max(0) / (abs(e).sum(1).max() * abs(y).max(0) + abs(f).max(0))
                   ).max() for e, y, f in ((a, x, b), (r * a * c.T, x / c, r * b))]
        assert max(errors) < 12 * 2.0**-53 and float(s.backward_error) < 6 * 2.0**-53


def tall(blasx, rng):
    """Reflectors, R, the solution, the residual's norm; A is left where it will not do."""
    from blasx._tuned import using
    from blasx.large import tall as large
    letter = "z"  # what holds of it holds of the others
    for m, n, nrhs, fits in ((70, 6, 2, True), (40, 5, 1, True), (33, 8, 3, False),
                             (20, 1, 1, True)):
        me = getattr(blasx, letter + "gels")
        cond = 1e5
        a = matrix(rng, m, n, cond, True)
        b = rng.standard_normal((m, nrhs)).astype(me.dtype)
        trans = "N" if fits else "C"
        with using(letter, orhr_top=TALL):
            lqr, x, info = me(on_gpu(a), on_gpu(b), trans, mode="native")
        lqr, x, eps = np.asarray(lqr), np.asarray(x), np.finfo(me.dtype).eps
        V, R = np.tril(lqr, -1) + np.eye(m, n), np.triu(lqr[:n])
        W = np.concatenate((a, b), axis=1).astype(complex)
        for k in range(n):  # by reflectors: of what annihilates a column there is one, if unitary
            v = V[:, k]
            t = (W[k, k] - R[k, k]) / (v.conj() @ W[:, k])
            assert abs(abs(t) ** 2 * (v.conj() @ v) - 2 * t.real) < 30 * eps * cond
            W -= np.outer(v, t * (v.conj() @ W))
        rest = np.triu(R) - W[:n, :n], W[n:, :n]
        assert max(abs(y).max() for y in rest) < 30 * eps * abs(a).max(), (m, n)
        if fits:
            wanted = np.linalg.lstsq(a, b)[0]
            r = np.linalg.norm(b - a @ wanted, axis=0)
            assert np.allclose(np.linalg.norm(x[n:], axis=0), r, rtol=100 * eps * cond)
            far = abs(x[n:] - W[n:, n:]).max() / abs(b).max()
            assert far < 30 * eps * cond, far  # that of t
        else:
            wanted = np.linalg.lstsq(a.conj().T, b[:n])[0]
        assert abs(x[:len(wanted)] - wanted).max() < 20 * eps * cond * abs(wanted).max()
    a, b = on_gpu(matrix(rng, 60, 6, 1e12)), on_gpu(rng.standard_normal((60, 1)))
    for bad in (0, np.nan):
        a[3, 2] += bad
        before = np.array(a), np.array(b)
        from blasx._routine import Typed
        with using("d", orhr_top=TALL):
            assert large.serves(Typed("dgels", "d"), 60, 6, True)
            assert not large.gels(Typed("dgels", "d"), a, b, True)
        assert np.array_equal(a, before[0], equal_nan=True) and np.array_equal(b, before[1])


def main(folder):
    Path(folder).mkdir(exist_ok=True)
    kernels = install(folder)
    import blasx
    from blasx import _cuda, blas3, lu, mixed, qr, refined
    from blasx.large import lu as large_lu
    from blasx.large import tall as large_tall
    rng = np.random.default_rng(0)
    answers = {_cuda: dict(blas=blas), lu: dict(_getrf_gpu=getrf, _getrs_gpu=getrs),
               mixed: dict(_getrf_gpu=getrf, _getrs_gpu=getrs, _potrf_gpu=potrf_one,
                           _potrs_gpu=potrs), large_tall: dict(potrf=potrf),
               qr: dict(_geqrf_gpu=geqrf, _ormqr_gpu=ormqr), refined: dict(BLOCK=8, laswp=laswp),
               large_lu: dict(plan=lambda *of: None),
               blas3: dict(_gpu_gemm=SimpleNamespace(multiply=never, leaf=never,
                                                      multiply_halves=never))}
    with ExitStack() as stack:
        for module, names in answers.items():
            stack.enter_context(mock.patch.multiple(module, **names))
        for part in (tall, gels, taken_off, expert, definite):
            part(blasx, rng)
        solvers(blasx, kernels, rng)
        unfit(blasx, rng)
    assert set(kernels.launched) <= {"trsv_blocks", "permutation", "lag2s", "orhr_top"}
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
