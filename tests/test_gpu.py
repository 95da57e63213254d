"""What only a GPU can show: streams, threads, graphs, asynchrony, sizes past 32 bits (-m gpu)."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import blasx
from blasx import _errors
from blasx._types import TYPES

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cp():
    return pytest.importorskip("cupy")


def spd(cp, batch, n, dtype="d"):
    x = cp.random.standard_normal((batch, n, n)).astype(dtype)
    return x @ x.transpose(0, 2, 1) + n * cp.eye(n, dtype=dtype)


def seconds_of_spinning(cp, seconds):
    """Occupy the current stream for about `seconds`; whatever synchronises has to wait as long."""
    spin = cp.RawKernel(r"""extern "C" __global__ void spin(long long ns) {
        long long now, start;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
        do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < ns);
    }""", "spin")
    spin((1,), (1,), (int(seconds * 1e9),))


ASYNCHRONOUS = {
    "dgemm": lambda a, b: (1.0, a, b),
    "dtrsm": lambda a, b: (1.0, a, b),
    "ddot": lambda a, b: (a[0], b[0]),
    "dnrm2": lambda a, b: (a[0],),
    "idamax": lambda a, b: (a[0],),
    "dgetrf": lambda a, b: (a,),
    "dpotrf": lambda a, b: (a,),
    "dgesv": lambda a, b: (a, b),
    "dgeqrf": lambda a, b: (a,),
    "dlange": lambda a, b: ("F", a),
    "dgetrf_batched": lambda a, b: (a[None, :32, :32],),
    "dgesv_batched": lambda a, b: (a[None, :32, :32], b[None, :32, :32]),
    "dposv_batched": lambda a, b: (a[None, :32, :32], b[None, :32, :32]),
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_no_hidden_synchronisation(cp, name):
    """A call returns while the stream before it is still busy."""
    a = spd(cp, 1, 64)[0]
    b = cp.random.standard_normal((64, 64))
    call = getattr(blasx, name)
    args = ASYNCHRONOUS[name](a, b)
    call(*args)
    cp.cuda.Device().synchronize()
    seconds_of_spinning(cp, 0.3)
    start = time.perf_counter()
    call(*args)
    elapsed = time.perf_counter() - start
    cp.cuda.Device().synchronize()
    assert elapsed < 0.2


def test_runs_in_the_current_stream(cp):
    """Work queued in another stream is not waited for, and ours is ordered after our own."""
    stream = cp.cuda.Stream(non_blocking=True)
    a = spd(cp, 100, 16)
    blasx.dpotrf_batched(a)
    seconds_of_spinning(cp, 0)
    cp.cuda.Device().synchronize()
    with stream:
        seconds_of_spinning(cp, 0.3)
        c, info = blasx.dpotrf_batched(a)
    other = blasx.dpotrf_batched(a)
    cp.cuda.Stream.null.synchronize()
    assert not stream.done
    stream.synchronize()
    assert (c == other[0]).all() and not info.any()


def test_eight_threads_on_eight_streams(cp):
    a = cp.random.standard_normal((64, 64))
    stack = spd(cp, 50, 24)
    want = blasx.dgemm(1.0, a, a), blasx.dgetrf(a), blasx.dgetrf_batched(stack)
    cp.cuda.Device().synchronize()
    wrong = []

    def work():
        try:
            with cp.cuda.Stream(non_blocking=True) as stream:
                for i in range(1000):
                    got = blasx.dgemm(1.0, a, a), blasx.dgetrf(a), blasx.dgetrf_batched(stack)
                    if i % 100 == 0:
                        stream.synchronize()
                        good = (abs(got[0] - want[0]).max() < 1e-12
                                and (got[1][1] == want[1][1]).all()
                                and (got[2][0] == want[2][0]).all())
                        if not good:
                            wrong.append(i)
                stream.synchronize()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


GRAPHS_WITH_WORKSPACE = {
    "dormqr_batched": lambda qr, tau, c: blasx.dormqr_batched("L", "T", qr, tau, c, overwrite_c=1),
    "dorgqr_batched": lambda qr, tau, c: blasx.dorgqr_batched(qr, tau, overwrite_a=1),
    "dgeqrf_batched": lambda qr, tau, c: blasx.dgeqrf_batched(c, overwrite_a=1),
    "dgels_batched": lambda qr, tau, c: blasx.dgels_batched(c, qr, overwrite_a=1, overwrite_b=1),
    "dgetrf_batched": lambda qr, tau, c: blasx.dgetrf_batched(c, overwrite_a=1),
}


@pytest.mark.parametrize("name", GRAPHS_WITH_WORKSPACE)
@pytest.mark.parametrize("n", (300, 501))
def test_a_graph_keeps_the_workspace_of_its_calls(cp, name, n):
    """What is allocated after the capture is not written when the graph runs."""
    call = GRAPHS_WITH_WORKSPACE[name]
    a = cp.random.default_rng(0).standard_normal((3, n, n))
    fresh = (*blasx.dgeqrf_batched(a)[:2], a)
    arrays = [x.copy() for x in fresh]
    call(*arrays)
    right = [x.copy() for x in arrays]
    cp.cuda.Device().synchronize()  # of which a stream that does not block knows nothing
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        for x, y in zip(arrays, fresh):
            x[...] = y
        stream.synchronize()
        stream.begin_capture()
        kept = call(*arrays)
        graph = stream.end_capture()
        sizes = (3 * n * n, 3 * n * 512, 3 * 512 * 512, 3 * n * 32, 3 * 320 * 32, 3 * 304 * 16)
        others = [cp.zeros(size) for size in sizes for _ in range(8)]
        graph.launch(stream)
        stream.synchronize()
    assert all((x == y).all() for x, y in zip(arrays, right))
    assert not any(x.any() for x in others)
    del kept


@pytest.mark.parametrize("name", ["dgemm", "dgetrf_batched", "dpotrf_batched", "dgesv_batched"])
def test_graph_capture(cp, name):
    """With overwrite_* a call can be captured and replayed on new data."""
    n = 32
    fresh = spd(cp, 8, n)
    a, b, c = fresh.copy(), cp.ones((8, n, 2)), cp.zeros((n, n), order="F")
    first = cp.asfortranarray(fresh[0])
    calls = {
        "dgemm": lambda: blasx.dgemm(1.0, first, first, 0.0, c, overwrite_c=1),
        "dgetrf_batched": lambda: blasx.dgetrf_batched(a, overwrite_a=1),
        "dpotrf_batched": lambda: blasx.dpotrf_batched(a, overwrite_a=1),
        "dgesv_batched": lambda: blasx.dgesv_batched(a, b, overwrite_a=1, overwrite_b=1),
    }
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        calls[name]()
        a[...], b[...] = fresh, 1
        stream.synchronize()
        stream.begin_capture()
        kept = calls[name]()
        graph = stream.end_capture()
        c[...] = 0
        graph.launch(stream)
        stream.synchronize()
    del kept
    if name == "dgemm":
        assert abs(c - first @ first).max() < 1e-10
    elif name == "dgesv_batched":
        assert abs(fresh @ b - 1).max() < 1e-10
    else:
        assert (a == getattr(blasx, name)(fresh)[0]).all()


RAGGED = {
    "dgesv_vbatched": lambda a, b: blasx.dgesv_vbatched(a, b, overwrite_a=1, overwrite_b=1),
    "cposv_vbatched": lambda a, b: blasx.cposv_vbatched(a, b, overwrite_a=1, overwrite_b=1),
    "sgeqrf_vbatched": lambda a, b: blasx.sgeqrf_vbatched(a, overwrite_a=1),
    "dgels_vbatched": lambda a, b: blasx.dgels_vbatched(a, b, overwrite_a=1, overwrite_b=1),
    "ssyevd_vbatched": lambda a, b: blasx.ssyevd_vbatched(a, overwrite_a=1),
    "zheevd_vbatched": lambda a, b: blasx.zheevd_vbatched(a, overwrite_a=1),
}


@pytest.mark.parametrize("name", RAGGED)
def test_graph_of_members_of_different_sizes(cp, name):
    """A captured call, replayed on other members than those it was captured with, gives what a
    call gives, and goes on doing so when the memory of both has been allocated again."""
    letter = name[0]
    orders = [1, 3, 9, 16, 17, 33, 64, 65, 100, 130, 200, 257, 300, *range(5, 60)]
    fresh, sides = [spd(cp, 1, n)[0] for n in orders], [cp.random.standard_normal((n, 2))
                                                        for n in orders]
    if letter in "cz":  # definite still: what is added is Hermitian, of norm 1 at most
        skew = [cp.triu(cp.random.uniform(-1, 1, (n, n)), 1) / n for n in orders]
        fresh = [a + 1j * (k - k.T) for a, k in zip(fresh, skew)]
        sides = [b + 1j * b[::-1] for b in sides]
    fresh, sides = ([x.astype(TYPES[letter].dtype) for x in y] for y in (fresh, sides))
    a, b = (blasx.Ragged.pack(x) for x in (fresh, sides))
    full = a.data.copy(), b.data.copy()

    def members():
        a.data[...], b.data[...] = full

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        want = RAGGED[name](a, b)
        want = [x.data.copy() if isinstance(x, blasx.Ragged) else x.copy() for x in want]
        for i, n in enumerate(orders):  # captured with members whose info would be another
            a[i][...] = cp.eye(n)
        stream.synchronize()
        stream.begin_capture()
        kept = RAGGED[name](a, b)
        graph = stream.end_capture()
        for _ in range(3):
            members()
            spoiled = [cp.full(1 << 24, cp.nan) for _ in range(8)]  # what was given back, if any
            del spoiled
            graph.launch(stream)
            stream.synchronize()
            for x, y in zip(kept, want):
                x = x.data if isinstance(x, blasx.Ragged) else x
                assert (x == y).all()


@pytest.mark.parametrize("batch", [0, 1, 65535, 65536, 200000])
def test_any_batch_count(cp, batch):
    a = spd(cp, batch, 4)
    b = cp.ones((batch, 4))
    for f in (blasx.dgesv_batched, blasx.dposv_batched):
        x, info = f(a, b)[-2:]
        assert x.shape == b.shape and info.shape == (batch,) and not info.any()
        if batch:
            assert abs(cp.einsum("bij,bj->bi", a, x) - 1).max() < 1e-10


def test_more_than_two_to_the_31_elements(cp):
    """Offsets are 64-bit: the last member of a batch past 2^31 elements is the right one."""
    n, batch = 32, 2**21 + 3
    a = cp.empty((batch, n, n), "f4")
    a[...] = cp.eye(n, dtype="f4")
    a[-1] = spd(cp, 1, n, "f4")[0]
    last = a[-1:].copy()
    c, info = blasx.spotrf_batched(a, lower=1, overwrite_a=1)
    assert (c[-1] == blasx.spotrf_batched(last, lower=1)[0][0]).all() and not info.any()
    assert (c[2**21] == cp.eye(n)).all()


def test_a_long_vector(cp):
    n = 2**31 + 5
    x = cp.ones(n, "f4")
    x[-1] = 3
    assert int(blasx.isamax(x)) == n - 1
    y = blasx.sscal(2.0, x)
    assert float(y[-1]) == 6


def test_fork_is_refused_with_a_clear_message(cp):
    code = """if True:
        import os, sys, cupy, blasx
        a = cupy.eye(4)[None]
        blasx.dgetrf_batched(a); blasx.dgetrf(a[0])
        pid = os.fork()
        if pid == 0:
            ok = 0
            for f in (lambda: blasx.dgetrf_batched(a), lambda: blasx.dgemm(1., a[0], a[0])):
                try: f()
                except RuntimeError as e: ok += 'fork' in str(e)
            os._exit(0 if ok == 2 else 1)
        sys.exit(os.waitpid(pid, 0)[1] >> 8)
    """
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_transfer_warning(cp):
    a = cp.random.standard_normal((4, 9))
    with pytest.warns(blasx.TransferWarning, match="dgbtrf"), blasx.trace() as t:
        lub, piv, _ = blasx.dgbtrf(a, 1, 1)
    assert isinstance(lub, cp.ndarray) and isinstance(piv, cp.ndarray)
    assert t.calls[0].transfers >= 2 * a.nbytes and t.calls[0].syncs


def test_products_of_torchs_short_types(cp):
    """float16 and bfloat16 in, the same out: summed in single precision, rounded once."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    for dtype, eps in ((torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)):
        a, b = (torch.randn(shape, device="cuda").to(dtype) for shape in ((6, 20, 30), (30, 40)))
        c = blasx.gemm_batched(1.0, a, b)
        expected = a.double() @ b.double()
        assert isinstance(c, torch.Tensor) and c.dtype is dtype
        assert (c.double() - expected).abs().max() <= 1.1 * eps * expected.abs().max()


@pytest.mark.parametrize("letter", "sdczhb")
@pytest.mark.parametrize("shape", [(7, 65, 100), (65, 100, 64), (128, 128, 128), (16, 256, 33),
                                   (40, 128, 64), (150, 200, 130), (100, 128, 1)])
def test_large_products_of_a_member_alone(cp, letter, shape):
    """The same bits as in any batch, by whatever library."""
    t, (m, n, k) = TYPES[letter], shape
    if not t.is_known:
        pytest.skip("no bfloat16")
    a, b = (cp.random.standard_normal(s).astype("f4").astype(t.dtype)
            for s in ((37, m, k), (37, k, n)))
    whole = blasx.gemm_batched(1.0, a, b)
    for part in (slice(5, 6), slice(0, 3), slice(36, 37)):
        alone = blasx.gemm_batched(1.0, a[part], b[part])
        assert whole[part].get().tobytes() == alone.get().tobytes()


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("nrhs", [1, 3])
def test_tall_least_squares(cp, letter, nrhs):
    """A^H (B - A X) = 0 and A^H X = B, by Cholesky's QR twice, one right-hand side and several."""
    rng, gels = np.random.default_rng(3), getattr(blasx, letter + "gels")
    a, b = (rng.standard_normal(shape) for shape in ((3000, 40), (3000, nrhs)))
    if letter in "cz":
        a, b = a + 1j * rng.standard_normal(a.shape), b + 1j * rng.standard_normal(b.shape)
    a, b = a.astype(gels.dtype), b.astype(gels.dtype)
    wide, eps = a.astype("c16"), float(np.finfo(a.dtype).eps)
    x, info = (y.get() for y in gels(cp.asarray(a), cp.asarray(b), mode="native")[1:])
    assert info == 0 and abs(wide.conj().T @ (b - wide @ x[:40])).max() < 3000 * eps
    x, info = (y.get() for y in gels(cp.asarray(a), cp.asarray(b), trans="TC"[letter in "cz"],
                                     mode="native")[1:])
    assert info == 0 and abs(wide.conj().T @ x - b[:40]).max() < 100 * eps


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("shape", [(700, 700), (1100, 300), (300, 1100)])
def test_column_pivots(cp, letter, shape):
    """R^H R = P^T A^H A P, LAPACK's pivots in double precision, the same bits twice, nothing waited
    for; of rank 40 the rest is noise; nan ends, too."""
    from scipy.linalg import lapack
    rng, geqp3 = np.random.default_rng(5), getattr(blasx, letter + "geqp3")
    a = rng.standard_normal(shape)
    if letter in "cz":
        a = a + 1j * rng.standard_normal(shape)
    a = a.astype(geqp3.dtype)
    eps = float(np.finfo(a.dtype).eps)
    with blasx.trace() as t:
        qr, jpvt, tau, _, info = geqp3(cp.asarray(a))
    again = geqp3(cp.asarray(a))
    assert not t.calls[0].transfers and not t.calls[0].syncs and int(info) == 0
    assert all(x.tobytes() == y.tobytes() for x, y in zip(map(cp.asnumpy, (qr, jpvt, tau)),
                                                          map(cp.asnumpy, again)))
    order = jpvt.get() - 1
    assert _errors.triangular_of_qr(a[:, order], qr.get()) < _errors.PASS
    if letter in "dz":
        assert np.array_equal(order + 1, getattr(lapack, letter + "geqp3")(a)[1])
    low = (a[:, :40] @ a[:40]).astype(a.dtype)
    d = abs(geqp3(cp.asarray(low))[0].diagonal().get())
    assert d[40] < 1e3 * eps * d[0]
    a[3, 5] = np.nan
    assert not np.isfinite(geqp3(cp.asarray(a))[0].get()).all()


@pytest.mark.parametrize("name", "chetrf zhetrf ssytrf dsytrf csytrf zsytrf".split())
@pytest.mark.parametrize("lower", [0, 1])
def test_indefinite_by_own_kernels(cp, name, lower):
    """LAPACK's pivots in double precision, the same bits twice, solves; a panel that ends within a
    block of order 2; nan ends, too."""
    from scipy.linalg import lapack

    from blasx import _tuned
    letter, rng, n = name[0], np.random.default_rng(5), 777
    factor, solve = getattr(blasx, name), getattr(blasx, name[:3] + "sv")
    a, b = rng.standard_normal((n, n)), rng.standard_normal((n, 3))
    if letter in "cz":
        a = a + 1j * rng.standard_normal((n, n))
    a = (a + (a.conj().T if name[1] == "h" else a.T)).astype(factor.dtype)
    values = _tuned.constants("hetrf_panel", letter, n, 90)
    with _tuned.using(letter, hetrf_panel=values):
        ldu, ipiv, info = factor(cp.asarray(a), lower)
        again = factor(cp.asarray(a), lower)
        assert ldu.get().tobytes() == again[0].get().tobytes() and int(info) == 0
        x = solve(cp.asarray(a), cp.asarray(b.astype(a.dtype)), lower=lower)[2]
        assert _errors.solution(a, b, x.get()) < _errors.PASS
        if letter in "dz":
            assert np.array_equal(ipiv.get(), getattr(lapack, name)(a, lower)[1])
        a[9, 5] = a[5, 9] = np.nan
        assert not np.isfinite(factor(cp.asarray(a), lower)[0].get()).all()


JOINED = dict(COLUMNS=8, WARPS=2, BLOCKS=2, joined=512, block=128, panel=64, strip=32, ahead=1,
              lead=1, turns=2)
REMAINDERS = dict(GROUPS=2, BN=256, STAGES=3, CLUSTER=2, WIDE=8, side=64, depth=512)


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("shape", [(1700, 1700), (2100, 900), (900, 2100)])
def test_lu_by_blocks_of_blocks(cp, letter, shape):
    """Panels in strips, parts, blocks whose products are taken off at once, of double precision by
    remainders: in double LAPACK's pivots and factors, P A = L U, the same bits twice, a nan that is
    seen."""
    from scipy.linalg import lapack

    from blasx import _gpu_crt, _tuned
    rng, dtype = np.random.default_rng(1), TYPES[letter].dtype
    a = rng.standard_normal(shape)
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    a = np.asfortranarray(a, dtype)
    getrf, (right, pivots, _) = getattr(blasx, letter + "getrf"), getattr(
        lapack, letter + "getrf")(a)
    lost = a.copy(order="F")
    lost[shape[0] // 2, 700] = np.nan
    products = {"gemm_crt": REMAINDERS} if letter == "d" else {}
    with _tuned.using(letter, getrf_rows=JOINED, **products):
        if products:
            assert _gpu_crt.pays(*shape, 512, 0)
        with blasx.trace() as t:
            lu, piv, info = getrf(cp.asarray(a, order="F"), mode="native")
        again = getrf(cp.asarray(a, order="F"), mode="native")
        of_lost = getrf(cp.asarray(lost, order="F"), mode="native")[0]
    if shape[0] == shape[1]:
        assert "getrf_columns" in t.calls[0].variant
        assert ("gemm_crt" in t.calls[0].variant) == (letter == "d")
    eps, k, found = np.finfo(dtype).eps, min(shape), lu.get()
    assert int(info) == 0
    if letter in "dz":  # in single precision the largest of a column may be another
        assert np.array_equal(piv.get(), pivots)
        assert abs(found - right).max() <= 3e4 * eps * abs(right).max()
    order = np.arange(shape[0])
    for i, p in enumerate(piv.get()):
        order[[i, p]] = order[[p, i]]
    wide = found.astype("c16")
    lower, upper = np.tril(wide[:, :k], -1) + np.eye(shape[0], k), np.triu(wide[:k])
    assert abs(lower).max() <= (1 + 8 * eps) * (2**0.5 if letter in "cz" else 1)
    assert abs(a[order] - lower @ upper).max() <= 30 * eps * (abs(lower) @ abs(upper)).max()
    assert lu.get().tobytes() == again[0].get().tobytes()
    assert bool(cp.isnan(of_lost.diagonal()).any())


WINDOWS = dict(joined=256, block=64, WINDOW=128, ahead=1, whole=256, turns=1, pays=1)


@pytest.mark.parametrize("n", [1203, 2048])
def test_butterflies_and_pivots_from_windows(cp, n):
    """As accurate as a solve in double precision, of one right-hand side, several and too many for
    kernels of ours; the same bits twice; what is too hard, or no number, is left to double."""
    from blasx import _errors, _tuned
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n))
    graded = a * np.logspace(0, -14, n)[:, None]
    # zeros on the diagonal of every block: there is no LU of this without pivots
    swapped = np.roll(np.eye(n), n // 2, axis=0) + 1e-3 * a / n
    with _tuned.using("s", getrf_windows=WINDOWS):
        for of, nrhs in ((a, 1), (a, 3), (a, 40), (swapped, 1), (graded, 1)):
            b = rng.standard_normal((n, nrhs))
            given = cp.asarray(of, order="F")
            with blasx.trace() as t:
                x, steps, info = blasx.dsgesv_rbt(given, cp.asarray(b))
            assert "getrf_window" in t.calls[0].variant and int(info) == 0
            assert of is graded or int(steps) >= 0
            assert _errors.solution(of, b, x.get()) < _errors.PASS
            assert (given.get() == of).all()
            again = blasx.dsgesv_rbt(given, cp.asarray(b))[0]
            assert x.get().tobytes() == again.get().tobytes()
        lost = a.copy()
        lost[n // 3, 5] = np.nan
        x, steps, _ = blasx.dsgesv_rbt(cp.asarray(lost, order="F"), cp.asarray(b))
        assert int(steps) == -2 and not np.isfinite(x.get()).any()
        x, steps, info = blasx.dsgesv_rbt(cp.zeros((n, n), order="F"), cp.asarray(b))
        assert int(steps) == -3 and int(info) == 1 and (x.get() == b).all()


def test_torch_tensors_in_and_out(cp):
    torch = pytest.importorskip("torch")
    a = torch.eye(8, device="cuda", dtype=torch.float64) * 2
    lu, piv, info = blasx.dgetrf(a)
    assert isinstance(lu, torch.Tensor) and lu.is_cuda and int(info) == 0
    stack = torch.eye(8, device="cuda", dtype=torch.float32).repeat(5, 1, 1)
    c, info = blasx.potrf_batched(stack, overwrite_a=1)
    assert c.data_ptr() == stack.data_ptr() and c.dtype is torch.float32
    host = torch.eye(3, dtype=torch.float64)
    assert isinstance(blasx.dgetrf(host)[0], torch.Tensor)


def test_mixed_devices_are_refused(cp):
    with pytest.raises(TypeError, match="dgemm.*NumPy and CuPy"):
        blasx.dgemm(1.0, np.eye(2), cp.eye(2))


@pytest.fixture
def second(cp):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    return cp.cuda.Device(1)


def test_runs_on_the_device_that_holds_the_arrays(cp, second):
    """Whatever device is current, and leaves it so; kernels, cuBLAS and cuSOLVER."""
    host = spd(cp, 20, 24).get()
    with second:
        stack = cp.asarray(host)
    calls = {"dpotrf_batched": (stack,), "dgetrf_batched": (stack,), "dgetrf": (stack[0],),
             "dgemm": (1.0, stack[0], stack[1]), "dsyevd_batched": (stack,),
             "dgesvd_batched": (stack,)}
    for name, arguments in calls.items():
        results = getattr(blasx, name)(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        assert cp.cuda.Device().id == 0
        assert all(x.device == second for x in results if isinstance(x, cp.ndarray))
        want = getattr(blasx, name)(*(cp.asarray(x.get()) if hasattr(x, "get") else x
                                      for x in arguments))
        want = want if isinstance(want, tuple) else (want,)
        for x, y in zip(results, want):
            assert x.get().tobytes() == y.get().tobytes()


def test_operands_on_two_devices_are_refused(cp, second):
    here = spd(cp, 3, 8)
    with second:
        there = cp.asarray(here.get())
    with pytest.raises(TypeError, match="dgemm.*one device, got GPUs 0 and 1"):
        blasx.dgemm(1.0, here[0], there[0])
    with pytest.raises(TypeError, match="gesv_batched.*one device, got GPUs 1 and 0"):
        blasx.gesv_batched(there, here)
