"""Runs the CPU's core as tests.sim.build_core makes it: python -m tests.sim.run_core LIBRARY

Every operand ends where its memory does, so that a read or write beyond it is seen."""

import sys
from types import SimpleNamespace

import numpy as np
from cffi import FFI

import blasx
from blasx import _batch_build
from blasx.batched import _cpu

ORDERS = (1, 2, 3, 5, 8, 11, 16, 21, 33)
DTYPES = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}


def load(library):
    """This library in the place of the core."""
    ffi = FFI()
    ffi.cdef(_batch_build.DECLARATIONS)
    _cpu._batch = SimpleNamespace(ffi=ffi, lib=ffi.dlopen(library))


def random(letter, *shape):
    rng = np.random.default_rng(shape[-1])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if letter in "cz" else x).astype(DTYPES[letter])


def close(letter, n, found, expected):
    scale = abs(expected).max() if expected.size else 0
    assert abs(found - expected).max() <= 1000 * n * np.finfo(DTYPES[letter]).eps * scale


def members(letter, n, batch=19):
    """LU, Cholesky, QR of good members, one zero and one nan among them; solved and put together
    again."""
    x = random(letter, batch, n, n)
    definite = (x @ x.conj().transpose(0, 2, 1) + n * np.eye(n)).astype(x.dtype)
    b = random(letter, batch, n, 3)
    a = definite.copy()
    a[4], a[7] = 0, np.nan
    good = np.setdiff1d(np.arange(batch), [4, 7])
    _, piv, y, info = getattr(blasx, letter + "gesv_batched")(a, b)
    assert piv.min() >= 0 and piv.max() < n and info[4] == 1 and not info[good].any()
    close(letter, n, a[good] @ y[good], b[good])
    for lower in (0, 1):
        c, y, info = getattr(blasx, letter + "posv_batched")(a, b[:, :, 0], lower)
        assert info[4] == info[7] == 1 and not info[good].any()
        close(letter, n, (a[good] @ y[good][..., None])[..., 0], b[good][:, :, 0])
    view = np.zeros((batch, n + 3, 2 * n), x.dtype)[:, 2:n + 2, ::2]
    view[...] = definite
    assert not getattr(blasx, letter + "gesv_batched")(view, b, 1)[3].any()
    getattr(blasx, letter + "getrf_batched")(x[:, :, :n // 2 + 1])
    lu, piv, _ = getattr(blasx, letter + "getrf_batched")(definite)
    c, _ = getattr(blasx, letter + "potrf_batched")(definite, 1)
    for trans, turned in enumerate((definite, definite.swapaxes(1, 2), definite)):
        close(letter, n, turned @ getattr(blasx, letter + "getrs_batched")(lu, piv, b, trans)[0], b)
    close(letter, n, definite @ getattr(blasx, letter + "potrs_batched")(c, b, 1)[0], b)


def qr(letter, m, n, batch=9):
    a = random(letter, batch, m, n)
    me = SimpleNamespace(letter=letter, dtype=a.dtype, name=letter + "geqrf_batched")
    f, _, tau, _ = _cpu.own(me, "geqrf", a, 0)
    expected, scalars = np.linalg.qr(a, "raw")
    close(letter, max(m, n), f, expected.transpose(0, 2, 1))
    close(letter, max(m, n), tau, scalars)


def spectra(letter, m, n, batch=3):
    """Eigenvalues and singular values beside NumPy's."""
    a = random(letter, batch, m, n)
    me = SimpleNamespace(letter=letter, dtype=a.dtype, real=a.real.dtype, name="core")
    for full in (0, 1):
        u, s, vh, info = _cpu.svd(me, a, 1, full)
        k = min(m, n)
        close(letter, max(m, n), u[:, :, :k] * s[:, None] @ vh[:, :k], a)
        assert not info.any()
    close(letter, max(m, n), _cpu.svd(me, a, 0)[1], np.linalg.svd(a, compute_uv=False))
    if m == n:
        a = a + a.conj().transpose(0, 2, 1)
        for lower in (0, 1):
            w, v, info = _cpu.eigen(me, a, lower)
            close(letter, n, v * w[:, None] @ v.conj().transpose(0, 2, 1), a)
            assert not info.any()
        close(letter, n, _cpu.eigen(me, a, 1, 0)[0], np.linalg.eigvalsh(a))


def main(library):
    load(library)
    table = _cpu.tuned()
    for width in (16, 32, 64):
        _cpu.WIDTH = width
        _cpu.LANES.update({x: width // np.dtype(t).type(0).real.itemsize
                           for x, t in DTYPES.items()})
        for shared in (0, 1000):
            row = {"to": 128, "SHARED": shared, "US": 1}
            rows = {x: dict.fromkeys("sdcz", [row])
                    for x in ("getrf", "potrf", "geqrf", "getrs", "potrs")}
            _cpu.tuned = lambda rows=rows: table | rows
            _cpu.forget()
            for letter in "sdcz":
                for n in ORDERS:
                    if shared:
                        spectra(letter, n, n)
                    members(letter, n)
                    qr(letter, n, n)
                qr(letter, 7, 18)
                spectra(letter, 3, 9)
                spectra(letter, 9, 4)
                qr(letter, 19, 6)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
