"""One problem on the GPU: products (gemm), factorisations and solves (lapack), those of the host's
matrices (host), vectors (blas12).

Sides: blasx, with matrices by columns and overwriting them where the routine does; torch and CuPy
through their own functions, out of place where those are (CuPy's lu_factor overwrites).
"""

from dataclasses import replace
from functools import partial

from blasx import _errors as errors
from blasx import _tuned
from blasx._types import TYPES

from . import timing
from .timing import Row, Side

GEMM = {"s": (1024, 2048, 4096, 8192, 16384)}
GEMM |= {"d": (1024, 4096, 8192, 16384)} | dict.fromkeys("czhbi", (1024, 4096, 8192))
OTHER = 4096  # of products with a permutation, and of numbers of all sizes
UPDATES = [(n, k) for n in (8192, 16384) for k in (256, 512, 1024)]  # C -= A B, as LU's
AWKWARD = [  # m, n, k, and how A, B and C lie: F, C by columns, rows; f, c views into larger ones
    (129, 129, 129, "FFF"), (257, 255, 253, "FFF"), (512, 512, 512, "FFF"), (513, 511, 509, "FFF"),
    (600, 600, 600, "CCC"), (700, 700, 700, "CFC"), (777, 777, 777, "FCF"), (896, 896, 896, "CCC"),
    (1001, 1003, 1005, "FFF"), (1001, 1003, 1005, "CCC"), (1001, 1003, 1005, "FCF"),
    (1024, 1024, 1024, "CFF"), (1024, 1024, 1024, "FCF"), (1024, 1024, 1024, "CCF"),
    (1024, 1024, 1024, "ffc"), (1023, 1025, 1027, "ccf"), (1024, 1024, 256, "FFF"),
    (1500, 1500, 300, "CCC"), (2000, 2000, 2000, "fff"), (2047, 2049, 2051, "FCC"),
    (2048, 2048, 128, "FFF"), (3000, 3000, 33, "FFF"), (4096, 4096, 64, "FFF"),
    (4095, 4097, 127, "CFF"), (4096, 4096, 8, "FFF"), (512, 512, 8192, "FFF"),
    (300, 300, 20000, "FCF"), (128, 128, 65536, "FFF"), (64, 64, 100000, "CFF"),
    (64, 4096, 4096, "FFF"), (4096, 64, 4096, "CCC"), (128, 4096, 4096, "FFF"),
    (4096, 192, 4096, "FFF"), (256, 4096, 4096, "CFC"), (65536, 128, 128, "FFF"),
    (65536, 256, 256, "CCC"), (128, 65536, 256, "FFF"), (200000, 64, 64, "CCC"),
    (8192, 100, 8192, "FFF"), (33, 8191, 2049, "FCF")]
LEVEL3, ORDERS = ("symm", "syrk", "syr2k", "trmm", "trsm"), (2048, 4096, 8192)
PAUSE = 0.2  # seconds before a sample of products: what is timed is a burst
LAPACK = {"getrf": (1024, 2048, 4096, 8192, 16384, 32768), "gesv": (1024, 4096, 8192),
          "potrf": (1024, 2048, 4096, 8192, 16384, 32768), "geqrf": (1024, 4096, 8192, 16384),
          "syevd": (1024, 2048), "gesdd": (1024, 2048)}
PIVOTED = (1024, 2048, 4096, 8192)  # orders of geqp3, sytrf, hetrf; SciPy's, which takes seconds:
BY_SCIPY = 2048
MIXED = {"d": (8192, 16384, 32768), "z": (8192,)}  # solved by factors of single precision
TALL = (200000, 64)  # least squares
HOST = {"gesv": (8192, 16384), "potrf": (8192, 16384)}
MOST = 2**33  # bytes of a matrix of theirs: every side has one or more of its own
VECTORS = ("copy", "scal", "axpy", "dot", "nrm2", "gemv")
LENGTH, ORDER = 2**27, 16384  # of a vector, of gemv's matrix


def rows(letters, quick, family):
    """The rows of a family; --quick takes the smallest size of each routine."""
    timing.gpu()
    if family == "gemm":
        for letter in letters:
            for n in GEMM[letter][:1] if quick else GEMM[letter]:
                if letter == "i":
                    yield of_bytes(n)
                    continue
                yield gemm(letter, n)
                if letter == "s":
                    yield gemm(letter, n, "gemm_uniform")
                if letter in "sc" and n == OTHER:
                    yield gemm(letter, n, "gemm_permuted")
                    yield gemm(letter, n, "gemm_spread")
                if letter in "hb":
                    yield fused(letter, n)
                    yield fused(letter, n, back=True)
                if letter == "s":
                    for precision in ("tf32", "fp16"):
                        yield rounded(letter, n, precision)
            if letter in "sd" and not quick:
                for n, k in UPDATES:
                    yield update(letter, n, k)
            if letter in "sdcz":
                for shape in () if quick else AWKWARD:
                    yield awkward(letter, *shape)
                for routine in LEVEL3:
                    for n in ORDERS[:1] if quick else ORDERS:
                        yield level3(routine, letter, n)
    elif family == "lapack":
        for routine, sizes in LAPACK.items():
            for letter in letters:
                for n in sizes[:1] if quick else sizes:
                    if n * n * TYPES[letter].dtype.itemsize <= MOST:
                        yield lapack(routine, letter, n)
        for letter in letters:
            for n in PIVOTED[:1] if quick else PIVOTED:
                yield with_column_pivots(letter, n)
                for routine in ("sytrf", "hetrf") if letter in "cz" else ("sytrf",):
                    yield indefinite(routine, letter, n)
        for letter in letters:
            for n in () if quick else MIXED.get(letter, ()):
                yield lapack("gesv", letter, n, {"d": ("dsgesv", "dsgesv_rbt"),
                                                 "z": ("zcgesv",)}[letter])
            yield least_squares(letter, *TALL)
    elif family == "host":
        for routine, sizes in HOST.items():
            for letter in letters:
                for n in sizes[:1] if quick else sizes:
                    yield of_host(routine, letter, n)
    else:
        for routine in VECTORS:
            for letter in letters:
                if letter in "sd":
                    yield vectors(routine, letter, 8 if quick else 1)


def normal(letter, *shape):
    """Normal random numbers, by columns."""
    cupy = timing.gpu()
    dtype = TYPES[letter].dtype
    random = cupy.random.RandomState(shape[-1])

    def real():
        return random.standard_normal(shape[::-1]).T

    x = real() + 1j * real() if letter in "cz" else real()
    return x.astype(dtype, order="F")


def blasx_function(letter, routine):
    import blasx
    complex_name = {"syevd": "heevd"}.get(routine, routine)
    return getattr(blasx, letter + (complex_name if letter in "cz" else routine))


def to_torch(*arrays):
    import torch
    return tuple(torch.from_dlpack(x) for x in arrays)


def from_torch(*tensors):
    import cupy
    return tuple(cupy.from_dlpack(x) for x in tensors)


def gemm(letter, n, routine="gemm"):
    """C = A B, of normal numbers, uniform ones in 0..1, or numbers of all sizes, or of normal ones
    and a permutation. The error is by element. `own kernel`: of half precision, where cuBLAS
    serves; `by remainders`: of double."""
    xp = timing.gpu()
    a, b, random = normal(letter, n, n), normal(letter, n, n) + 1, xp.random.RandomState(n)
    if routine == "gemm_uniform":
        a, b = (random.random_sample((n, n), dtype=a.dtype).T for _ in "ab")
    elif routine == "gemm_permuted":
        b = xp.eye(n, dtype=a.dtype)[:, random.permutation(n)]
    elif routine == "gemm_spread":
        a, b = (x * xp.exp(2 * random.standard_normal((n, n))).astype(x.dtype) for x in (a, b))

    def ours():
        return Side(lambda: (a.copy("F"), b.copy("F")),
                    partial(blasx_function(letter, "gemm"), 1.0))

    def torch():
        import torch
        return Side(lambda: to_torch(a.copy(), b.copy()), torch.mm, lambda c: from_torch(c)[0])

    def cupy():
        return Side(lambda: (a.copy(), b.copy()), xp.matmul)

    def by_half():
        values = _tuned.constants("gemm_half", letter, n, 90)
        product = partial(blasx_function(letter, "gemm"), 1.0)

        def run(a, b):
            with _tuned.using(letter, gemm_half=values):
                return product(a, b)

        return Side(lambda: (a.copy("F"), b.copy("F")), run)

    def by_remainders():
        return Side(lambda: (a.copy("F"), b.copy("F")),
                    partial(blasx_function(letter, "gemm"), 1.0, variant="crt"))

    variants = {"out of place": ours} | ({"own kernel": by_half} if letter in "hb" else {}) | (
        {"by remainders": by_remainders} if letter in "dz" else {})
    return Row(routine, letter, f"{n}x{n}x{n}", variants, {"torch": torch, "CuPy": cupy},
               lambda c: errors.product_by_element(a, b, c, a),
               timing.gpu_clock(3 * a.nbytes, PAUSE))


def awkward(letter, m, n, k, how):
    """C = A B of odd, thin and long extents."""
    xp = timing.gpu()
    a, b = normal(letter, m, k), normal(letter, k, n)

    def laid(x, order):
        x = xp.array(x, order=order.upper())
        if order.isupper():
            return x
        room = xp.zeros([e + 5 for e in x.shape], x.dtype, order=order.upper())
        room[2:-3, 3:-2] = x
        return room[2:-3, 3:-2]

    def operands():
        return laid(a, how[0]), laid(b, how[1]), laid(xp.zeros((m, n), a.dtype), how[2])

    f = blasx_function(letter, "gemm")

    def ours():
        return Side(operands, lambda a, b, c: f(1.0, a, b, 0.0, c, overwrite_c=1))

    def torch():  # on views of CuPy arrays, which lie as ours
        import torch

        def both():
            mine = operands()
            return (*mine, *to_torch(*mine))

        return Side(both, lambda *x: torch.mm(x[3], x[4], out=x[5]), lambda c: from_torch(c)[0])

    return Row("gemm_awkward", letter, f"{m}x{n}x{k} {how}", {"in place": ours}, {"torch": torch},
               lambda c: errors.product_by_element(a, b, c, a),
               timing.gpu_clock(a.nbytes + b.nbytes + m * n * a.itemsize))


def rounded(letter, n, precision):
    """C = A B of operands rounded to that precision."""
    a, b = normal(letter, n, n), normal(letter, n, n) + 1

    def ours():
        return Side(lambda: (a.copy("F"), b.copy("F")), partial(
            blasx_function(letter, "gemm"), 1.0, precision=precision))

    def cublas():
        from blasx import blas3
        from blasx._routine import Typed
        me = Typed("sgemm", "s")
        return Side(lambda: (a.copy("F"), b.copy("F"), b.copy("F")), lambda a, b, c: (
            blas3._gemm_cublas(me, 1.0, a, b, 0.0, c, 0, 0, precision), c)[1])

    def error(c):
        exact, size = (errors.wide(f(a)) @ errors.wide(f(b)) for f in (lambda x: x, abs))
        return float((abs(c - exact) / size).max()) * 2**9  # of two numbers of 11 bits

    return Row(f"gemm_{precision}", letter, f"{n}x{n}x{n}", {"out of place": ours},
               {"cuBLAS": cublas}, error, timing.gpu_clock(3 * a.nbytes, PAUSE))


def level3(routine, letter, n):
    """A product or a solve with a lower triangle, or one triangle of a product, of order n."""
    from blasx import blas3
    from blasx._routine import Typed
    xp, me = timing.gpu(), Typed(letter + routine, letter)
    a, b, f = normal(letter, n, n), normal(letter, n, n) + 1, blasx_function(letter, routine)
    if routine == "trsm":
        a = xp.asfortranarray(xp.tril(a / n)) + xp.eye(n, dtype=a.dtype, order="F")
    else:
        a = xp.asfortranarray(xp.tril(a))
    of = {"symm": (a, b), "syrk": (b,), "syr2k": (a, b), "trmm": (a, b), "trsm": (a, b)}[routine]
    tri = routine[:2] == "tr"

    def operands():
        mine = tuple(x.copy("F") for x in of)
        return mine if tri else (*mine, xp.zeros((n, n), a.dtype, order="F"))

    def ours():
        if tri:
            return Side(operands, lambda a, b: f(1.0, a, b, lower=1, overwrite_b=1),
                        overwrites=(1,))
        return Side(operands, lambda *x: f(1.0, *x[:-1], 0.0, x[-1], lower=1, overwrite_c=1))

    def cublas():
        if tri:
            return Side(operands, lambda a, b: (
                blas3._triangular_cublas(me, 1.0, a, b, b, 0, 1, 0, 0), b)[1], overwrites=(1,))
        if routine == "symm":
            return Side(operands, lambda a, b, c: (
                blas3._symmetric_product_cublas(me, 1.0, a, b, 0.0, c, 0, 1), c)[1])
        return Side(operands, lambda *x: (
            blas3._rank_k_cublas(me, 1.0, x[:-1], 0.0, x[-1], 0, 1), x[-1])[1])

    def torch():
        import torch
        return Side(lambda: to_torch(*(x.copy("F") for x in of)),
                    lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
                    lambda x: from_torch(x)[0])

    def error(c):
        if routine == "trsm":
            return errors.product_by_element(a, c, b, a)
        if routine == "syr2k":
            return errors.product_by_element(xp.hstack([a, b]), xp.hstack([b, a]).T, whole(c), a)
        left = whole(a) if routine == "symm" else b if routine == "syrk" else a
        return errors.product_by_element(left, b.T if routine == "syrk" else b,
                                         whole(c) if routine == "syrk" else c, a)

    def whole(x):
        return xp.tril(x) + xp.tril(x, -1).T

    return Row(routine, letter, f"{n}x{n}", {"in place": ours},
               {"cuBLAS": cublas} | ({"torch": torch} if routine == "trsm" else {}), error,
               timing.gpu_clock(3 * a.nbytes, PAUSE))


def of_bytes(n):
    """C = A B of bytes, 32 bits a number, the columns of B in one piece each."""
    cupy = timing.gpu()
    random = cupy.random.RandomState(n)
    a, b = (random.randint(-128, 128, (n, n)).astype("i1") for _ in "ab")

    def ours():
        import blasx
        return Side(lambda: (a.copy(), b.T.copy().T), blasx.igemm)

    def torch():
        import torch
        return Side(lambda: (*to_torch(a.copy()), to_torch(b.T.copy())[0].T), torch._int_mm,
                    lambda c: from_torch(c)[0])

    def error(c):
        return float(abs(a.astype("f8") @ b.astype("f8") - c).max())

    return Row("gemm", "i", f"{n}x{n}x{n}", {"out of place": ours}, {"torch": torch}, error,
               timing.gpu_clock(2 * a.nbytes, PAUSE))


def fused(letter, n, back=False):
    """C = gelu(A B + bias), by rows as a layer has them; or, `back`, C = A B gelu'(Z)."""
    a, b, z = (normal(letter, n, n).T.copy() for _ in "abz")
    b /= 8
    bias = normal(letter, 1, n)[0]
    f = blasx_function(letter, "gemm")

    def ours():
        def run(a, b, c, z):
            after = dict(slope_at=z) if back else dict(bias=bias)
            return f(1.0, a, b, 0.0, c, overwrite_c=1, activation="gelu", **after)

        return Side(lambda: (a.copy(), b.copy(), timing.gpu().empty_like(a), z.copy()), run)

    def torch():
        import torch
        gelu, of = torch.nn.functional.gelu, to_torch(bias)[0]

        def run(a, b, z):
            if back:
                return torch.ops.aten.gelu_backward(torch.mm(a, b), z)
            return gelu(torch.addmm(of, a, b))

        return Side(lambda: to_torch(a.copy(), b.copy(), z.copy()), run,
                    lambda c: from_torch(c)[0])

    def error(c):
        from cupyx.scipy.special import erf
        x = errors.wide(a) @ errors.wide(b) + (0 if back else errors.wide(bias))
        at = errors.wide(z) if back else x
        share = 0.5 + 0.5 * erf(at * 0.5**0.5)
        if back:
            share += at * timing.gpu().exp(-0.5 * at**2) * 0.3989422804014327
        return errors.near(c, x * share, a.dtype, 1)

    return Row("gemm_gelu" + "_backward" * back, letter, f"{n}x{n}x{n}", {"in place": ours},
               {"torch": torch}, error, timing.gpu_clock(3 * a.nbytes, PAUSE))


def update(letter, n, k):
    """C -= A B with a short k; `B split once`: by what a factorisation would keep of B."""
    a, b, c0 = normal(letter, n, k), normal(letter, k, n), normal(letter, n, n)
    f = blasx_function(letter, "gemm")

    def ours():
        return Side(lambda: (a.copy("F"), b.copy("F"), c0.copy("F")), lambda a, b, c: f(
            -1.0, a, b, 1.0, c, overwrite_c=1), overwrites=(2,))

    def prepared():
        from blasx import _gpu_gemm as by_pairs

        def operands():
            mine = b.copy("F")
            return a.copy("F"), by_pairs.split(mine.T)[0], c0.copy("F")

        def run(a, pairs, c):  # by columns: C^T -= B^T A^T
            by_pairs.multiply_pairs(-1.0, pairs, *by_pairs.split(a), 1.0, c.T)
            return c

        return Side(operands, run, overwrites=(2,))

    def torch():  # on views of CuPy arrays, which the clock restores
        def operands():
            mine = a.copy("F"), b.copy("F"), c0.copy("F")
            return (*mine, *to_torch(*mine))

        return Side(operands, lambda *both: both[5].addmm_(both[3], both[4], alpha=-1),
                    lambda c: from_torch(c)[0], (2,))

    variants = {"in place": ours} | ({"B split once": prepared} if letter == "s" else {})
    return Row("gemm_update", letter, f"{n}x{n}x{k}", variants, {"torch": torch},
               lambda c: errors.product_by_element(a, b, c, a, -1, c0),
               timing.gpu_clock(c0.nbytes, PAUSE))


def lapack(routine, letter, n, mixed=()):
    """A factorisation, a solve with one right-hand side, or a decomposition; gesv by `mixed`
    precision, if told by which routines."""
    cupy = timing.gpu()
    a, b = normal(letter, n, n), normal(letter, n, 1)
    if routine == "potrf":
        a = (a @ a.conj().T / n + cupy.eye(n)).astype(a.dtype, order="F")
    elif routine == "syevd":
        a = (a + a.conj().T).astype(a.dtype, order="F")
    check = {"getrf": lambda r: errors.lu(a, *r), "potrf": lambda r: errors.cholesky(a, r),
             "gesv": lambda r: errors.solution(a, b, r),
             "geqrf": lambda r: errors.triangular_of_qr(a, r),
             "syevd": lambda r: errors.eigen(a, *r), "gesdd": lambda r: errors.singular(a, *r)}
    sides = {"torch": partial(torch_side, routine, a, b),
             "CuPy": partial(cupy_side, routine, a, b)}
    if routine == "getrf":
        sides["cuSOLVER"] = partial(our_side, routine, letter, a, b, mode="vendor")
    if mixed:
        import blasx

        def solving(name):
            solve = getattr(blasx, name)
            return Side(lambda: (a.copy("F"), b.copy("F")), lambda a, b: solve(a, b)[0])

        return Row(mixed[0], letter, f"{n}x{n}", {x: partial(solving, x) for x in mixed}, sides,
                   check["gesv"], timing.gpu_clock(a.nbytes))
    return Row(routine, letter, f"{n}x{n}", {"in place": partial(our_side, routine, letter, a, b)},
               sides, check[routine], timing.gpu_clock(a.nbytes))


def with_column_pivots(letter, n):
    """A P = Q R; beside it SciPy's of what comes from the GPU and goes back. Floor: what is left
    is read in each step."""
    from scipy.linalg import lapack as scipy_lapack
    cupy, a = timing.gpu(), normal(letter, n, n)

    def ours():
        f = blasx_function(letter, "geqp3")
        return Side(lambda: (a.copy("F"),), lambda a: f(a, overwrite_a=1)[:2], overwrites=(0,))

    def scipy():
        f = getattr(scipy_lapack, letter + "geqp3")

        def run(a):
            qr, jpvt, *_ = f(a.get(order="A"), overwrite_a=1)
            return cupy.asarray(qr), cupy.asarray(jpvt)

        return Side(lambda: (a.copy("F"),), run,
                    wall=lambda answers: cupy.cuda.Device().synchronize())

    return Row("geqp3", letter, f"{n}x{n}", {"in place": ours},
               {"SciPy": scipy} if n <= BY_SCIPY else {},
               lambda r: errors.triangular_of_qr(a[:, r[1] - 1], r[0]), timing.gpu_clock(a.nbytes),
               n**3 // 3 * a.itemsize)


def indefinite(routine, letter, n):
    """A = L D L^T, or L D L^H, by own kernels and, symmetric ones, by cuSOLVER."""
    a, b = normal(letter, n, n), normal(letter, n, 1)
    a = (a + (a.conj().T if routine == "hetrf" else a.T)).astype(a.dtype, order="F")
    factor, solve = (blasx_function(letter, x) for x in (routine, routine[:-1] + "s"))

    def side(values):
        def run(a):
            with _tuned.using(letter, hetrf_panel=values):
                return factor(a, 1, overwrite_a=1)[:2]

        return Side(lambda: (a.copy("F"),), run, overwrites=(0,))

    values = _tuned.capitals(_tuned.at_least("hetrf_panel", letter, n, 90))
    return Row(routine, letter, f"{n}x{n}", {"own kernels": partial(side, values)},
               {"cuSOLVER": partial(side, None)} if routine == "sytrf" else {},
               lambda r: errors.solution(a, b, solve(*r, b, 1)[0]), timing.gpu_clock(a.nbytes))


def least_squares(letter, m, n):
    """One right-hand side; the error is A^H (b - A x)."""
    a, b = normal(letter, m, n), normal(letter, m, 1)
    gels = blasx_function(letter, "gels")

    def ours():
        return Side(lambda: (a.copy("F"), b.copy("F")),
                    lambda a, b: gels(a, b, overwrite_a=1)[1][:n])

    def torch():
        import torch
        return Side(lambda: to_torch(a.copy("F"), b.copy("F")),
                    lambda a, b: torch.linalg.lstsq(a, b).solution, lambda x: from_torch(x)[0])

    def error(x):
        rest = errors.wide(b) - errors.wide(a) @ errors.wide(x)
        return errors.quotient(errors.wide(a).conj().T @ rest, a, b, like=a[:n])

    return Row("gels", letter, f"{m}x{n}", {"": ours}, {"torch": torch}, error,
               timing.gpu_clock(a.nbytes))


def of_host(routine, letter, n):
    """A routine of NumPy arrays, overwritten, by the GPU; the same of CuPy arrays, which bounds it
    from below as the transfer does; CuPy's solver of what it is sent, and sends back."""
    row, cupy = lapack(routine, letter, n), timing.gpu()
    f = blasx_function(letter, routine)
    there = tuple(x.get(order="A") for x in row.ours["in place"]().operands())

    def operands():
        return tuple(x.copy("F") for x in there)

    def wall(answers):
        cupy.cuda.Device().synchronize()

    def streamed():
        run = {"potrf": lambda a: f(a, 1, overwrite_a=1, device="gpu")[0],
               "gesv": lambda a, b: f(a, b, 1, 1, device="gpu")[2]}[routine]
        return Side(operands, run, cupy.asarray, tuple(range(len(there))), wall)

    def sent():
        run = {"potrf": cupy.linalg.cholesky, "gesv": cupy.linalg.solve}[routine]
        return Side(operands, lambda *x: run(*map(cupy.asarray, x)).get(), cupy.asarray, (), wall)

    def ours():
        return replace(row.ours["in place"](), wall=wall)

    warm = 2**40  # one set of operands: the host's are in no cache of the GPU's
    return Row(f"{routine} of the host's", letter, f"{n}x{n}",
               {"NumPy arrays": streamed, "CuPy arrays": ours}, {"CuPy": sent},
               row.check, timing.gpu_clock(warm))


def our_side(routine, letter, a, b, **how):
    f = partial(blasx_function(letter, routine), **how)
    run = {"potrf": lambda a: f(a, 1, overwrite_a=1),
           "gesv": lambda a, b: f(a, b, 1, 1)}.get(routine, lambda a: f(a, overwrite_a=1))
    answer = {"getrf": lambda r: r[:2], "gesv": lambda r: r[2], "syevd": lambda r: r[:2],
              "gesdd": lambda r: r[:3]}.get(routine, lambda r: r[0])
    if routine == "gesv":
        return Side(lambda: (a.copy("F"), b.copy("F")), run, answer, (0, 1))
    return Side(lambda: (a.copy("F"),), run, answer, (0,))


def torch_side(routine, a, b):
    import torch
    la = torch.linalg
    run = {"getrf": la.lu_factor_ex, "gesv": la.solve_ex, "potrf": la.cholesky_ex,
           "geqrf": torch.geqrf, "syevd": la.eigh, "gesdd": la.svd}[routine]

    def answer(r):
        if routine == "getrf":
            return from_torch(r[0])[0], from_torch(r[1])[0] - 1
        return from_torch(*r) if routine in ("syevd", "gesdd") else from_torch(r[0])[0]

    right = (b,) if routine == "gesv" else ()
    return Side(lambda: to_torch(*(x.copy("F") for x in (a, *right))), run, answer)


def cupy_side(routine, a, b):
    import cupy
    from cupyx.scipy.linalg import lu_factor
    la = cupy.linalg
    run = {"getrf": lambda a: lu_factor(a, overwrite_a=True, check_finite=False),
           "gesv": la.solve, "potrf": la.cholesky, "geqrf": lambda a: la.qr(a, mode="r"),
           "syevd": la.eigh, "gesdd": la.svd}[routine]
    right = (b,) if routine == "gesv" else ()
    return Side(lambda: tuple(x.copy("F") for x in (a, *right)), run,
                overwrites=(0,) if routine == "getrf" else ())


def vectors(routine, letter, part):
    """A routine of BLAS 1, or gemv, on a `part`th of the full size."""
    cupy = timing.gpu()
    n = ORDER // part if routine == "gemv" else LENGTH // part
    x, y = normal(letter, n), normal(letter, n) + 1
    a = normal(letter, n, n) if routine == "gemv" else None
    given = {"copy": (x, y), "scal": (x,), "axpy": (x, y), "dot": (x, y), "nrm2": (x,),
             "gemv": (a, x)}[routine]
    result = {"copy": lambda: x, "scal": lambda: 2 * x, "axpy": lambda: 2 * x + y,
              "dot": lambda: errors.wide(x) @ errors.wide(y),
              "nrm2": lambda: cupy.linalg.norm(errors.wide(x)),
              "gemv": lambda: errors.wide(a) @ errors.wide(x)}[routine]()
    terms = n if routine in ("dot", "nrm2", "gemv") else 1
    traffic = {"copy": 2, "scal": 2, "axpy": 3, "dot": 2, "nrm2": 1}.get(routine, n) * x.nbytes
    shape = f"{n}x{n}" if routine == "gemv" else f"{n}"
    return Row(routine, letter, shape, {"in place": partial(our_vectors, routine, letter, given)},
               {"CuPy": partial(cupy_vectors, routine, given),
                "torch": partial(torch_vectors, routine, given)},
               lambda r: errors.near(r, result, x.dtype, terms),
               timing.gpu_clock(sum(v.nbytes for v in given)), traffic)


WRITTEN = {"copy": (1,), "scal": (0,), "axpy": (1,)}  # the operands that a routine overwrites


def our_vectors(routine, letter, given):
    f = blasx_function(letter, routine)
    run = {"scal": lambda x: f(2.0, x), "axpy": lambda x, y: f(x, y, a=2.0),
           "gemv": lambda a, x: f(1.0, a, x)}.get(routine, f)
    return Side(lambda: tuple(v.copy("F") for v in given), run, overwrites=WRITTEN.get(routine, ()))


def cupy_vectors(routine, given):
    """CuPy's cuBLAS functions, which write into their last operand."""
    import cupy
    from cupy import cublas
    if routine == "gemv":
        given = (*given, cupy.zeros_like(given[1]))
    write = {"copy": lambda x, y: cupy.copyto(y, x), "scal": lambda x: cublas.scal(2.0, x),
             "axpy": lambda x, y: cublas.axpy(2.0, x, y),
             "gemv": lambda a, x, y: cublas.gemv("N", 1.0, a, x, 0.0, y)}.get(routine)

    def run(*operands):
        write(*operands)
        return operands[-1]

    return Side(lambda: tuple(v.copy("F") for v in given),
                run if write else getattr(cublas, routine), overwrites=WRITTEN.get(routine, ()))


def torch_vectors(routine, given):
    """torch on views of CuPy arrays, so that what it overwrites can be restored."""
    import torch
    run = {"copy": lambda x, y: y.copy_(x), "scal": lambda x: x.mul_(2.0),
           "axpy": lambda x, y: y.add_(x, alpha=2.0), "dot": torch.dot,
           "nrm2": torch.linalg.vector_norm, "gemv": torch.mv}[routine]
    count = len(given)

    def operands():
        mine = tuple(v.copy("F") for v in given)
        return (*mine, *to_torch(*mine))

    return Side(operands, lambda *both: run(*both[count:]), lambda r: from_torch(r)[0],
                WRITTEN.get(routine, ()))
