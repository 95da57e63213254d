"""LU with partial pivoting, and what is built on it: solve, inverse, condition."""

import numpy as np

from . import _trace
from ._lapack import INT, LARGEST, by_columns, column_major, ld, output
from ._routine import public, typed


def getrf(me, a, overwrite_a=0, *, mode="auto", device=None, memory=None):
    """LU factorization with partial pivoting, P A = L U.

    Parameters
    ----------
    a : (m, n) array
        Overwritten by the factors if `overwrite_a`: in place where `a` is column-major and
        aligned, views with a leading dimension included.
    mode : {'auto', 'native', 'hybrid', 'vendor'}
        Who works, on the GPU: own kernels, the CPU's LAPACK and the GPU's products, cuSOLVER, or
        what the tuned table says is faster. The CPU has 'auto' only; a GPU older than Hopper has
        no 'native' above 32 x 32.
    device : {None, 'cpu', 'gpu'}
        'gpu' has the current GPU factor a NumPy array, which it gets by columns while it works, and
        sends back; results are NumPy's. By default arrays stay where they are.
    memory : int, optional
        Bytes of the GPU that this may take, beside what NVIDIA's libraries keep; what is free by
        default. Where that is not enough for the matrix, columns are factored a window at a time.

    Returns
    -------
    lu : (m, n) array
        U on and above the diagonal, L below it without its ones; column-major.
    piv : (min(m, n),) int32 array
        Row j was interchanged with row piv[j], counted from 0, in this order.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero; the factorization is complete, solving would divide
        by zero.

    Notes
    -----
    CPU: LAPACK. GPU: an own kernel up to 32 x 32; above, on Hopper and later, panels by clusters of
    ours, products by cuBLAS (single precision: by pairs; double, above order 14000: by remainders,
    where there is memory), look-ahead in a second stream, where the tuned table finds that faster
    than cuSOLVER Xgetrf. In the current stream, no synchronisation. There 'native' asks for about
    4 (m + n) bytes for each of a block's columns, at most 2048, in single precision, for 7 GB at
    order 16384 and 15 at 32768 in double, which it can do without, and else for little, before `a`
    is touched.
    A NumPy array on the GPU: own kernels, and where there are none cuSOLVER on the whole matrix;
    returns when all is done. MemoryError, before `a` is touched, says how many bytes are missing.
    m n^2 - n^3/3 multiplications and additions. LAPACK Users' Guide, xGETRF.
    """
    one = getattr(a, "ndim", 2) == 1
    a = me.matrix(a, "a", overwrite=overwrite_a)
    cpu = me.on_cpu(a)
    if by_gpu := me.by_gpu(device, memory, cpu):
        mode = me.mode(mode, False, "native", "vendor")
    else:
        mode = me.mode(mode, cpu, "native", "hybrid", "vendor")
    if by_gpu and a.size:
        from .large import host
        lu = room(a, overwrite_a)
        piv, info = host.getrf(me, a, lu, mode, memory)
    elif cpu:
        if me.strided(a, overwrite_a) or not a.size:
            lu = output(a, overwrite_a)
            piv = np.empty(min(lu.shape), INT)
            info = me.fortran("getrf", *lu.shape, lu, ld(lu), piv)
            piv = from_zero(piv)
        else:
            lu, piv, info = me.scipy(a, overwrite_a)
    else:
        from . import _cuda as gpu
        lu = gpu.output(a, overwrite_a)
        piv, info = _getrf_gpu(me, lu, mode)
    return (lu.reshape(-1) if one else lu), piv, info


def room(a, overwrite):
    """What takes the factors of a matrix of the host: itself, or another one."""
    return a if overwrite and column_major(a) else np.empty(a.shape, a.dtype, order="F")


def from_zero(piv):
    """LAPACK's pivots as they are returned: int32, counted from 0."""
    return (piv - 1).astype(np.int32, copy=False)


def _getrf_gpu(me, lu, mode="auto"):
    """Factor a column-major CuPy array in place; 0-based int32 pivots and info. What fits an own
    kernel is a batch of one: a tenth of cuSOLVER's host time."""
    import cupy

    from . import _cuda as gpu
    from .batched import _gpu_lu
    m, n = lu.shape
    if mode not in ("vendor", "hybrid") and max(m, n) <= _gpu_lu.LARGEST:
        _, piv, info = _gpu_lu.getrf(me, lu[None], True)
        return piv[0], info[0]
    if mode != "vendor" and lu.size:
        from .large import lu as large
        found = large.plan(me, m, n)
        if mode != "auto" and not found:
            me.illegal("mode", mode, f"auto or vendor for {m} x {n} on this GPU")
        if mode == "hybrid":
            from .large import hybrid
            return hybrid.getrf(me, lu)
        if found and (mode == "native" or not found.get("cusolver")):
            return large.getrf(me, lu)
    piv = cupy.empty(min(m, n), np.int64)
    if not lu.size:
        return piv.astype(np.int32), cupy.zeros((), np.int32)
    t, at = me.type.cuda, (lu.data.ptr, gpu.ld(lu))
    lost = cupy.isnan(lu).any()  # cuSOLVER drops a nan; here it stays on the diagonal of U
    info = gpu.solver64("Xgetrf", "nnipnpi", (m, n, t, *at, piv.data.ptr, t),
                        ("nnipni", (m, n, t, *at, t)))
    cupy.copyto(lu.diagonal(), np.nan, where=lost)
    return (piv - 1).astype(np.int32), info


def getrs(me, lu, piv, b, trans=0, overwrite_b=0):
    """Solve op(A) X = B with the factors of getrf.

    Parameters
    ----------
    lu : (n, n) array
    piv : (n,) integer array
        As getrf left them.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : array of the shape of b
    info : int (GPU: 0-d array), 0

    Notes
    -----
    CPU: LAPACK. GPU: a kernel of ours for a few right-hand sides (large/triangular.py), else
    cuSOLVER Xgetrs; in the current stream, no synchronisation.
    2 n^2 nrhs operations. A zero on the diagonal of U gives inf or nan: getrf's info says so.
    """
    lu = me.square(lu, "lu")
    n = lu.shape[0]
    piv = me.integers(piv, "piv", n, below=n)
    b, one = me.columns(b, "b", n, overwrite_b)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if overwrite_b:
        me.distinct(b, "b", lu=lu, piv=piv)
    if me.on_cpu(lu, piv, b):
        if me.strided(b, overwrite_b) or not b.size:
            f, x = by_columns(lu), output(b, overwrite_b)
            info = me.fortran("getrs", "NTC"[trans], n, x.shape[1], f, ld(f),
                              (piv + 1).astype(INT), x, ld(x))
        else:
            x, info = me.scipy(lu, piv, b, trans, overwrite_b)
    else:
        from . import _cuda as gpu
        x = gpu.output(b, overwrite_b)
        info = _getrs_gpu(me, gpu.by_columns(lu), piv, x, trans)
    return (x.reshape(n) if one else x), info


def _getrs_gpu(me, lu, piv, x, trans=0):
    """Solve in place of column-major `x`; info."""
    import cupy

    from . import _cuda as gpu
    from .large import triangular
    info = cupy.zeros((), np.int32)
    if x.size and triangular.by_ours(me, *x.shape):
        triangular.getrs(me, lu, triangular.permutation(piv, len(lu)), x, trans)
    elif x.size:
        piv = piv.astype(np.int64) + 1
        trans, t = trans if me.is_complex else min(trans, 1), me.type.cuda
        gpu.solver("Xgetrs", "hinnipnpipnp", gpu.params(), trans, *x.shape, t, lu.data.ptr,
                   gpu.ld(lu), piv.data.ptr, t, x.data.ptr, gpu.ld(x), info.data.ptr)
    return info


def gesv(me, a, b, overwrite_a=0, overwrite_b=0, *, factor=None, refine="ir", device=None,
         memory=None):
    """Solve A X = B by LU with partial pivoting.

    Parameters
    ----------
    a : (n, n) array
        Overwritten by its factors if `overwrite_a`.
    b : (n,) or (n, nrhs) array
        Overwritten by X if `overwrite_b`.
    factor : {None, 'fp32', 'tf32', 'fp16', 'bf16'}
        Of double precision: factor in single precision by products of this one, and refine X to
        double. `a` and `b` are left alone then.
    refine : {'ir', 'gmres'}
        How: by the factors alone, for condition numbers up to about 1 / eps of `factor`, or by
        GMRES with them, beyond.
    device, memory
        As of getrf.

    Returns
    -------
    lu, piv
        As of getrf.
    x : array of the shape of b
        B itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero, and nothing was solved.
    iter, backward_error, r, c
        With `factor`: steps of refinement, negative, with a RefinementWarning, where double
        precision had to be used after all; the largest |b - A x| / (|A| |x| + |b|) of a column, at
        most eps sqrt(n) / 2 where not; and scales: `lu` is of diag(r) A diag(c) then
        (blasx.refined.Refined).

    Notes
    -----
    CPU: LAPACK. GPU: getrf and getrs, in the current stream, no synchronisation. With `factor` the
    host waits for every step of refinement, or of GMRES; the CPU has no such products
    and rounds what it multiplies: the same answers, in more time than without. NumPy arrays on the
    GPU: B is columns beside A, and substituted back by cuBLAS.
    2/3 n^3 + 2 n^2 nrhs operations. LAPACK Users' Guide, xGESV.
    """
    a = me.square(a, "a", overwrite_a)
    n = a.shape[0]
    b, one = me.columns(b, "b", n, overwrite_b)
    refine = me.choice(refine, "refine", ("ir", "gmres"))
    if factor is None and refine != "ir":
        me.illegal("refine", refine, "'ir' without a factor")
    if factor is not None:
        for argument, x in (("device", device), ("memory", memory)):
            if x is not None:
                me.illegal(argument, x, "None with a factor")
        return _gesv_refined(me, a, b, one, factor, refine)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    cpu = me.on_cpu(a, b)
    if me.by_gpu(device, memory, cpu) and a.size:
        from .large import host
        lu, x = room(a, overwrite_a), output(b, overwrite_b)
        piv, info = host.gesv(me, a, b, lu, x, memory)
    elif cpu:
        if me.strided(a, overwrite_a) or me.strided(b, overwrite_b) or not b.size:
            lu, x = output(a, overwrite_a), output(b, overwrite_b)
            piv = np.empty(n, INT)
            if b.size:
                info = me.fortran("gesv", n, x.shape[1], lu, ld(lu), piv, x, ld(x))
            else:  # gesv need not factor where there is nothing to solve, and OpenBLAS does not
                info = me.fortran("getrf", n, n, lu, ld(lu), piv)
            piv = from_zero(piv)
        else:
            lu, piv, x, info = me.scipy(a, b, overwrite_a, overwrite_b)
    else:
        from . import _cuda as gpu
        lu, x = gpu.output(a, overwrite_a), gpu.output(b, overwrite_b)
        piv, info = _getrf_gpu(me, lu)
        gpu.guarded(x, info, lambda y: _getrs_gpu(me, lu, piv, y))
    return lu, piv, (x.reshape(n) if one else x), info


def _gesv_refined(me, a, b, one, factor, refine):
    from . import refined
    if me.letter not in "dz":
        me.illegal("factor", factor, "None but in double precision")
    factor = me.choice(factor, "factor", refined.FACTORS)
    found = refined.gesv(me, a, b, factor, refine)
    return found._replace(x=found.x.reshape(-1)) if one else found


def getri(me, lu, piv, lwork=None, overwrite_lu=0):
    """The inverse of a matrix from its factors by getrf.

    Parameters
    ----------
    lu : (n, n) array
        Overwritten by the inverse if `overwrite_lu`.
    piv : (n,) integer array
        As getrf left them.
    lwork : int, optional
        LAPACK's workspace, at least n; 3 n if not given. The GPU takes what it needs.

    Returns
    -------
    inv_a : (n, n) array
        `lu` itself where info > 0.
    info : int (GPU: 0-d array)
        k > 0: U[k-1, k-1] is exactly zero, and there is no inverse.

    Notes
    -----
    CPU: LAPACK. GPU: A X = I by cuSOLVER Xgetrs, which takes another n^2 of memory, in the current
    stream, no synchronisation.
    4/3 n^3 operations (GPU: 2 n^3). LAPACK Users' Guide, xGETRI.
    """
    lu = me.square(lu, "lu", overwrite_lu)
    n = lu.shape[0]
    piv = me.integers(piv, "piv", n, below=n)
    lwork = max(3 * n, 1) if lwork is None else me.integer(lwork, "lwork", n, LARGEST)
    if overwrite_lu:
        me.distinct(lu, "lu", piv=piv)
    if me.on_cpu(lu, piv):
        if n and not me.strided(lu, overwrite_lu):
            return me.scipy(lu, piv, lwork, overwrite_lu)
        inverse, work = output(lu, overwrite_lu), np.empty(max(lwork, 1), me.dtype)
        return inverse, me.fortran("getri", n, inverse, ld(inverse), (piv + 1).astype(INT),
                                   work, work.size)
    import cupy

    from . import _cuda as gpu
    inverse = gpu.output(lu, overwrite_lu)
    info = gpu.first(inverse.diagonal() == 0)
    identity = cupy.eye(n, dtype=me.dtype, order="F")
    _getrs_gpu(me, inverse, piv, identity)
    cupy.copyto(inverse, identity, where=info == 0)
    return inverse, info


def getri_lwork(me, n):
    """The workspace that getri works best with, for a matrix of order `n`.

    Returns
    -------
    work : float or complex
    info : int
    """
    return me.scipy(me.extent(n, "n"))


def gecon(me, a, anorm, norm="1"):
    """Estimate the reciprocal condition 1 / (|A| |A^-1|) from the factors of getrf.

    Parameters
    ----------
    a : (n, n) array
        The factors `lu`.
    anorm : number
        |A|, in the norm asked for (`lange`).
    norm : {'1', 'O', 'I'}
        The 1-norm ('1', 'O') or the infinity norm.

    Returns
    -------
    rcond : float (GPU: 0-d array)
    info : int (GPU: 0-d array)
        -5: `anorm` is nan or infinite; 1: rcond came out nan or infinite.

    Notes
    -----
    Runs on the CPU; of CuPy arrays `a` is copied there (TransferWarning) and synchronised.
    A few solves, 2 n^2 operations each. Higham, ACM TOMS 14 (1988) 381.
    """
    a = me.square(a, "a")
    anorm, norm = given_norm(me, anorm), me.flag(norm, "norm", "1OI")
    if not me.on_cpu(a):
        return me.through_cpu(a, anorm, norm)
    return me.scipy(a, anorm, norm) if a.size else (1.0, 0)


def given_norm(me, anorm):
    """The norm of A, as gecon and pocon take it: on the host, where they estimate, also if the
    GPU found it."""
    if hasattr(anorm, "get"):
        _trace.note(transferred=anorm.nbytes, synced=1)
        anorm = anorm.item()
    anorm = me.real_number(anorm, "anorm")
    return anorm if not anorm < 0 else me.illegal("anorm", anorm, "a norm: not negative")


def laswp(me, a, piv, k1=0, k2=None, off=0, inc=1, overwrite_a=0):
    """Interchange the rows of a matrix as pivots say.

    Parameters
    ----------
    a : (m, n) array
        Overwritten if `overwrite_a`.
    piv : integer array
        Row i is interchanged with row piv[off + k1 + (i - k1) |inc|], counted from 0, for
        i = k1 ... k2, in this order if inc > 0 and backwards if inc < 0.
    k1, k2, off, inc : int
        All pivots in their order by default.

    Returns
    -------
    a : (m, n) array

    Notes
    -----
    CPU: LAPACK. GPU: cuSOLVER laswp in the current stream, no synchronisation.
    """
    one = getattr(a, "ndim", 2) == 1
    a = me.matrix(a, "a", overwrite=overwrite_a)
    m, n = a.shape
    piv = me.integers(piv, "piv", below=m)
    size = piv.shape[0]
    if size > m:
        me.illegal("piv", piv.shape, f"of at most {m} elements, the rows of a")
    inc, off = me.integer(inc, "inc"), me.integer(off, "off", 0, max(size - 1, 0))
    if not inc:
        me.illegal("inc", inc, "other than zero")
    k1 = me.integer(k1, "k1", 0, max(size - 1, 0))
    k2 = me.integer(size - 1 if k2 is None else k2, "k2", min(k1, size - 1), m - 1)
    if k2 >= k1 and off + k1 + (k2 - k1) * abs(inc) >= size:
        me.illegal("k2", k2, f"such that piv, of {size} elements, has a pivot for each row")
    if overwrite_a:
        me.distinct(a, "a", piv=piv)
    # The pivots in use, from their place k1 on and one after the other: all that cuSOLVER takes.
    used = piv[off + k1:][:max(k2 - k1, -1) * abs(inc) + 1:abs(inc)]
    inc = 1 if inc > 0 else -1
    if me.on_cpu(a, piv):
        piv = np.concatenate((np.zeros(k1, np.int32), used))
        if not me.strided(a, overwrite_a) and a.size and used.size:
            return me.scipy(a, piv, k1, k2, 0, inc, overwrite_a)
        a = output(a, overwrite_a)
        me.fortran("laswp", n, a, ld(a), k1 + 1, k2 + 1, (piv + 1).astype(INT), inc)
    else:
        import cupy

        from . import _cuda as gpu
        a = gpu.output(a, overwrite_a)
        if a.size and used.size:
            piv = cupy.concatenate((cupy.zeros(k1, np.int32), used)) + np.int32(1)
            gpu.solver(me.L + "laswp", "ipiiipi", n, a.data.ptr, gpu.ld(a), k1 + 1, k2 + 1,
                       piv.data.ptr, inc)
    return a.reshape(-1) if one else a


getrf, sgetrf, dgetrf, cgetrf, zgetrf = typed(getrf, "sdcz")
getrs, sgetrs, dgetrs, cgetrs, zgetrs = typed(getrs, "sdcz")
gesv, sgesv, dgesv, cgesv, zgesv = typed(gesv, "sdcz")
getri, sgetri, dgetri, cgetri, zgetri = typed(getri, "sdcz")
getri_lwork, sgetri_lwork, dgetri_lwork, cgetri_lwork, zgetri_lwork = typed(getri_lwork, "sdcz")
gecon, sgecon, dgecon, cgecon, zgecon = typed(gecon, "sdcz")
laswp, slaswp, dlaswp, claswp, zlaswp = typed(laswp, "sdcz")

__all__ = public(globals())
