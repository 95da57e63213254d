"""Eigenvalues and eigenvectors: of Hermitian matrices, of pairs of them, of general matrices.

A Hermitian matrix is given by one triangle; the other is not read. Its eigenvalues are real and
ascend, its eigenvectors are orthonormal: A = Z diag(w) Z^H. A real symmetric matrix (syevd) and a
complex Hermitian one (heevd) share a routine here, and both are its generic names.

Golub, Van Loan: Matrix Computations, 7 and 8; LAPACK Users' Guide, 2.4.4 to 2.4.7.
"""

import numpy as np
from scipy.linalg import lapack as scipy_lapack

from . import _trace
from ._lapack import INT, LARGEST, ld, taken
from ._routine import BY_DTYPE, also, cupy, public, typed

RANGES = {"A": 1001, "I": 1002, "V": 1003}  # cusolverEigRange_t


def syevd(me, a, compute_v=1, lower=0, lwork=None, liwork=None, lrwork=None, overwrite_a=0):
    """Eigenvalues and eigenvectors of a Hermitian matrix, by divide and conquer (complex heevd).

    Parameters
    ----------
    a : (n, n) array
        Its upper triangle, or its lower one if `lower`. Overwritten by the eigenvectors if
        `overwrite_a`: in place where `a` is column-major and aligned, views included.
    compute_v : {0, 1}
        0: the eigenvalues alone.
    lower : {0, 1}
    lwork, liwork, lrwork : int, optional
        LAPACK's workspaces; what it works best with if not given. The real names have no
        `lrwork`. The GPU takes what it needs.

    Returns
    -------
    w : (n,) real array
        Ascending.
    v : (n, n) array
        The eigenvectors, by columns; what is left of `a` if they are not asked for.
    info : int (GPU: 0-d array)
        k > 0: not converged.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xsyevd in the current stream, no synchronisation.
    4/3 n^3 operations for the values, about 9 n^3 with vectors, fewer where blocks deflate.
    Cuppen, Numer. Math. 36 (1981) 177; Gu, Eisenstat, SIAM J. Matrix Anal. Appl. 16 (1995) 172.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    compute_v = me.choice(compute_v, "compute_v", (0, 1))
    lower = me.choice(lower, "lower", (0, 1))
    lwork, *others = _conquer(me, n, compute_v, lwork, lrwork, liwork)
    if me.on_cpu(a):
        v, w = taken(a, overwrite_a), np.zeros(n, me.real)
        _, info = me.worked(me.name[1:], lwork, "NV"[compute_v], "UL"[lower], n, v, ld(v), w,
                            after=_space(me, *others))
    else:
        from . import _cuda as gpu
        v, w = gpu.output(a, overwrite_a), cupy().zeros(n, me.real)
        info = _syevd_gpu(me, v, w, compute_v, lower)
    return w, v, info


def _syevd_gpu(me, v, w, compute_v, lower):
    """Overwrite column-major `v` by its eigenvectors, `w` by the eigenvalues; info."""
    from . import _cuda as gpu
    n, t = v.shape[0], me.type.cuda
    if not n:
        return cupy().zeros((), np.int32)
    return gpu.solver64("Xsyevd", "iinipnipi", (
        compute_v, gpu.fill(lower), n, t, v.data.ptr, gpu.ld(v), _real(me), w.data.ptr, t))


def _real(me):
    """The cudaDataType of the real type beneath the routine's."""
    return BY_DTYPE[me.real].cuda


def _conquer(me, n, vectors, lwork, lrwork, liwork):
    """The workspaces of divide and conquer checked; the least where LAPACK knows none better."""
    if n < 2:
        least = 1, 1, 1
    elif me.is_complex:
        least = (n * (n + 2), 1 + 5 * n + 2 * n * n, 3 + 5 * n) if vectors else (n + 1, n, 1)
    else:
        least = (1 + 6 * n + 2 * n * n, 1, 3 + 5 * n) if vectors else (2 * n + 1, 1, 1)
    given = zip((lwork, lrwork, liwork), ("lwork", "lrwork", "liwork"), least)
    lwork, *others = [x if x is None else me.integer(x, name, low, LARGEST)
                      for x, name, low in given]
    return lwork, *(low if x is None else x for x, low in zip(others, least[1:]))


def _space(me, lrwork, liwork):
    """The workspaces that follow the first in LAPACK's calls."""
    real = (np.empty(lrwork, me.real), lrwork) if me.is_complex else ()
    return *real, np.empty(liwork, INT), liwork


# -- some of the eigenvalues


def syevr(me, a, compute_v=1, range="A", lower=0, vl=0.0, vu=1.0, il=1, iu=None, abstol=0.0,
          lwork=None, lrwork=None, liwork=None, overwrite_a=0):
    """All or some eigenvalues and eigenvectors of a Hermitian matrix, by MRRR (complex heevr).

    Parameters
    ----------
    a : (n, n) array
        One triangle, as of syevd. Destroyed if `overwrite_a`.
    compute_v : {0, 1}
        0: the eigenvalues alone.
    range : {'A', 'V', 'I'}
        All; those in (vl, vu]; number il to iu, counted from 1 and from the smallest.
    lower : {0, 1}
    vl, vu : float
    il, iu : int
        1 and n if not given.
    abstol : float
        The error that an eigenvalue may have; 0 for LAPACK's choice.
    lwork, lrwork, liwork : int, optional
        As of syevd, at least 26 n, 10 n (complex 2 n, 24 n, 10 n).

    Returns
    -------
    w : (n,) real array
        The first m ascend; the others have no meaning.
    z : (n, n) array, (n, iu - il + 1) for range 'I'
        The eigenvectors in its first m columns; (0, 0) if not asked for.
    m : int (GPU: 0-d array)
    isuppz : int32 array
        Rows isuppz[2 k] to isuppz[2 k + 1] of z[:, k], counted from 1, may be other than zero;
        as long as SciPy has it.
    info : int (GPU: 0-d array)
        k > 0: not converged; CPU: 1 and m = 0 if `a` is not finite.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER, divide and conquer: Xsyevd for range 'A', in the current stream, no
    synchronisation; Xsyevdx for the others, which returns m on the host and synchronises; abstol
    is not looked at, and isuppz names all rows.
    4/3 n^3 operations for the values, 2 n^2 m more for the vectors.
    Dhillon, Parlett, Linear Algebra Appl. 387 (2004) 1; LAPACK Users' Guide, xSYEVR.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    compute_v, lower, how = _selection(me, n, compute_v, lower, range, vl, vu, il, iu, abstol)
    least = (2 * n, 24 * n, 10 * n) if me.is_complex else (26 * n, None, 10 * n)
    sizes = [x if x is None else me.integer(x, name, low if n > 1 else 1, LARGEST)
             for x, name, low in zip((lwork, lrwork, liwork), ("lwork", "lrwork", "liwork"), least)]
    sizes = sizes if me.is_complex else sizes[::2]
    all_of_them = how[0] == "A" or (how[0] == "I" and how[4] - how[3] + 1 == n)
    support = 2 * max(n, 1) if me.is_complex else 2 * n * (compute_v and all_of_them)
    if me.on_cpu(a) and n and _finite(a, lower):
        best = getattr(scipy_lapack, me.name + "_lwork")(n, lower)[:-1]
        sizes = [int(b.real) if x is None else x for x, b in zip(sizes, best)]
        me.strided(a, overwrite_a)  # for trace(): SciPy's wrapper copies what it cannot destroy
        return me.scipy(a, compute_v, how[0], lower, *how[1:], *sizes, overwrite_a)
    w, z, m, info = _selected(me, a, compute_v, lower, how, overwrite_a)
    xp = np if me.on_cpu(a) else cupy()
    return w, z, m, xp.resize(xp.asarray([1, n], np.int32), support), info


def _selection(me, n, compute_v, lower, range, vl, vu, il, iu, abstol):
    """The arguments that choose among n eigenvalues, checked; LAPACK's five in their order."""
    compute_v = me.choice(compute_v, "compute_v", (0, 1))
    lower = me.choice(lower, "lower", (0, 1))
    range = me.flag(range, "range", "AVI")
    vl, vu = me.real_number(vl, "vl"), me.real_number(vu, "vu")
    abstol = me.real_number(abstol, "abstol")
    il, iu = me.integer(il, "il"), me.integer(n if iu is None else iu, "iu")
    if range == "V" and not vl < vu:
        me.illegal("vu", vu, f"greater than vl = {vl}")
    if range == "I" and n:
        me.integer(il, "il", 1, n)
        me.integer(iu, "iu", il, n)
    elif range != "I":  # LAPACK's wrappers look at them all the same
        il, iu = min(n, 1), n
    if range != "V":
        vl, vu = 0.0, 1.0
    return compute_v, lower, (range, vl, vu, il, iu, abstol)


def _finite(a, lower):
    """False where the triangle has a nan or an inf, on which LAPACK's bisection may not end."""
    return np.isfinite(np.tril(a) if lower else np.triu(a)).all()


def _selected(me, a, compute_v, lower, how, overwrite, solve=None):
    """(w, z, m, info) of a CuPy matrix; of an empty one; of a NumPy matrix that is not finite:
    nothing found. `solve`, given where the problem is not the standard one, does what `_some_gpu`
    does."""
    (range, _, _, il, iu, _), n = how, a.shape[0]
    if not n:
        xp, info = (np, 0) if me.on_cpu(a) else (cupy(), cupy().zeros((), np.int32))
        return xp.zeros(0, me.real), xp.zeros((0, 0), me.dtype), info, info
    if me.on_cpu(a):
        shape = (n, iu - il + 1 if range == "I" else n) if compute_v else (0, 0)
        return np.full(n, np.nan, me.real), np.full(shape, np.nan, me.dtype, order="F"), 0, 1
    from . import _cuda as gpu
    xp = cupy()
    v, w = gpu.output(a, overwrite), xp.zeros(n, me.real)
    if solve is None and range == "A":
        info, m = _syevd_gpu(me, v, w, compute_v, lower), n
    else:
        count = gpu.ffi.new("int64_t *")
        info = (solve or _some_gpu)(me, v, w, compute_v, lower, how, count)
        m = count[0]
        _trace.note(synced=1)
    w[m:] = 0
    if not compute_v:
        z = xp.zeros((0, 0), me.dtype)
    elif range == "I":
        z = v[:, :iu - il + 1]
    else:
        z = v
        z[:, m:] = 0
    return w, z, xp.full((), m, np.int32), info


def _some_gpu(me, v, w, compute_v, lower, how, count):
    """Overwrite column-major `v` and `w` by the eigenpairs asked for, count[0] by their number;
    info."""
    from . import _cuda as gpu
    range, vl, vu, il, iu, _ = how
    t = me.type.cuda
    return gpu.solver64("Xsyevdx", "iiinipnhhnnhipi", (
        compute_v, RANGES[range], gpu.fill(lower), v.shape[0], t, v.data.ptr, gpu.ld(v),
        gpu.real_scalar(me, vl), gpu.real_scalar(me, vu), il, iu, count, _real(me), w.data.ptr, t))


def syevx(me, a, compute_v=1, range="A", lower=0, vl=0.0, vu=1.0, il=1, iu=None, abstol=0.0,
          lwork=None, overwrite_a=0):
    """All or some eigenvalues and eigenvectors of a Hermitian matrix, by bisection and inverse
    iteration (complex heevx).

    Parameters
    ----------
    a, compute_v, range, lower, vl, vu, il, iu, abstol
        As of syevr.
    lwork : int, optional
        As of syevd, at least 8 n (complex 2 n).
    overwrite_a : {0, 1}

    Returns
    -------
    w, z, m
        As of syevr.
    ifail : (n,) int32 array
        The numbers, from 1, of the eigenvectors that did not converge; (0,) if not asked for.
    info : int (GPU: 0-d array)
        k > 0: k eigenvectors did not converge; CPU: 1 and m = 0 if `a` is not finite.

    Notes
    -----
    CPU: LAPACK. GPU: as syevr; ifail is zero.
    4/3 n^3 operations for the values, 2 n^2 m more for the vectors, and where they cluster n m^2
    for making them orthogonal. LAPACK Users' Guide, xSYEVX.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    compute_v, lower, how = _selection(me, n, compute_v, lower, range, vl, vu, il, iu, abstol)
    lwork = _inverse_iteration(me, n, lwork)
    if me.on_cpu(a) and n and _finite(a, lower):
        if lwork is None:
            lwork = int(getattr(scipy_lapack, me.name + "_lwork")(n, lower)[0].real)
        me.strided(a, overwrite_a)
        return me.scipy(a, compute_v, how[0], lower, *how[1:], lwork, overwrite_a)
    w, z, m, info = _selected(me, a, compute_v, lower, how, overwrite_a)
    xp = np if me.on_cpu(a) else cupy()
    return w, z, m, xp.zeros(n * compute_v, np.int32), info


def _inverse_iteration(me, n, lwork):
    least = (2 if me.is_complex else 8) * n if n > 1 else 1
    return lwork if lwork is None else me.integer(lwork, "lwork", least, LARGEST)


# -- pairs of matrices


def sygvd(me, a, b, itype=1, jobz="V", uplo="L", lwork=None, lrwork=None, liwork=None,
          overwrite_a=0, overwrite_b=0):
    """Eigenvalues and eigenvectors of A x = w B x and its kin, by divide and conquer (hegvd).

    Parameters
    ----------
    a, b : (n, n) arrays
        One triangle of a Hermitian matrix and of a positive definite one. Overwritten by the
        eigenvectors and by the Cholesky factor of B if `overwrite_a` and `overwrite_b`: in place
        where column-major, views included.
    itype : {1, 2, 3}
        A x = w B x; A B x = w x; B A x = w x.
    jobz : {'N', 'V'}
        The eigenvalues alone; the eigenvectors too.
    uplo : {'U', 'L'}
    lwork, lrwork, liwork : int, optional
        As of syevd.

    Returns
    -------
    w : (n,) real array
        Ascending.
    v : (n, n) array
        The eigenvectors, Z^H B Z = I, or Z^H B^-1 Z = I for itype 3; what is left of `a` if they
        are not asked for.
    info : int (GPU: 0-d array)
        k > n: the leading minor of order k - n of B is not positive definite; else k > 0: not
        converged.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER sygvd/hegvd in the current stream, no synchronisation.
    About 14 n^3 operations with vectors. LAPACK Users' Guide, xSYGVD.
    """
    a, b, itype, jobz, uplo = _pair(me, a, b, itype, jobz, uplo, overwrite_a, overwrite_b)
    n = a.shape[0]
    lwork, *others = _conquer(me, n, jobz == "V", lwork, lrwork, liwork)
    if me.on_cpu(a, b):
        v, b, w = taken(a, overwrite_a), taken(b, overwrite_b), np.zeros(n, me.real)
        _, info = me.worked(me.name[1:], lwork, itype, jobz, uplo, n, v, ld(v), b, ld(b), w,
                            after=_space(me, *others))
        return w, v, info
    from . import _cuda as gpu
    v, b, w = gpu.output(a, overwrite_a), gpu.output(b, overwrite_b), cupy().zeros(n, me.real)
    if not n:
        return w, v, cupy().zeros((), np.int32)
    info = gpu.solver32(me, me.name[1:], "iiiipipip", (
        itype, int(jobz == "V"), gpu.fill(uplo == "L"), n, v.data.ptr, gpu.ld(v), b.data.ptr,
        gpu.ld(b), w.data.ptr))
    return w, v, info


def _pair(me, a, b, itype, jobz, uplo, overwrite_a, overwrite_b):
    """The checked arguments that the problems with two matrices share."""
    a, b = me.square(a, "a", overwrite_a), me.square(b, "b", overwrite_b)
    me.shaped(b, "b", a.shape)
    itype = me.choice(itype, "itype", (1, 2, 3))
    jobz, uplo = me.flag(jobz, "jobz", "NV"), me.flag(uplo, "uplo", "UL")
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    return a, b, itype, jobz, uplo


def sygvx(me, a, b, itype=1, jobz="V", range="A", uplo="L", vl=0.0, vu=1.0, il=1, iu=None,
          abstol=0.0, lwork=None, overwrite_a=0, overwrite_b=0):
    """All or some eigenvalues and eigenvectors of A x = w B x and its kin (complex hegvx).

    Parameters
    ----------
    a, b : (n, n) arrays
        As of sygvd. Destroyed if `overwrite_a` and `overwrite_b`.
    itype, jobz, uplo
        As of sygvd.
    range, vl, vu, il, iu, abstol
        As of syevr.
    lwork : int, optional
        As of syevx.

    Returns
    -------
    w, z, m
        As of syevr, the eigenvectors normalized as those of sygvd.
    ifail, info
        As of syevx; k > n: as of sygvd, and m = 0.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER sygvdx/hegvdx in the current stream, divide and conquer, which
    returns m on the host and synchronises; abstol is not looked at, and ifail is zero.
    LAPACK Users' Guide, xSYGVX.
    """
    a, b, itype, jobz, uplo = _pair(me, a, b, itype, jobz, uplo, overwrite_a, overwrite_b)
    n = a.shape[0]
    compute_v, lower, how = _selection(me, n, int(jobz == "V"), int(uplo == "L"), range, vl, vu,
                                       il, iu, abstol)
    lwork = _inverse_iteration(me, n, lwork)
    if me.on_cpu(a, b) and n and _finite(a, lower) and _finite(b, lower):
        if lwork is None:
            lwork = int(getattr(scipy_lapack, me.name + "_lwork")(n, uplo)[0].real)
        me.strided(a, overwrite_a), me.strided(b, overwrite_b)
        return me.scipy(a, b, itype, jobz, how[0], uplo, *how[1:], lwork, overwrite_a, overwrite_b)

    def solve(me, v, w, compute_v, lower, how, count):
        from . import _cuda as gpu
        range, vl, vu, il, iu, _ = how
        factor, found = gpu.output(b, overwrite_b), gpu.ffi.new("int *")
        number = "f" if me.letter in "sc" else "d"
        info = gpu.solver32(me, me.name[1:-1] + "dx", f"iiiiipipi{number}{number}iihp", (
            itype, compute_v, RANGES[range], gpu.fill(lower), n, v.data.ptr, gpu.ld(v),
            factor.data.ptr, gpu.ld(factor), vl, vu, il, iu, found, w.data.ptr))
        count[0] = found[0]
        return info

    w, z, m, info = _selected(me, a, compute_v, lower, how, overwrite_a, solve)
    xp = np if me.on_cpu(a) else cupy()
    return w, z, m, xp.zeros(n * compute_v, np.int32), info


# -- general matrices


def geev(me, a, compute_vl=1, compute_vr=1, lwork=None, overwrite_a=0):
    """Eigenvalues and left and right eigenvectors of a general matrix, by QR iteration.

    Parameters
    ----------
    a : (n, n) array
        Destroyed if `overwrite_a`.
    compute_vl, compute_vr : {0, 1}
    lwork : int, optional
        LAPACK's workspace, at least 4 n with eigenvectors and 3 n without (complex 2 n); what it
        works best with if not given.

    Returns
    -------
    wr, wi : (n,) real arrays; of complex types one complex array w
        The eigenvalues; conjugate pairs are neighbours, the one with wi > 0 first.
    vl, vr : (n, n) arrays
        vl[:, k]^H A = w[k] vl[:, k]^H and A vr[:, k] = w[k] vr[:, k], of norm 1. Of real types
        columns k, k + 1 are the real and imaginary part of the first of a pair. (1, n) and
        without meaning where not asked for, as SciPy has it.
    info : int (GPU: 0-d array)
        k > 0: not converged; elements k and on of the eigenvalues are right. 1, and all nan, if
        `a` is not finite.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xgeev (CUDA 12.8 and later), in the current stream, in which the
    host takes part, once it has waited for a check that `a` is finite. With left eigenvectors, or
    an older cuSOLVER, `a` is copied to the CPU (TransferWarning).
    10 n^3 operations for the values, about 25 n^3 with vectors. LAPACK Users' Guide, xGEEV.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    vectors = [me.choice(compute_vl, "compute_vl", (0, 1)),
               me.choice(compute_vr, "compute_vr", (0, 1))]
    least = 2 * n if me.is_complex else (4 if any(vectors) else 3) * n
    lwork = lwork if lwork is None else me.integer(lwork, "lwork", max(least, 1), LARGEST)
    cpu = me.on_cpu(a)
    if not n:
        xp = np if cpu else cupy()
        w = [xp.zeros(0, me.dtype) for _ in ("w" if me.is_complex else ("wr", "wi"))]
        v = [xp.zeros((0 if asked else 1, 0), me.dtype) for asked in vectors]
        return *w, *v, 0 if cpu else xp.zeros((), np.int32)
    if not cpu:
        from . import _cuda as gpu
        if vectors[0] or not gpu.has_solver("Xgeev", GEEV):
            return me.through_cpu(a, *vectors, lwork, overwrite_a)
        return _geev_gpu(me, gpu.output(a, overwrite_a), vectors[1])
    if not np.isfinite(a).all():  # LAPACK prints that lascl refuses it, and returns zeros
        w = [np.full(n, np.nan, me.dtype) for _ in ("w" if me.is_complex else ("wr", "wi"))]
        v = [np.full((n if asked else 1, n), np.nan, me.dtype, order="F") for asked in vectors]
        return *w, *v, 1
    if lwork is None:
        best = getattr(scipy_lapack, me.name + "_lwork")
        lwork = max(int(best(n, *vectors)[0].real), least)
    me.strided(a, overwrite_a)
    return me.scipy(a, *vectors, lwork, overwrite_a)


GEEV = "iinipnipipnipni"  # its parameters, as gpu.CUBLAS spells them


def _geev_gpu(me, a, compute_vr):
    """As geev, without left vectors, of a column-major CuPy array, which is destroyed."""
    from . import _cuda as gpu
    xp, n, t = cupy(), a.shape[0], me.type.cuda
    w = xp.zeros(n if me.is_complex else 2 * n, me.dtype)
    vl = xp.zeros((1, n), me.dtype)
    vr = xp.zeros((n if compute_vr else 1, n), me.dtype, order="F")
    _trace.note(synced=1)
    if not xp.isfinite(a).all():  # cuSOLVER ends with an internal error, LAPACK with nan
        for x in (w, vl, vr):
            x += np.nan
        return *((w,) if me.is_complex else (w[:n], w[n:])), vl, vr, xp.ones((), np.int32)
    info = gpu.solver64("Xgeev", GEEV, (
        0, compute_vr, n, t, a.data.ptr, gpu.ld(a), t, w.data.ptr, t, vl.data.ptr, n,
        t, vr.data.ptr, n, t))
    return *((w,) if me.is_complex else (w[:n], w[n:])), vl, vr, info


# -- how much workspace


def syevd_lwork(me, n, compute_v=1, lower=0):
    """The workspaces that syevd works best with, for order `n`: (work, iwork, info), complex
    (work, iwork, rwork, info)."""
    return me.scipy(me.extent(n, "n"), me.choice(compute_v, "compute_v", (0, 1)),
                    me.choice(lower, "lower", (0, 1)))


def syevr_lwork(me, n, lower=0):
    """The workspaces that syevr works best with, for order `n`: (work, iwork, info), complex
    (work, rwork, iwork, info)."""
    return me.scipy(me.extent(n, "n"), me.choice(lower, "lower", (0, 1)))


def syevx_lwork(me, n, lower=0):
    """The workspace that syevx works best with, for order `n`: (work, info)."""
    return me.scipy(me.extent(n, "n"), me.choice(lower, "lower", (0, 1)))


def sygvx_lwork(me, n, uplo="L"):
    """The workspace that sygvx works best with, for order `n`: (work, info)."""
    return me.scipy(me.extent(n, "n"), me.flag(uplo, "uplo", "UL"))


def geev_lwork(me, n, compute_vl=1, compute_vr=1):
    """The workspace that geev works best with, for order `n`: (work, info)."""
    return me.scipy(me.extent(n, "n"), me.choice(compute_vl, "compute_vl", (0, 1)),
                    me.choice(compute_vr, "compute_vr", (0, 1)))



def _names(routine):
    """ssyevd dsyevd cheevd zheevd, of syevd."""
    return f"ssy{routine} dsy{routine} che{routine} zhe{routine}"


syevd, ssyevd, dsyevd, cheevd, zheevd = typed(syevd, "sdcz", _names("evd"), "lrwork")
syevr, ssyevr, dsyevr, cheevr, zheevr = typed(syevr, "sdcz", _names("evr"), "lrwork")
syevx, ssyevx, dsyevx, cheevx, zheevx = typed(syevx, "sdcz", _names("evx"))
sygvd, ssygvd, dsygvd, chegvd, zhegvd = typed(sygvd, "sdcz", _names("gvd"), "lrwork")
sygvx, ssygvx, dsygvx, chegvx, zhegvx = typed(sygvx, "sdcz", _names("gvx"))
heevd, heevr = also(syevd, "heevd", zheevd), also(syevr, "heevr", zheevr)
heevx = also(syevx, "heevx", zheevx)
hegvd, hegvx = also(sygvd, "hegvd", zhegvd), also(sygvx, "hegvx", zhegvx)
geev, sgeev, dgeev, cgeev, zgeev = typed(geev, "sdcz")

syevd_lwork, ssyevd_lwork, dsyevd_lwork, cheevd_lwork, zheevd_lwork = typed(
    syevd_lwork, "sdcz", _names("evd_lwork"))
syevr_lwork, ssyevr_lwork, dsyevr_lwork, cheevr_lwork, zheevr_lwork = typed(
    syevr_lwork, "sdcz", _names("evr_lwork"))
syevx_lwork, ssyevx_lwork, dsyevx_lwork, cheevx_lwork, zheevx_lwork = typed(
    syevx_lwork, "sdcz", _names("evx_lwork"))
sygvx_lwork, ssygvx_lwork, dsygvx_lwork, chegvx_lwork, zhegvx_lwork = typed(
    sygvx_lwork, "sdcz", _names("gvx_lwork"))
geev_lwork, sgeev_lwork, dgeev_lwork, cgeev_lwork, zgeev_lwork = typed(geev_lwork, "sdcz")

__all__ = public(globals())
