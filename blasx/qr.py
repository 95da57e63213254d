"""Orthogonal factorizations, A = Q R and A = L Q, and least squares.

Q is a product of reflectors, Q = H(1) ... H(k), H(i) = I - tau[i] v v^H, and never formed unless
asked for: v has zeros before its place i, a one there, and its rest is stored below R (beside L,
conjugated). A = L Q is the conjugate transpose of A^H = Q^H L^H, with the same tau: on the GPU,
where cuSOLVER has no LQ, it is computed so.

Golub, Van Loan: Matrix Computations, 5.2; LAPACK Users' Guide, 2.4.2.
"""

import numpy as np
from scipy.linalg import lapack as scipy_lapack

from ._lapack import INT, LARGEST, by_columns, gathered, ld, output, taken
from ._routine import also, cupy, public, typed


def geqrf(me, a, lwork=None, overwrite_a=0, *, mode="auto"):
    """QR factorization, A = Q R.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by the factors if `overwrite_a`: in place where `a` is column-major and
        aligned, views with a leading dimension included.
    lwork : int, optional
        LAPACK's workspace, at least n; what it works best with if not given; -1 asks for that
        and factors nothing. The GPU takes what it needs.
    mode : {'auto', 'native', 'hybrid', 'vendor'}
        As of getrf.

    Returns
    -------
    qr : (m, n) array
        R on and above the diagonal, the reflectors below it.
    tau : (min(m, n),) array
    work : array
        work[0] is the best `lwork` (GPU: the least).
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: own kernels, and cuBLAS for their products, from Hopper on and where that was
    measured (up to 16384 rows; s 8192, c and z 4096), else cuSOLVER Xgeqrf; in order with the
    current stream, no synchronisation. Own kernels take up to 512 (m + n) numbers beside the
    matrix, and in single precision room for a copy of it.
    2 m n^2 - 2/3 n^3 operations. LAPACK Users' Guide, xGEQRF.
    """
    return _factor(me, a, lwork, overwrite_a, "qr", mode)


def gelqf(me, a, lwork=None, overwrite_a=0):
    """LQ factorization, A = L Q.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by the factors if `overwrite_a`.
    lwork : int, optional
        As of geqrf, at least m.

    Returns
    -------
    lq : (m, n) array
        L on and below the diagonal, the reflectors, conjugated, above it.
    tau, work, info
        As of geqrf.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER Xgeqrf of A^H, which takes another m n of memory, in the current
    stream, no synchronisation.
    2 n m^2 - 2/3 m^3 operations. LAPACK Users' Guide, xGELQF.
    """
    return _factor(me, a, lwork, overwrite_a, "lq")


def _factor(me, a, lwork, overwrite_a, kind, mode="auto"):
    one = getattr(a, "ndim", 2) == 1
    a = me.matrix(a, "a", overwrite=overwrite_a)
    m, n = a.shape
    least = n if kind == "qr" else m
    lwork, cpu = me.workspace(lwork, least), me.on_cpu(a)
    mode = me.mode(mode, cpu, "native", "hybrid", "vendor")
    if cpu:
        f, tau = taken(a, overwrite_a), np.zeros(min(m, n), me.dtype)
        work, info = me.worked(f"ge{kind}f", lwork, m, n, f, ld(f), tau)
    else:
        f, tau = a, cupy().zeros(min(m, n), me.dtype)
        work, info = _needed(me, least)
        if lwork != -1:
            f, info = _transposed(a, overwrite_a, kind, lambda x: _geqrf_gpu(me, x, tau, mode))
    return (f.reshape(-1) if one else f), tau, work, info


def _needed(me, least):
    """What LAPACK's names return on the GPU beside their results: work[0], an `lwork` that they
    accept, and info = 0."""
    xp = cupy()
    return xp.full(1, max(least, 1), me.dtype), xp.zeros((), np.int32)


def _transposed(a, overwrite, kind, step):
    """Let `step` overwrite column-major A, or A^H where an "lq" is the QR of that; (A, info)."""
    from . import _cuda as gpu
    if kind == "qr":
        a = gpu.output(a, overwrite)
        return a, step(a)
    adjoint = gpu.adjoint(a)
    info = step(adjoint)
    if not overwrite:
        return gpu.adjoint(adjoint), info
    a[...] = adjoint.T.conj()
    return a, info


def _geqrf_gpu(me, qr, tau, mode="auto"):
    """Factor a column-major CuPy array in place, into `tau` too; info."""
    from . import _cuda as gpu
    if not qr.size:
        return cupy().zeros((), np.int32)
    if mode != "vendor":
        from .large import qr as large
        found = large.plan(me, *qr.shape)
        if mode != "auto" and not found:
            m, n = qr.shape
            me.illegal("mode", mode, f"auto or vendor for {m} x {n} on this GPU")
        if mode == "hybrid":
            from .large import hybrid
            hybrid.geqrf(me, qr, tau)
            return cupy().zeros((), np.int32)
        if found and (mode == "native" or not found.get("cusolver")):
            large.geqrf(me, qr, tau)
            return cupy().zeros((), np.int32)
    t = me.type.cuda
    return gpu.solver64("Xgeqrf", "nnipnipi",
                        (*qr.shape, t, qr.data.ptr, gpu.ld(qr), t, tau.data.ptr, t))


def orgqr(me, a, tau, lwork=None, overwrite_a=0):
    """The first n columns of Q from the reflectors of geqrf (orgqr, complex ungqr).

    Parameters
    ----------
    a : (m, n) array, m >= n
        The `qr` of geqrf, of which the columns of reflectors are read. Overwritten by Q if
        `overwrite_a`: in place where `a` is column-major and aligned, views included.
    tau : (k,) array, k <= n
    lwork : int, optional
        As of geqrf, at least n.

    Returns
    -------
    q : (m, n) array
        Its columns are orthonormal.
    work, info
        As of geqrf.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER orgqr/ungqr in the current stream, no synchronisation.
    4 m n k - 2 (m + n) k^2 + 4/3 k^3 operations. LAPACK Users' Guide, xORGQR.
    """
    return _generate(me, a, tau, lwork, overwrite_a, "qr")


def orglq(me, a, tau, lwork=None, overwrite_a=0):
    """The first m rows of Q from the reflectors of gelqf (orglq, complex unglq).

    Parameters
    ----------
    a : (m, n) array, m <= n
        The `lq` of gelqf, of which the rows of reflectors are read. Overwritten by Q if
        `overwrite_a`.
    tau : (k,) array, k <= m
    lwork : int, optional
        As of geqrf, at least m.

    Returns
    -------
    q : (m, n) array
        Its rows are orthonormal.
    work, info
        As of geqrf.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER orgqr/ungqr of the conjugate transpose, in the current stream, no
    synchronisation. Operations as of orgqr. LAPACK Users' Guide, xORGLQ.
    """
    return _generate(me, a, tau, lwork, overwrite_a, "lq")


def _generate(me, a, tau, lwork, overwrite_a, kind):
    one = getattr(a, "ndim", 2) == 1
    a, tau = me.matrix(a, "a", overwrite=overwrite_a), me.vector(tau, "tau")
    (m, n), k = a.shape, tau.shape[0]
    long, least = (m, n) if kind == "qr" else (n, m)
    if least > long:
        me.illegal("a", a.shape, "of at least as many " + (
            "rows as columns" if kind == "qr" else "columns as rows"))
    if k > least:
        me.illegal("tau", tau.shape, f"of at most {least} elements")
    lwork = me.workspace(lwork, least)
    if overwrite_a:
        me.distinct(a, "a", tau=tau)
    if me.on_cpu(a, tau):
        q = taken(a, overwrite_a)
        work, info = me.worked(me.name[1:], lwork, m, n, k, q, ld(q), gathered(tau))
    else:
        q, (work, info) = a, _needed(me, least)
        if lwork != -1:
            q, info = _transposed(a, overwrite_a, kind, lambda x: _orgqr_gpu(me, x, tau))
    return (q.reshape(-1) if one else q), work, info


def _orgqr_gpu(me, q, tau):
    """Form Q over its reflectors in a column-major CuPy array; info."""
    from . import _cuda as gpu
    (m, n), k = q.shape, tau.size
    if not (n and k):
        q[...] = cupy().eye(m, n, dtype=me.dtype)
        return cupy().zeros((), np.int32)
    tau = cupy().ascontiguousarray(tau)
    return gpu.solver32(me, "ungqr" if me.is_complex else "orgqr", "iiipip",
                        (m, n, k, q.data.ptr, gpu.ld(q), tau.data.ptr))


def ormqr(me, side, trans, a, tau, c, lwork=None, overwrite_c=0):
    """op(Q) C or C op(Q) with the Q of geqrf, which is not formed (ormqr, complex unmqr).

    Parameters
    ----------
    side : {'L', 'R'}
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(Q) = Q or Q^H.
    a : (m, k) array, (n, k) if side = 'R'
        The first columns of the `qr` of geqrf.
    tau : (k,) array
    c : (m, n) array
        Overwritten if `overwrite_c`: in place where column-major and aligned, views included.
    lwork : int, optional
        As of geqrf, at least n, m if side = 'R'. SciPy has no default here.

    Returns
    -------
    cq : (m, n) array
    work, info
        As of geqrf.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER ormqr/unmqr in the current stream, no synchronisation.
    4 m n k - 2 n k^2 operations from the left. LAPACK Users' Guide, xORMQR.
    """
    return _multiply(me, side, trans, a, tau, c, lwork, overwrite_c, "qr")


def ormlq(me, side, trans, a, tau, c, lwork=None, overwrite_c=0):
    """op(Q) C or C op(Q) with the Q of gelqf, which is not formed (ormlq, complex unmlq).

    Parameters
    ----------
    side : {'L', 'R'}
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(Q) = Q or Q^H.
    a : (k, m) array, (k, n) if side = 'R'
        The first rows of the `lq` of gelqf.
    tau : (k,) array
    c : (m, n) array
        Overwritten if `overwrite_c`: in place where column-major and aligned, views included.
    lwork : int, optional
        As of ormqr.

    Returns
    -------
    cq : (m, n) array
    work, info
        As of geqrf.

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER ormqr/unmqr with the conjugate transpose of `a`, a copy, in the
    current stream, no synchronisation. Operations as of ormqr. LAPACK Users' Guide, xORMLQ.
    """
    return _multiply(me, side, trans, a, tau, c, lwork, overwrite_c, "lq")


def _multiply(me, side, trans, a, tau, c, lwork, overwrite_c, kind):
    side, trans = me.flag(side, "side", "LR"), me.flag(trans, "trans", _adjoint_flags(me))
    one = getattr(c, "ndim", 2) == 1
    a, tau = me.matrix(a, "a"), me.vector(tau, "tau")
    c = me.matrix(c, "c", overwrite=overwrite_c)
    (m, n), k = c.shape, tau.shape[0]
    order, least = (m, n) if side == "L" else (n, m)
    me.shaped(a, "a", (order, k) if kind == "qr" else (k, order))
    if k > order:
        me.illegal("tau", tau.shape, f"of at most {order} elements, the order of Q")
    lwork = me.workspace(lwork, least)
    if overwrite_c:
        me.distinct(c, "c", a=a, tau=tau)
    if me.on_cpu(a, tau, c):
        a, cq = by_columns(a), taken(c, overwrite_c)
        work, info = me.worked(me.name[1:], lwork, side, trans, m, n, k, a, ld(a),
                               gathered(tau), cq, ld(cq))
    else:
        from . import _cuda as gpu
        cq, (work, info) = c, _needed(me, least)
        if lwork != -1:
            if kind == "lq":  # the Q of gelqf is the Q^H of those reflectors
                a, trans = gpu.adjoint(a), "N" if trans != "N" else "C"
            cq = gpu.output(c, overwrite_c)
            info = _ormqr_gpu(me, side, trans, gpu.by_columns(a), tau, cq)
    return (cq.reshape(-1) if one else cq), work, info


def _adjoint_flags(me):
    """How LAPACK's orthogonal routines spell N and H for this type."""
    return "NC" if me.is_complex else "NT"


def _ormqr_gpu(me, side, trans, a, tau, c):
    """Multiply column-major `c` in place; info. `trans` is N, or T or C for Q^H."""
    from . import _cuda as gpu
    if not (c.size and tau.size):
        return cupy().zeros((), np.int32)
    op = 0 if trans == "N" else 2 if me.is_complex else 1
    tau = cupy().ascontiguousarray(tau)
    return gpu.solver32(me, "unmqr" if me.is_complex else "ormqr", "iiiiipippi",
                        (gpu.RIGHT if side == "R" else gpu.LEFT, op, *c.shape, tau.size,
                         a.data.ptr, gpu.ld(a), tau.data.ptr, c.data.ptr, gpu.ld(c)))


def geqp3(me, a, lwork=None, overwrite_a=0):
    """QR factorization with column pivoting, A P = Q R, the diagonal of R falling.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by the factors if `overwrite_a`.
    lwork : int, optional
        As of geqrf, at least 3 n + 1 (complex n + 1).

    Returns
    -------
    qr : (m, n) array
    jpvt : (n,) int32 array
        Column j of A P is column jpvt[j] of A, counted from 1, as SciPy returns it.
    tau : (min(m, n),) array
    work : array
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: own kernels for the panels, cuBLAS for the products between them, in the
    current stream, no synchronisation; pivots by LAPACK's rules, of columns whose norms round
    differently maybe others. A norm that updates have worn out is taken anew at once, where LAPACK
    ends its panel.
    2 m n^2 - 2/3 n^3 operations, half of them with A from memory. Quintana-Orti, Sun, Bischof, SIAM
    J. Sci. Comput. 19 (1998) 1486; LAPACK Working Note 176.
    """
    one = getattr(a, "ndim", 2) == 1
    a = me.matrix(a, "a", overwrite=overwrite_a)
    (m, n), k = a.shape, min(a.shape)
    lwork = me.workspace(lwork, n + 1 if me.is_complex else 3 * n + 1)
    if not me.on_cpu(a):
        qr, *others = _geqp3_gpu(me, a, lwork, overwrite_a)
        return (qr.reshape(-1) if one else qr), *others
    qr, jpvt, tau = taken(a, overwrite_a), np.zeros(n, INT), np.zeros(k, me.dtype)
    after = (np.empty(2 * n, me.real),) if me.is_complex else ()
    work, info = me.worked("geqp3", lwork, m, n, qr, ld(qr), jpvt, tau, after=after)
    if not k:  # LAPACK returns before it has numbered the columns
        jpvt[:] = range(1, n + 1)
    return (qr.reshape(-1) if one else qr), jpvt.astype(np.intc, copy=False), tau, work, info


def _geqp3_gpu(me, a, lwork, overwrite_a):
    from . import _cuda as gpu
    xp, (m, n) = cupy(), a.shape
    work, info = _needed(me, n + 1 if me.is_complex else 3 * n + 1)
    tau = xp.zeros(min(m, n), me.dtype)
    if lwork == -1:
        return a, xp.zeros(n, np.int32), tau, work, info
    qr = gpu.output(a, overwrite_a)
    if not tau.size:
        return qr, xp.arange(1, n + 1, dtype=np.int32), tau, work, info
    from .large import pivoted
    jpvt = xp.empty(n, np.int32)
    pivoted.geqp3(me, qr, jpvt, tau)
    return qr, jpvt, tau, work, info


def gels(me, a, b, trans="N", lwork=None, overwrite_a=0, overwrite_b=0, *, mode="auto"):
    """Least squares or minimum norm solution of op(A) X = B, A of full rank.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by its QR (m >= n) or LQ factors if `overwrite_a`.
    b : (max(m, n),) or (max(m, n), nrhs) array
        The right-hand sides in its first rows, m of them, n if op(A) is not A. Overwritten by `x`
        if `overwrite_b`.
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(A) = A or A^H.
    lwork : int, optional
        As of geqrf, at least min(m, n) + max(min(m, n), nrhs).
    mode : {'auto', 'native', 'vendor'}
        As of geqrf, and 'native' factors what is tall, or wide, enough by Cholesky's QR twice, for
        which the host waits once; by reflectors if A turns out to be too ill-conditioned.

    Returns
    -------
    lqr : (m, n) array
    x : array of the shape of b
        The solutions in its first rows, n of them, m if op(A) is not A; where op(A) has more rows
        than columns, the squares of a column's other rows add up to that of its residual.
    info : int (GPU: 0-d array)
        k > 0: element k of the diagonal of R or L is exactly zero, A has no full rank and nothing
        was solved.

    Notes
    -----
    CPU: LAPACK. GPU: geqrf, ormqr and trsm of A, or of A^H where m < n, or large/tall.py, in the
    current stream, no synchronisation but that of `mode`; the elements are not scaled first, as
    LAPACK does where they are near the ends of the range of numbers.
    2 m n^2 - 2/3 n^3 + 4 m n nrhs operations (m >= n). LAPACK Users' Guide, xGELS.
    """
    a = me.matrix(a, "a", overwrite=overwrite_a)
    m, n = a.shape
    b, one = me.columns(b, "b", max(m, n), overwrite_b)
    trans = me.flag(trans, "trans", _adjoint_flags(me))
    lwork = me.workspace(lwork, min(m, n) + max(min(m, n), b.shape[1]))
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    cpu = me.on_cpu(a, b)
    mode = me.mode(mode, cpu, "native", "vendor")
    if cpu:
        lqr, x = taken(a, overwrite_a), taken(b, overwrite_b)
        # LAPACK does not factor where there is nothing to solve: solve for a zero then
        y = x if x.shape[1] else np.zeros((max(m, n), 1), me.dtype)
        _, info = me.worked("gels", lwork, trans, m, n, y.shape[1], lqr, ld(lqr), y, ld(y))
    elif lwork == -1:
        lqr, x, info = a, b, cupy().zeros((), np.int32)
    else:
        from . import _cuda as gpu
        x = gpu.output(b, overwrite_b)
        fits = (m >= n) == (trans == "N")  # op(A) is tall: least squares
        lqr, info = _transposed(a, overwrite_a, "qr" if m >= n else "lq",
                                lambda f: _gels_gpu(me, f, x, fits, mode))
    return lqr, (x.reshape(-1) if one else x), info


def _gels_gpu(me, f, x, fits, mode):
    """Factor column-major F, m >= n, in place and overwrite X by the least squares solutions of
    F X = B if it `fits` X, else by the minimum norm solutions of F^H X = B; info."""
    from . import _cuda as gpu
    from .blas3 import solve_triangle
    xp, n = cupy(), f.shape[1]
    if not n:
        x.fill(0)
        return xp.zeros((), np.int32)
    if mode != "vendor":
        from .large import tall
        if tall.serves(me, *f.shape, mode == "native"):
            if tall.gels(me, f, x, fits):
                return xp.zeros((), np.int32)
            mode = "auto"
    zero, tau = (f == 0).all(), xp.empty(n, me.dtype)
    _geqrf_gpu(me, f, tau, mode)
    rank = gpu.first(f.diagonal() == 0)

    def solve(y):
        if fits:
            _ormqr_gpu(me, "L", "C", f, tau, y)
            solve_triangle(me, f[:n], y[:n], 0, 0, 0)
        else:
            solve_triangle(me, f[:n], y[:n], 0, 2 if me.is_complex else 1, 0)
            y[n:] = 0
            _ormqr_gpu(me, "L", "N", f, tau, y)

    if x.size:
        gpu.guarded(x, rank, solve)
        xp.copyto(x, 0, where=zero)  # of A = 0 LAPACK says that zero solves it
    return xp.where(zero, 0, rank).astype(np.int32)


def gelsd(me, a, b, lwork, size_rwork, size_iwork, cond=-1.0, overwrite_a=0, overwrite_b=0):
    """Least squares solution of minimum norm for A of any rank, by the SVD, divide and conquer.

    Parameters
    ----------
    a : (m, n) array
        Destroyed if `overwrite_a`.
    b : (max(m, n),) or (max(m, n), nrhs) array
        The right-hand sides in its first m rows. Overwritten by `x` if `overwrite_b`.
    lwork, size_rwork, size_iwork : int
        The workspaces, as gelsd_lwork says; the real names have no `size_rwork`.
    cond : float
        Singular values up to cond s[0] count as zero; the precision if negative.

    Returns
    -------
    x : array of the shape of b
        The solutions in its first n rows.
    s : (min(m, n),) real array
        The singular values, falling.
    rank : int (GPU: 0-d array)
    info : int (GPU: 0-d array)
        k > 0: the SVD did not converge; -4, -6: `a`, `b` has a nan or infinity, and so is x nan.

    Notes
    -----
    Runs on the CPU; CuPy arrays are copied there (TransferWarning) and synchronised.
    LAPACK Users' Guide, xGELSD.
    """
    a = me.matrix(a, "a", overwrite=overwrite_a)
    m, n = a.shape
    b, one = me.columns(b, "b", max(m, n), overwrite_b)
    lwork, cond = me.integer(lwork, "lwork", 1, LARGEST), me.real_number(cond, "cond")
    sizes = (lwork, size_rwork, size_iwork) if me.is_complex else (lwork, size_iwork)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    if not me.on_cpu(a, b):
        x, *others = me.through_cpu(a, b, lwork, size_rwork, size_iwork, cond, overwrite_a,
                                    overwrite_b)
        return (x.reshape(-1) if one else x), *others
    if not (m and n):
        x = output(b, overwrite_b)
        x[:n] = 0
        return (x.reshape(-1) if one else x), np.zeros(0, me.real), 0, 0
    least = getattr(scipy_lapack, me.name + "_lwork")(m, n, max(b.shape[1], 1))[1:-1]
    for name, size, low in zip(("size_rwork", "size_iwork")[-len(least):], sizes[1:], least):
        me.integer(size, name, int(low), LARGEST)  # LAPACK does not look at them
    for operand, info in ((a, -4), (b, -6)):  # LAPACK would never end
        if not np.isfinite(operand).all():
            x = output(b, overwrite_b)
            x[...] = np.nan
            return (x.reshape(-1) if one else x), np.full(min(m, n), np.nan, me.real), 0, info
    # LAPACK takes no fewer than one right-hand side: for none, solve for zero and drop it.
    y = b if b.shape[1] else np.zeros((max(m, n), 1), me.dtype)
    x, s, rank, info = me.scipy(a, y, *sizes, cond, overwrite_a, overwrite_b)
    if info == -12:
        me.illegal("lwork", lwork, "at least what gelsd_lwork returns")
    x = x if b.shape[1] else b
    if me.strided(b, overwrite_b):
        b[...] = x
        x = b
    return (x.reshape(-1) if one else x), s, rank, info


def geqrf_lwork(me, m, n):
    """The workspace that geqrf works best with, for an (m, n) matrix: (work, info)."""
    return me.scipy(me.extent(m, "m"), me.extent(n, "n"))


def gels_lwork(me, m, n, nrhs, trans="N"):
    """The workspace that gels works best with, for `nrhs` right-hand sides: (work, info)."""
    return me.scipy(me.extent(m, "m"), me.extent(n, "n"), me.extent(nrhs, "nrhs"),
                    me.flag(trans, "trans", _adjoint_flags(me)))


def gelsd_lwork(me, m, n, nrhs, cond=-1.0, lwork=-1):
    """The workspaces that gelsd needs: (work, iwork, info), complex (work, rwork, iwork, info)."""
    return me.scipy(me.extent(m, "m"), me.extent(n, "n"), me.extent(nrhs, "nrhs"),
                    me.real_number(cond, "cond"), me.integer(lwork, "lwork", -1, -1))


UNITARY = {kind: f"sor{kind} dor{kind} cun{kind} zun{kind}" for kind in "gqr glq mqr mlq".split()}

geqrf, sgeqrf, dgeqrf, cgeqrf, zgeqrf = typed(geqrf, "sdcz")
gelqf, sgelqf, dgelqf, cgelqf, zgelqf = typed(gelqf, "sdcz")
orgqr, sorgqr, dorgqr, cungqr, zungqr = typed(orgqr, "sdcz", UNITARY["gqr"])
orglq, sorglq, dorglq, cunglq, zunglq = typed(orglq, "sdcz", UNITARY["glq"])
ormqr, sormqr, dormqr, cunmqr, zunmqr = typed(ormqr, "sdcz", UNITARY["mqr"])
ormlq, sormlq, dormlq, cunmlq, zunmlq = typed(ormlq, "sdcz", UNITARY["mlq"])
ungqr, unglq = also(orgqr, "ungqr", zungqr), also(orglq, "unglq", zunglq)
unmqr, unmlq = also(ormqr, "unmqr", zunmqr), also(ormlq, "unmlq", zunmlq)
geqp3, sgeqp3, dgeqp3, cgeqp3, zgeqp3 = typed(geqp3, "sdcz")
gels, sgels, dgels, cgels, zgels = typed(gels, "sdcz")
gelsd, sgelsd, dgelsd, cgelsd, zgelsd = typed(gelsd, "sdcz", only_complex="size_rwork")
geqrf_lwork, sgeqrf_lwork, dgeqrf_lwork, cgeqrf_lwork, zgeqrf_lwork = typed(geqrf_lwork, "sdcz")
gels_lwork, sgels_lwork, dgels_lwork, cgels_lwork, zgels_lwork = typed(gels_lwork, "sdcz")
gelsd_lwork, sgelsd_lwork, dgelsd_lwork, cgelsd_lwork, zgelsd_lwork = typed(gelsd_lwork, "sdcz")

__all__ = public(globals())
