"""Products on a Hopper GPU (-m gpu): of single precision by pairs of half precision no worse than
cuBLAS's own, for every order of the operands, and right where pairs do not suffice; of half
precision with what follows them; of double precision by remainders, the same bits by all tiles; one
triangle of products, and Cholesky of one matrix by them."""

import gc
from itertools import product

import numpy as np
import pytest

import blasx
from blasx import _tuned, blas3
from blasx._types import TYPES, finfo

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cp():
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.Device().compute_capability != "90":
        pytest.skip("gemm_wgmma is Hopper's")
    return cupy


ROWS = [_tuned.capitals(r) for r in _tuned.table(90)["gemm_wgmma"]["s"] if _tuned.capitals(r)]


@pytest.fixture(params=ROWS, ids=lambda v: "{GROUPS}x{BN}".format(**v))
def by_pairs(request, cp):
    """Every product by pairs, whatever its size, with the tiles of each row."""
    with _tuned.using("s", gemm_small=None, gemm_tiled=None, gemm_wgmma=request.param):
        yield


def operands(cp, kind, m, n, k, seed=0):
    random = cp.random.RandomState(seed)
    a, b = (random.standard_normal(shape).astype("f4") for shape in ((m, k), (k, n)))
    if kind == "uniform":
        a, b = (random.random_sample(shape).astype("f4") for shape in ((m, k), (k, n)))
    elif kind == "spread":  # entries of all sizes
        a, b = (x * cp.exp(2 * random.standard_normal(x.shape)).astype("f4") for x in (a, b))
    elif kind == "graded":  # lines of all sizes
        a *= cp.exp2(cp.linspace(-60, 60, m)).astype("f4")[:, None]
        b *= cp.exp2(cp.linspace(50, -50, n)).astype("f4")
    elif kind == "cancelling":  # what is left is 2^-10 of the terms
        h = k // 2
        a[:, h:2 * h], b[h:2 * h] = a[:, :h], b[:h] * np.float32(2**-10 - 1)
    elif kind == "large meets zero":
        a[:, :k // 2] *= 2.0**24
        b[:k // 2] = 0
    elif kind == "opposite":  # all terms alike, made of the largest and the smallest numbers
        scale = cp.exp2(cp.linspace(0, -40, k)).astype("f4")
        a, b = a * scale, b / scale[:, None]
    return a, b


KINDS = ("normal", "uniform", "spread", "graded", "cancelling", "large meets zero", "opposite")


def errors(cp, c, a, b):
    """max |dC| / (|A| |B|), |dC|_F / |C|_F"""
    a, b = a.astype("f8"), b.astype("f8")
    exact, size = a @ b, abs(a) @ abs(b)
    wrong = abs(c - exact)
    return float((wrong / size).max()), float(cp.linalg.norm(wrong) / cp.linalg.norm(exact))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1024, 1024, 1024), (1024, 1024, 8192)])
def test_errors_are_at_most_those_of_cublas(cp, kind, shape):
    """Where cuBLAS does not share k among blocks, which makes its sums shorter: there it is down to
    1.2e-7 in the second measure, uniform numbers, and this to 1.9e-7.

    Where few terms count, what one product may be off does, too: 2^-23 for what a pair leaves out
    of each number, 2^-22 for the product of the low parts, and 2^-24 for each of the four products
    of high parts that the tensor cores add up, cutting off, and for the sum of these parts."""
    a, b = operands(cp, kind, *shape)
    with blasx.trace() as ran:
        ours = errors(cp, blasx.sgemm(1, a, b), a, b)
    theirs = errors(cp, cp.matmul(a, b), a, b)
    worst = 2**-21 + 5 * 2**-24 if kind == "spread" else 2**-21
    assert "gemm_wgmma" in str(ran)
    assert ours[0] <= worst and ours[0] <= 1.5 * theirs[0] and ours[1] <= 1.5 * theirs[1], (
        ours, theirs)


@pytest.fixture
def by_digits(cp):
    """Every product by digits if its lines are even, whatever its size."""
    found = _tuned.capitals(_tuned.table(90)["gemm_digits"]["s"][-1])
    with _tuned.using("s", gemm_small=None, gemm_tiled=None,
                      gemm_wgmma=ROWS[-1], gemm_digits=found | {"side": 1, "depth": 1}):
        yield


@pytest.mark.parametrize("k", [2048, 4096, 12288, 24576])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_by_digits(cp, by_digits, kind, k):
    """At most 1.5 times cuBLAS's; where lines are not even the same bits as by pairs."""
    a, b = operands(cp, kind, 3072, 4000, k)
    with blasx.trace() as ran:
        c = blasx.sgemm(1, a, b)
    assert "gemm_digits" in str(ran)
    ours, theirs = errors(cp, c, a, b), errors(cp, cp.matmul(a, b), a, b)
    assert all(x <= 1.5 * y for x, y in zip(ours, theirs)), (ours, theirs)
    assert kind in ("spread", "opposite") or ours[0] <= 2**-21
    pairs = blasx.sgemm(1, a, b, variant="native")
    assert bool((c == pairs).all()) == (kind in ("spread", "large meets zero", "opposite"))


def test_what_digits_are(cp, by_digits):
    """What a model gives, for every order of the operands, edges of tiles, lines of zeros and of
    all sizes; numbers that are the same all along a line, or not finite, are left to pairs."""
    from tests.sim.run_tiles import close_to, of_digits
    for (m, n, k), orders in product(((300, 129, 500), (65, 257, 1100), (256, 256, 4096)),
                                     product("CFS", "CFS", "CFV")):
        a, b = operands(cp, "graded", m, n, k)
        a[3] = 0
        exact = cp.asarray(of_digits(a.get(), b.get()))
        left, right, c = (laid_out(cp, x, order)
                          for x, order in zip((a, b, cp.full((m, n), cp.nan, "f4")), orders))
        assert close_to(blasx.sgemm(1, left, right, 0, c, overwrite_c=1), exact, cp), (
            m, n, k, orders)
        assert (blasx.sgemm(-2, left, right, 1, c) == -c).all()
        left[5] = 0.1
        assert (abs(blasx.sgemm(1, left, right)[5] - 0.1 * right.sum(0, "f8"))
                <= 2**-20 * abs(right).sum(0, "f8")).all()
        left[7, 11] = cp.nan
        got = blasx.sgemm(1, left, right)
        assert cp.isnan(got[7]).all() and not cp.isnan(got[:7]).any()


def test_errors_of_long_sums(cp):
    for kind in ("normal", "uniform"):
        a, b = operands(cp, kind, 1024, 1024, 65536)
        ours = errors(cp, blasx.sgemm(1, a, b), a, b)
        theirs = errors(cp, cp.matmul(a, b), a, b)
        assert ours[0] <= 2**-21 and all(x <= 1.5 * y for x, y in zip(ours, theirs)), (ours, theirs)


def test_every_order_of_the_operands(cp, by_pairs):
    for (m, n, k), ta, tb in product(((300, 129, 200), (65, 257, 67), (128, 192, 64)), (0, 1),
                                     (0, 2)):
        a, b = operands(cp, "normal", m, n, k)
        exact, size = a.astype("f8") @ b.astype("f8"), abs(a).astype("f8") @ abs(b).astype("f8")
        for orders in product("CFS", "CFS", "CFV"):
            left, right = (laid_out(cp, x.T if t else x, order)
                           for x, t, order in zip((a, b), (ta, tb), orders))
            for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
                before = cp.random.random_sample((m, n)).astype("f4") if beta else \
                    cp.full((m, n), cp.nan, "f4")
                c = laid_out(cp, before, orders[2])
                out = blasx.sgemm(alpha, left, right, beta, c, ta, tb, overwrite_c=1)
                right_c = alpha * exact + (beta * before.astype("f8") if beta else 0)
                assert out is c
                bound = 2**-21 * (abs(alpha) * size + (abs(beta * before) if beta else 0))
                assert (abs(c - right_c) <= bound).all(), (m, n, k, ta, tb, orders)


def laid_out(cp, x, order):
    """By rows, by columns, with steps in both directions, or as a view into something larger."""
    if order == "S":
        room = cp.full((2 * x.shape[0], 3 * x.shape[1]), cp.nan, "f4")[::2, ::3]
    elif order == "V":
        room = cp.full((x.shape[0] + 3, x.shape[1] + 5), cp.nan, "f4", order="F")[1:-2, 2:-3]
    else:
        room = cp.empty(x.shape, "f4", order=order)
    room[...] = x
    return room


def test_special_values(cp, by_pairs):
    """What single precision makes of them, to the rounding."""
    a, b = (x.get() for x in operands(cp, "normal", 300, 280, 500))
    a[5, 7], a[9, 3], b[4, 8], b[11, 200] = np.inf, np.nan, -np.inf, np.nan
    a[20] *= np.float32(1e-42)  # CuPy's own arithmetic takes what is subnormal for zeros
    a[21] = 0
    a[30] *= np.float32(1e38)
    b[:, 31] *= np.float32(1e30)
    b[:, 40] *= np.float32(1e-30)
    b[:, 41] = 1e-45
    with np.errstate(all="ignore"):
        exact = a.astype("f8") @ b.astype("f8")
        right, size = exact.astype("f4"), abs(a).astype("f8") @ abs(b).astype("f8")
        c = blasx.sgemm(1, cp.asarray(a), cp.asarray(b)).get()
        wrong = abs(c - exact)
    assert (np.isnan(c) == np.isnan(right)).all() and np.isnan(c).any()
    assert (np.isinf(c) == np.isinf(right)).all() and (c == right)[np.isinf(right)].all()
    good = np.isfinite(right)
    assert (wrong[good] <= 2**-21 * size[good] + 2**-149).all()


@pytest.mark.parametrize("letter", "sc")
def test_lines_with_few_numbers(cp, by_pairs, letter):
    """What one of at most eight numbers that are not zero makes is rounded once: A times a
    permutation is that of A. Nine are pairs; beside what is not finite zeros count, too."""
    gemm, dtype = getattr(blasx, letter + "gemm"), TYPES[letter].dtype
    random = cp.random.RandomState(3)
    for (m, n, k), (order_a, order_b) in product(((300, 1030, 1030), (129, 257, 3000)),
                                                 product("CF", repeat=2)):
        a, b = (random.standard_normal(x) + (1j * random.standard_normal(x) if letter == "c" else 0)
                for x in ((m, k), (k, n)))
        b *= random.random_sample((k, n)).argsort(0) < cp.arange(n) % 12  # so many in column j
        one = cp.arange(1, n, 12)
        b[:, one] = b[:, one] != 0
        a, b = cp.array(a, dtype, order=order_a), cp.array(b, dtype, order=order_b)
        a[5, 20:] = 0
        exact, c = a.astype("c16") @ b.astype("c16"), a[:, :1] * b[:1]
        with blasx.trace() as ran:
            got = gemm(1, a, b)
        assert "gemm_wgmma" in str(ran)
        assert bool((got[:, one] == a[:, b[:, one].argmax(0)]).all())
        few, size = cp.arange(n) % 12 <= 8, abs(a).astype("f8") @ abs(b).astype("f8")
        for x, y in ((got.real, exact.real), (got.imag, exact.imag)):
            assert bool((abs(x - y) <= 1.001 * 2**-24 * abs(y) + 2**-48 * size)[:, few].all())
        assert bool((abs(got - exact) <= 2**-20 * size).all())
        twice = gemm(-2, a, b, 0.5, c)
        assert bool((abs(twice + 2 * got - c / 2) <= 2**-22 * (abs(got) + abs(c))).all())
        assert all(bool((gemm(1, a, b) == got).all()) for _ in range(20))
        a[7, 11] = cp.inf
        got = gemm(1, a, b)
        beside = b[11, one] != 0  # 0 times inf
        assert bool((cp.isnan(got[7, one].real) == ~beside).all())
        assert not bool(cp.isnan(cp.delete(got, 7, 0)).any())


def test_the_same_bits_every_time(cp, by_pairs):
    a, b = operands(cp, "spread", 700, 900, 1100)
    c = blasx.sgemm(1, a, b)
    for _ in range(100):
        assert (blasx.sgemm(1, a, b) == c).all()


def test_a_bias_is_added_as_c_is_stored(cp, by_pairs):
    """Along the lines of C, by columns and by rows; another one after the product."""
    a, b = operands(cp, "normal", 200, 130, 96)
    a[3, 4] = cp.inf
    for order, shape, relu in product("CF", ((130,), (200, 1)), (None, "relu")):
        bias = cp.random.RandomState(5).standard_normal(shape).astype("f4")
        c = cp.full((200, 130), cp.nan, "f4", order=order)
        with blasx.trace() as ran:
            out = blasx.sgemm(-0.5, a, b, 0, c, overwrite_c=1, bias=bias, activation=relu)
        assert out is c and "gemm_wgmma" in str(ran)
        exact = -0.5 * a.astype("f8") @ b.astype("f8") + bias
        exact = cp.maximum(exact, 0) if relu else exact
        size = 0.5 * abs(a).astype("f8") @ abs(b).astype("f8") + abs(bias)
        finite = cp.isfinite(exact)
        assert (cp.isfinite(c) == finite).all()
        assert (abs(c - exact) <= 2**-21 * size)[finite].all()


def test_complex_products(cp, by_pairs):
    """cgemm, by the same kernels: four real products in one."""
    for (m, n, k), ta, tb in product(((200, 130, 96), (65, 70, 520)), (0, 1, 2), (0, 1, 2)):
        real, imaginary = (operands(cp, "normal", m, n, k, seed) for seed in (1, 2))
        a, b = ((x + 1j * y).astype("c8") for x, y in zip(real, imaginary))
        size = abs(a).astype("f8") @ abs(b).astype("f8")
        for orders in product("CF", repeat=3):
            left = laid_out_as(cp, a, ta, orders[0])
            right = laid_out_as(cp, b, tb, orders[1])
            before = a[:, :1] * b[:1]
            c = cp.array(before, order=orders[2])
            with blasx.trace() as ran:
                out = blasx.cgemm(-0.5, left, right, 2.0, c, ta, tb, overwrite_c=1)
            assert out is c and "gemm_wgmma" in str(ran)
            exact = -0.5 * a.astype("c16") @ b.astype("c16") + 2 * before.astype("c16")
            assert (abs(c - exact) <= 2**-20 * (size + abs(before))).all()
    a[3, 4], b[5, 6] = cp.inf, cp.nan * 1j
    c = blasx.cgemm(1, a, b)
    assert not cp.isfinite(c[3]).any() and not cp.isfinite(c[:, 6]).any()
    c[3], c[:, 6] = 0, 0
    assert cp.isfinite(c).all()


def laid_out_as(cp, x, trans, order):
    """What op() makes x of."""
    return cp.array((x, x.T, x.conj().T)[trans], order=order)


def test_a_split_operand_serves_again(cp):
    from blasx import _gpu_gemm
    if not _gpu_gemm.by_pairs(1024, 2048, 512, False, 0):
        pytest.skip("no row for it")
    a, b = operands(cp, "normal", 1024, 2048, 512)
    pairs, = _gpu_gemm.split(b.T)
    c = cp.zeros((1024, 2048), "f4")
    for _ in range(3):
        _gpu_gemm.multiply_pairs(-1, *_gpu_gemm.split(a), pairs, 1, c)
    assert (abs(c + 3 * (a.astype("f8") @ b)) <= 3e-6 * (abs(a) @ abs(b))).all()
    out = blasx.sgemm(1, a, b)
    with blasx.trace() as ran:
        again = blasx.sgemm(1, a, b)
    assert "gemm_wgmma" in str(ran) and (out == again).all()


def test_a_graph_keeps_its_memory(cp):
    """What a graph replays may use no memory that has been given back."""
    a, b = operands(cp, "normal", 1024, 1024, 1024)
    c, stream = cp.empty((1024, 1024), "f4"), cp.cuda.Stream(non_blocking=True)
    with stream:
        blasx.sgemm(1, a, b, 0, c, overwrite_c=1)
        stream.synchronize()
        stream.begin_capture()
        blasx.sgemm(1, a, b, 0, c, overwrite_c=1)
        graph = stream.end_capture()
        taken = [cp.full(2**20, cp.nan) for _ in range(8)]
        graph.launch(stream)
        stream.synchronize()
    del taken
    assert errors(cp, c, a, b)[0] < 1e-6


# -- half precision and bfloat16

HALF_ROWS = [(letter, _tuned.capitals(_tuned.table(90)["gemm_half"][letter][place]))
             for letter, place in (("h", 0), ("h", -1), ("b", -1)) if TYPES[letter].is_known]


@pytest.fixture(params=HALF_ROWS, ids=lambda v: "{}-{GROUPS}x{BN}x{CLUSTER}".format(v[0], **v[1]))
def by_half(request, cp):
    """The letter; every product by gemm_half, whatever its size, with the tiles of each row."""
    with _tuned.using(request.param[0], gemm_half=request.param[1]):
        yield request.param[0]


def test_what_follows_a_product_of_half_precision(cp, by_half):
    """One kernel, rounded once, for every order of the operands and edges of the tiles."""
    from cupyx.scipy.special import ndtr
    dtype, gemm = TYPES[by_half].dtype, getattr(blasx, by_half + "gemm")
    eps = float(finfo(dtype).eps)
    for (m, n, k), orders in product(((264, 520, 200), (72, 1000, 1032)),
                                     ("CCC", "FCC", "CFC", "FFF")):
        a, b = (x.astype(dtype) for x in operands(cp, "normal", m, n, k))
        a /= 8
        before = cp.random.standard_normal((m, n)).astype(dtype)
        row, column = (cp.random.standard_normal(s).astype(dtype) for s in (n, (m, 1)))
        a64, b64 = a.astype("f8"), b.astype("f8")
        exact, size = a64 @ b64, abs(a64) @ abs(b64)
        follows = (row, "gelu", 0.0), (None, None, 0.0), (column, "relu", 2.0), (row, None, 1.0)
        for bias, activation, beta in follows if orders == "CCC" else follows[:1]:
            x = -0.5 * exact + (0 if bias is None else bias.astype("f8"))
            x = {None: x, "relu": cp.maximum(x, 0), "gelu": x * ndtr(x)}[activation]
            right = x + beta * before.astype("f8")
            c = cp.array(before if beta else cp.full_like(before, cp.nan), order=orders[2])
            with blasx.trace() as ran:
                out = gemm(-0.5, cp.asarray(a, order=orders[0]), cp.asarray(b, order=orders[1]),
                           beta, c, overwrite_c=1, bias=bias, activation=activation)
            assert out is c and "gemm_half" in str(ran)
            wrong = abs(c.astype("f8") - right)
            assert (wrong <= 0.51 * eps * abs(right) + 2**-20 * size + 1e-6).all(), (
                m, n, k, orders, activation)
        for activation, order in (("relu", "C"), ("gelu", "F"), ("gelu_tanh", "C")):
            z = cp.random.standard_normal((m, n)).astype(dtype)
            z[abs(z) < 1e-3] = 1  # relu bends at 0
            f = [blas3.ACTIVATIONS[activation](z.astype("f8") + h) for h in (1e-6, -1e-6)]
            right = (exact + row.astype("f8")) * (f[0] - f[1]) / 2e-6
            c = gemm(1, a, b, bias=row, activation=activation, slope_at=cp.array(z, order=order))
            wrong = abs(c.astype("f8") - right)
            assert (wrong <= 0.51 * eps * abs(right) + 2**-20 * size + 2e-5).all()


def test_views_of_half_precision(cp, by_half):
    """Lines that boxes cannot be copied from, C in the midst of something, and the same bits."""
    dtype, gemm = TYPES[by_half].dtype, getattr(blasx, by_half + "gemm")
    a, b = (x.astype(dtype) for x in operands(cp, "normal", 300, 260, 136))
    exact, size = (f(a.astype("f8")) @ f(b.astype("f8")) for f in (lambda x: x, abs))
    bound = 0.51 * float(finfo(dtype).eps) * abs(exact) + 2**-20 * size
    room = cp.full((305, 271), cp.nan, dtype)
    c = room[3:303, 5:265]
    assert gemm(1.0, a, b[:, :260], 0.0, c, overwrite_c=1) is c
    assert (abs(c.astype("f8") - exact) <= bound).all()
    assert int(cp.isnan(room.astype("f4")).sum()) == room.size - c.size
    odd = cp.full((300, 139), cp.nan, dtype)[:, 1:137]
    odd[...] = a
    assert (abs(gemm(1.0, odd, b).astype("f8") - exact) <= bound).all()
    first = gemm(1.0, a, b)
    assert all((gemm(1.0, a, b) == first).all() for _ in range(50))


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_operands_rounded_to_half_precision(cp, precision):
    """By the high parts of scaled lines, also far out of half precision's range; 11 bits of either
    operand count."""
    for values, (m, n, k) in product(ROWS, ((700, 900, 1100), (129, 300, 64))):
        with _tuned.using("s", gemm_wgmma=values | {precision: 1}):
            for kind, order in product(KINDS, "CF"):
                a, b = operands(cp, kind, m, n, k)
                left, right = (laid_out(cp, x, order) for x in (a, b))
                with blasx.trace() as ran:
                    c = blasx.sgemm(1, left, right, precision=precision)
                assert "gemm_wgmma" in str(ran)
                assert errors(cp, c, a, b)[0] <= 2.1 * 2**-11
            a[3, 5] = cp.inf
            c = blasx.sgemm(1, a, b, precision=precision)
            assert not cp.isfinite(c[3]).any() and cp.isfinite(cp.delete(c, 3, 0)).all()


# -- double precision by remainders

REMAINDERS = [dict(GROUPS=g, BN=b, STAGES=s, CLUSTER=c, WIDE=8)
              for g, b, s, c in ((2, 256, 4, 2), (1, 128, 6, 1), (2, 192, 4, 1))]


def in_double(kind, m, n, k, seed=0):
    """Operands of a kind on the CPU."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    if kind == "uniform":
        a, b = rng.random((m, k)), rng.random((k, n))
    elif kind == "spread":
        a, b = (x * np.exp(2 * rng.standard_normal(x.shape)) for x in (a, b))
    elif kind == "graded":
        a, b = a * 10.0 ** np.linspace(-150, 150, m)[:, None], b * 10.0 ** np.linspace(150, -150, n)
    elif kind == "cancelling":
        h = k // 2
        a[:, h:2 * h], b[h:2 * h] = a[:, :h], b[:h] * (2.0**-30 - 1)
    elif kind == "large meets zero":
        a[:, :k // 2] *= 2.0**60
        b[:k // 2] = 0
    elif kind == "integers":
        a, b = (rng.integers(-1000, 1000, x.shape).astype(float) for x in (a, b))
    return a, b


@pytest.mark.parametrize("kind", ("normal", "uniform", "spread", "graded", "cancelling",
                                  "large meets zero", "integers"))
def test_double_precision_by_remainders(cp, kind):
    """Within double precision's bound where it is sure, and no worse than cuBLAS on ordinary
    numbers, against 64 bits of mantissa; the same bits by all tiles; products of integers are
    right."""
    a, b = in_double(kind, 300, 520, 1000)
    with np.errstate(over="ignore"):
        exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
        size = abs(a).astype(np.longdouble) @ abs(b).astype(np.longdouble)
    found = []
    for order_a, order_b, order_c in ("CCC", "FCF", "CFC"):
        left, right = cp.array(a, order=order_a), cp.array(b, order=order_b)
        for values in REMAINDERS:
            with _tuned.using("d", gemm_crt=values), blasx.trace() as ran:
                c = cp.full((300, 520), cp.nan, order=order_c)
                found.append(blasx.dgemm(1, left, right, 0, c, overwrite_c=1, variant="crt"))
            assert "gemm_crt" in str(ran)
    assert all((c == found[0]).all() for c in found)
    wrong = abs(found[0].get() - exact)
    assert (wrong <= 1003 * 2.0**-53 * size).all()
    if kind in ("normal", "uniform", "graded", "cancelling"):
        theirs = abs(cp.matmul(left, right).get() - exact)
        assert (wrong / size).max() <= (theirs / size).max()
    if kind == "integers":
        assert not wrong.any()


def test_remainders_with_everything(cp):
    """Transposes, alpha and beta, views, inf and nan, an operand that serves again, many runs."""
    from blasx import _gpu_crt
    with _tuned.using("d", gemm_crt=REMAINDERS[0]):
        for (m, n, k), ta, tb in product(((130, 67, 200), (257, 300, 65)), (0, 1), (0, 2)):
            a, b = in_double("normal", m, n, k)
            for order in "CF":
                left = cp.array(a.T if ta else a, order=order)
                right = cp.array(b.T if tb else b)[:, ::-1][:, ::-1]
                before = cp.array(a[:, :1] * b[:1], order=order)
                c = before.copy(order="K")
                out = blasx.dgemm(-0.5, left, right, 2.0, c, ta, tb, 1, variant="crt")
                size = abs(a) @ abs(b) + 2 * abs(before.get())
                assert out is c
                assert (abs(c.get() - (2 * before.get() - 0.5 * a @ b)) <= 1e-14 * size).all()
        a, b = in_double("normal", 300, 280, 500)
        a[5, 7], a[9, 3], b[4, 8], a[20] = np.inf, np.nan, -np.inf, 0
        with np.errstate(invalid="ignore"):
            right = a @ b
        c = blasx.dgemm(1, cp.asarray(a), cp.asarray(b), variant="crt").get()
        assert np.array_equal(np.isnan(c), np.isnan(right))
        assert np.array_equal(c[np.isinf(right)], right[np.isinf(right)])
        a, b = (cp.asarray(x) for x in in_double("spread", 700, 900, 1100))
        first = blasx.dgemm(1, a, b, variant="crt")
        assert all((blasx.dgemm(1, a, b, variant="crt") == first).all() for _ in range(100))
        again, = _gpu_crt.split(b.T)
        c = cp.zeros((700, 900))
        for _ in range(3):
            _gpu_crt.multiply_remainders(-1, *_gpu_crt.split(a), again, 1, c)
        assert (abs(c + 3 * (a @ b)) <= 1e-14 * (abs(a) @ abs(b)) * 30).all()


def test_remainders_where_they_pay(cp):
    """By default, but not in a pool that has no room for them: C is untouched until there is."""
    random = cp.random.RandomState(3)
    a, b = (random.standard_normal((4096, 4096)) for _ in "ab")
    exact, size = a @ b, abs(a) @ abs(b)
    c, pool = cp.empty((4096, 4096)), cp.get_default_memory_pool()
    gc.collect()  # what other tests left in circles is not used any more
    for limit, by_remainders in ((0, True), (pool.used_bytes() + 2**28, False)):
        pool.free_all_blocks()
        pool.set_limit(size=limit)
        try:
            with blasx.trace() as ran:
                blasx.dgemm(1, a, b, 0, c, overwrite_c=1)
        finally:
            pool.set_limit(size=0)
        assert ("gemm_crt" in str(ran)) == by_remainders
        assert (abs(c - exact) <= 4096 * 2.0**-53 * size).all()
        c.fill(cp.nan)


@pytest.mark.parametrize("kind", ("normal", "graded", "spread", "large meets zero"))
def test_complex_products_by_remainders(cp, kind):
    """Each part within the bound, by all tiles and with 14 moduli the same bits as far as they are
    meant to be; transposes, complex alpha and beta."""
    (ar, br), (ai, bi) = (in_double(kind, 200, 130, 400, seed) for seed in (0, 1))
    a, b = ar + 1j * ai, br + 1j * bi
    with np.errstate(over="ignore"):
        wide = [x.astype(np.clongdouble) for x in (a, b)]
        exact, size = wide[0] @ wide[1], abs(wide[0]) @ abs(wide[1])
    for fewer, (ta, tb) in product((0, 1), ((0, 0), (2, 1), (1, 2))):
        left, right = ((x, x.T, x.T.conj())[t] for x, t in ((a, ta), (b, tb)))
        left, right, found = cp.array(left, order="F"), cp.array(right), []
        split = _tuned.capitals(_tuned.table(90)["crt_split"]["z"][0]) | {"fewer": fewer}
        for values, order in zip(REMAINDERS, "CFC"):
            with _tuned.using("z", gemm_crt=values, crt_split=split), blasx.trace() as ran:
                c = cp.full((200, 130), cp.nan, complex, order=order)
                found.append(blasx.zgemm(1, left, right, 0, c, ta, tb, 1, variant="crt"))
            assert "gemm_crt" in str(ran)
        # What is computed again is C^T = B^T A^T where C lies by columns: its sums begin elsewhere
        again = kind in ("spread", "large meets zero")
        assert all((c == found[0]).all() for c in (found[::2] if again else found))
        wrong = found[0].get() - exact
        for part in (wrong.real, wrong.imag):
            assert (abs(part) <= 405 * 2.0**-53 * size).all()
    if kind == "normal":
        with _tuned.using("z", gemm_crt=REMAINDERS[0]):
            c = blasx.zgemm(2 - 1j, cp.array(a), cp.array(b), 1j, found[0], variant="crt").get()
        assert (abs(c - ((2 - 1j) * a @ b + 1j * found[0].get())) <= 1e-14 * size).all()


@pytest.mark.parametrize(("letter", "name"), [
    ("s", "syrk"), ("d", "syrk"), ("z", "syrk"), ("z", "herk"), ("s", "syr2k"), ("d", "syr2k"),
    ("z", "her2k"), ("c", "syrk"), ("c", "herk"), ("c", "syr2k"), ("c", "her2k")])
def test_one_triangle_on_the_tensor_cores(cp, letter, name):
    """syrk to her2k of odd orders, both triangles, transposes and orders; the other triangle stays
    as it was."""
    of, n, k, hermitian = TYPES[letter].dtype, 777, 300, name[:2] == "he"
    random = np.random.default_rng(2)
    terms = [random.standard_normal((n, k)) for _ in range(2 if "2" in name else 1)]
    if letter in "cz":
        terms = [a + 1j * random.standard_normal((n, k)) for a in terms]
    terms = [a.astype(of) for a in terms]
    before = (terms[0] @ terms[0].T)[:, ::-1].astype(of)
    left, right = (x.astype("c16" if letter in "cz" else float) for x in (terms[0], terms[-1]))
    exact, size = left @ (right.conj().T if hermitian else right.T), abs(left) @ abs(right).T
    if "2" in name:
        exact, size = exact + (exact.conj().T if hermitian else exact.T), size + size.T
    if letter in "sc":
        kernel, using = "gemm_wgmma", _tuned.using("s", gemm_wgmma=ROWS[-1] | {"triangles": 2})
    else:
        kernel, using = "gemm_crt", _tuned.using(
            letter, gemm_crt=REMAINDERS[0] | {"triangles": 2})
    wide = {"s": 1e-6, "c": 2e-6}.get(letter, 1e-14) * (size + abs(before))
    with using:
        for lower, trans, order in product((0, 1), (0, 1), "CF"):
            flag = trans * (2 if hermitian else 1)
            x = [cp.array((a.conj().T if hermitian else a.T) if trans else a, order=order)
                 for a in terms]
            c = cp.array(before, order=order)
            with blasx.trace() as ran:
                assert getattr(blasx, letter + name)(2, *x, -1, c, flag, lower, 1) is c
            assert kernel in str(ran)
            wanted = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
            old = before.copy()
            if hermitian:
                old[np.arange(n), np.arange(n)] = old.diagonal().real
            wrong = abs(c.get() - (2 * exact - old))
            assert (wrong <= wide)[wanted].all() and (c.get() == before)[~wanted].all()


@pytest.mark.parametrize(("letter", "name"), [
    (letter, name) for letter in "sdcz"
    for name in ("trsm", "trmm", "symm", "hemm") if letter in "cz" or name != "hemm"])
def test_triangles_by_halves(cp, letter, name):
    """Of odd orders, all sides and triangles, as cuBLAS takes them whole."""
    n, k, eps = 777, 333, float(finfo(TYPES[letter].dtype).eps)
    random = cp.random.RandomState(3)

    def normal(*shape):
        x = random.standard_normal(shape)
        x = x + 1j * random.standard_normal(shape) if letter in "cz" else x
        return cp.asfortranarray(x.astype(TYPES[letter].dtype))

    f = getattr(blasx, letter + name)
    for side, lower, trans in product((0, 1), (0, 1), (0, 1, 2)):
        if name in ("trsm", "trmm"):
            t, b = normal(n, n) / n + cp.eye(n), normal(k, n) if side else normal(n, k)
            call = (0.5, t.astype(b.dtype), b, side, lower, trans)
        elif trans:
            continue
        else:
            call = (0.5, normal(n, n), normal(k, n) if side else normal(n, k), 0, None, side, lower)
        found = []
        for row in (None, {"LEAF": 128}):
            with _tuned.using(letter, level3_halves=row, gemm_crt=None):
                found.append(f(*call))
        wrong = cp.linalg.norm(found[0] - found[1]) / cp.linalg.norm(found[0])
        assert float(wrong) <= 30 * n**0.5 * eps, (side, lower, trans)


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("lower", (0, 1))
def test_cholesky_by_panels_and_products(cp, letter, lower):
    """Several panels, the last one in part; not definite, nan and inf where it is found late; the
    other triangle is untouched; the same bits."""
    n, eps = 1500, float(finfo(TYPES[letter].dtype).eps)
    panel = _tuned.capitals(_tuned.table(90)["potrf_panel"][letter][-1])
    panel["width"] = {"s": 640, "d": 256}[letter]  # as far as there are products of such panels
    potrf = getattr(blasx, letter + "potrf")
    random = cp.random.RandomState(4)
    x = random.standard_normal((n, n))
    full = (x @ x.T / n + cp.eye(n)).astype(TYPES[letter].dtype)
    half = cp.tri(n, dtype=bool) if lower else cp.tri(n, dtype=bool).T

    def factored(change=None):
        c = cp.full((n + 1, n), cp.nan, full.dtype, order="F")[:n]
        c[half] = full[half]
        if change:
            i, j, value = change
            c[(i, j) if lower else (j, i)] = value
        with blasx.trace() as ran:
            _, info = potrf(c, lower, clean=0, overwrite_a=1)
        assert ("gemm_crt" if letter == "d" else "gemm_wgmma") in str(ran)
        assert cp.isnan(c[~half]).all()
        return cp.where(half, c, 0), int(info)

    with _tuned.using(letter, potrf_panel=panel):
        L, info = factored()
        assert info == 0 and all((factored()[0] == L).all() for _ in range(5))
        L = (L if lower else L.T).astype(float)
        assert abs(L @ L.T - full).max() <= 3 * n**0.5 * eps * abs(full).max()
        for i, j, value in ((1400, 1400, -1), (1400, 1400, np.nan), (600, 600, 0), (1499, 3, 1e9),
                            (1400, 3, np.nan), (1400, 700, np.inf), (0, 0, -1)):
            assert factored((i, j, value))[1] == i + 1
    with _tuned.using(letter, potrf_panel=panel | {"rest": 900}):
        L, info = potrf(full, lower)
        assert info == 0 and not L[~half].any()
        L = (L if lower else L.T).astype(float)
        assert abs(L @ L.T - full).max() <= 3 * n**0.5 * eps * abs(full).max()
