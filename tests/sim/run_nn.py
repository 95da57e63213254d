"""The fused kernels of blasx.nn through its layers, on the simulated GPU (gpu.py): for a process
that has the sanitizers.     python -m tests.sim.run_nn FOLDER LETTER PART

Every case runs once under each schedule, which must agree to the bit, and is judged by the same
layer on NumPy's arrays in double precision.
"""

import sys
from contextlib import ExitStack, nullcontext
from copy import deepcopy
from types import SimpleNamespace
from unittest import mock

import numpy as np
from scipy.special import ndtr

from blasx import _tuned
from blasx._types import TYPES, finfo

from . import gpu
from .run import SCHEDULES

# two rows to a block; four blocks to a row; chunks of 512 bytes by one warp, two, and those of two
# blocks
FEW = {"TEAM": 64, "PACKS": 1, "WARPS": 4, "RESIDENT": 0, "BLOCKS": 1}
SHARED = {"TEAM": 64, "PACKS": 1, "WARPS": 2, "RESIDENT": 1, "BLOCKS": 1, "CLUSTER": 4}
CHUNKS = [{"WARPS": w, "PACKS": 1, "SLOTS": s, "BLOCKS": 1, "CLUSTER": c}
          for w, s, c in ((1, 6, 1), (2, 4, 1), (2, 2, 2))]


def arrays(xp, rng, dtype, *shapes):
    return [xp.asarray(rng.standard_normal(shape).astype(dtype)) for shape in shapes]


def close(found, wanted, what):
    bound = (40 if found.dtype.itemsize > 2 else 4) * float(finfo(found.dtype).eps)
    error = np.abs(found - wanted).max() / max(np.abs(wanted).max(), 0.1)
    assert error <= bound and found.shape == wanted.shape, (what, error)


def matmul(alpha, a, b, beta=0, c=None, overwrite_c=0, bias=None):
    """gemm, by columns."""
    ab = (b.T @ a.T).T
    if bias is not None:
        ab += bias
    if c is None:
        return ab
    if beta:
        ab += c
    c[...] = ab
    return c


def same(runs):
    for other in runs[1:]:
        for x, y in zip(runs[0], other, strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), "depends on the schedule"
    return runs[0]


def layer(xp, rng, dtype, make, *shape):
    """y, dx and the gradients of a layer, judged."""
    x, dy = arrays(xp, rng, dtype, shape, shape)
    one = make().to(dtype=np.dtype(dtype))
    for p in one.parameters().values():
        p.value = rng.standard_normal(p.value.shape).astype(dtype)
    right, runs = deepcopy(one).to(dtype=np.dtype("f8")), []
    for _ in SCHEDULES:
        there = deepcopy(one)
        for p in there.parameters().values():
            p.value = xp.asarray(p.value)
        y = there.forward(x)
        runs.append([y, there.backward(dy), *(p.grad for p in there.parameters().values())])
    found = same(runs)
    wanted = [right.forward(x.get().astype("f8")), right.backward(dy.get().astype("f8")),
              *(p.grad for p in right.parameters().values())]
    for i, pair in enumerate(zip(found, wanted, strict=True)):
        close(*pair, (one, shape, i))


def rows(xp, rng, dtype):
    """Of single precision two warps to a row, rows that are read again, strips of sums; of others
    lanes of a warp, as tuned, and whole packs; and rows that go through shared memory in chunks."""
    from blasx import nn
    from blasx.nn._arrays import REALS
    shapes, letter = ((5, 16),), REALS[np.dtype(dtype)].letter
    chunks = "softmax_chunks softmax_chunks_backward cross_entropy_chunks".split()
    with ExitStack() as stack:
        stack.enter_context(_tuned.using(letter, **dict.fromkeys(chunks)))
        if dtype == "f4":
            shapes = (9, 200), (70, 129), (3, 1)
            stack.enter_context(_tuned.using(
                "s", column_sums={"WARPS": 1}, norm_rows=FEW, softmax_rows=FEW,
                cross_entropy_rows=FEW, softmax_rows_backward=FEW | {"CLUSTER": 1},
                norm_rows_backward=FEW | {"PACKS": 2, "RESIDENT": 1}))
        for shape in shapes:
            for kind in (nn.LayerNorm, nn.RMSNorm):
                layer(xp, rng, dtype, lambda: kind(shape[-1]), *shape)
            past_a_norm(xp, rng, dtype, *shape)
            scores(xp, rng, dtype, 3 * shape[-1])
    with _tuned.using(letter, softmax_rows_backward=SHARED, softmax_chunks_backward=None):
        for shape in shapes:
            for kind in (nn.Softmax, nn.LogSoftmax):
                layer(xp, rng, dtype, kind, 3, 1, 3 * shape[-1])
    for n, values in zip((615, 384, 13), CHUNKS, strict=True):
        with _tuned.using(letter, **dict.fromkeys(chunks, values)):
            scores(xp, rng, dtype, n)


def scores(xp, rng, dtype, n):
    from blasx import nn
    for kind in (nn.Softmax, nn.LogSoftmax):
        layer(xp, rng, dtype, kind, 3, 2, n)
    cross_entropy(xp, rng, dtype, 3, n)
    far_below(xp, rng, dtype, n)
    nothing_to_choose(xp, dtype)


def past_a_norm(xp, rng, dtype, *shape):
    """What goes past a norm in a residual is added to its gradient."""
    from blasx import nn
    x, dy, plus = arrays(xp, rng, dtype, shape, shape, shape)
    there, here = (nn.LayerNorm(shape[-1]).to(dtype=np.dtype(t)) for t in (dtype, "f8"))
    there.to(xp).forward(x)
    here.forward(x.get().astype("f8"))
    close(there.backward(dy, plus), here.backward(dy.get().astype("f8"), plus.get().astype("f8")),
          here)


def far_below(xp, rng, dtype, n):
    """Every number is as accurate as its type, however far below the top of its row."""
    from blasx import nn
    x, labels = (0.3 - 80 * rng.random((3, n))).astype(dtype), rng.integers(0, n, 3)
    p = np.exp(x.astype("f8") - x.astype("f8").max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss, others = nn.CrossEntropy(), np.arange(n) != labels[:, None]
    loss.scale = 3  # times a third, of three rows
    loss.forward(xp.asarray(x), xp.asarray(labels))
    bound = float(finfo(x.dtype).eps) * (80 if x.dtype.itemsize > 2 else 1)
    for y in nn.Softmax().forward(xp.asarray(x)), loss.backward():
        error = np.abs(y.get().astype("f8") / p - 1)[others]
        assert error.max() <= bound, (dtype, n, error.max() / bound)


def nothing_to_choose(xp, dtype):
    from blasx import nn
    x = xp.ndarray((2, 5), np.dtype(dtype))
    x[...] = -np.inf
    x[1, 2], x[1, 3] = 0, np.nan
    y = nn.Softmax().forward(x)
    assert not y[0].any() and np.isnan(y[1]).all()


def cross_entropy(xp, rng, dtype, m, n):
    from blasx import nn
    (y,) = arrays(xp, rng, dtype, (m, 2, n))
    labels = rng.integers(0, n, (m, 2))
    labels[0, 0] = -100
    for smoothing in (0.0, 0.1):
        runs, loss = [], nn.CrossEntropy(smoothing, ignore=-100)
        for _ in SCHEDULES:
            runs.append([loss.forward(y, xp.asarray(labels)), loss.backward()])
        value, dy = same(runs)
        assert value.dtype == ("f8" if dtype == "f8" else "f4")
        wide = y.get().astype("f8")
        close(value.reshape(1), loss.forward(wide, labels).reshape(1), loss)
        close(dy, loss.backward(), loss)
    holed = y.copy()
    holed[0, 0] = np.nan  # where nothing counts
    assert np.isfinite(float(loss.forward(holed, xp.asarray(labels))))
    assert not loss.backward()[0, 0].astype("f4").any()
    loss = nn.CrossEntropy()
    labels[0, 0] = 0
    value = loss.forward(y, xp.asarray(labels.astype("i4")))
    close(value.reshape(1), loss.forward(wide, labels).reshape(1), loss)
    labels[0, 0] = n  # nobody waits for it: the loss says so
    assert np.isnan(float(loss.forward(y, xp.asarray(labels))))


def gelu_of_all(xp):
    """gelu of every number of half precision, and of what is none, to 0.6 units in the last place;
    its slope, which is 0 between them, to one."""
    from blasx import nn
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    layer, dy = nn.GELU(), np.ones_like(x)
    y = layer.forward(xp.asarray(x)).get().astype("f8")
    dx = layer.backward(xp.asarray(dy)).get().astype("f8")
    assert np.array_equal(np.isnan(y), np.isnan(x)) and np.array_equal(np.isnan(dx), np.isnan(x))
    assert y[x == np.inf] == dx[x == np.inf] * np.inf == np.inf
    assert y[x == -np.inf] == dx[x == -np.inf] == 0
    finite = np.isfinite(x)
    x, y, dx = x[finite].astype("f8"), y[finite], dx[finite]
    p, density = ndtr(x), np.exp(-x**2 / 2) / (2 * np.pi) ** 0.5
    for found, right, units in ((y, x * p, 0.6), (dx, p + x * density, 1)):
        unit = np.spacing(np.abs(right).astype(np.float16)).astype("f8")
        assert (np.abs(found - right) <= units * unit).all(), units


def elements(xp, rng, dtype):
    from blasx import nn
    kinds = (nn.ReLU, nn.Tanh, nn.Sigmoid, lambda: nn.ELU(1.5), nn.GELU, lambda: nn.GELU(True),
             nn.Softplus, lambda: nn.Swish(1.25))
    for kind in kinds:
        layer(xp, rng, dtype, kind, 3, 11)
        x, dy = arrays(xp, rng, dtype, (4, 6), (6, 4))
        there, here = kind(), kind()
        close(there.forward(x.T), here.forward(x.get().T.astype("f8")), here)
        close(there.backward(dy), here.backward(dy.get().astype("f8")), here)
    if dtype == np.float16:
        gelu_of_all(xp)
    for n, width, *shape in ((3, 5, 4, 7), (2, 600, 1300), (9, 40, 1, 1)):
        there, here = (nn.Embedding(n, width, dtype=dtype, rng=0) for _ in range(2))
        there.weight.value = xp.asarray(there.weight.value)
        (dy,) = arrays(xp, rng, dtype, (*shape, width))
        x = rng.integers(0, n, shape)
        x.flat[0] = n - 1
        there.forward(xp.asarray(x))
        here.to(dtype=np.dtype("f8")).forward(x)
        there.backward(dy), here.backward(dy.get().astype("f8"))
        close(there.weight.grad, here.weight.grad, here)
    x, dy = arrays(xp, rng, dtype, (7, 601), (7, 601))
    there, here = nn.Dropout(0.4, 3), nn.Dropout(0.4, 3)
    assert there.forward(x).tobytes() == here.forward(x.get()).tobytes()
    assert there.backward(dy).tobytes() == here.backward(dy.get()).tobytes()
    for kind in (nn.Adam, lambda m: nn.Adam(m, decay=0.1), nn.AdamW):
        there, here = (nn.Dense(5, 7, dtype=dtype, rng=0) for _ in range(2))
        for p in there.parameters().values():
            p.value = xp.asarray(p.value)
        steps = kind(there), kind(here)
        for _ in range(3):
            for path, p in here.parameters().items():
                p.grad = rng.standard_normal(p.value.shape).astype(dtype)
                there.parameters()[path].grad = xp.asarray(p.grad.T).T
            for one in steps:
                one.step()
        for path, p in here.parameters().items():  # the same roundings
            assert p.value.tobytes() == there.parameters()[path].value.tobytes()


def convolution(xp, rng, dtype):
    """Whole tiles and parts, splits of k, remainders that meet no element, images of one row."""
    from blasx import nn
    from blasx.nn import _gpu
    with mock.patch.object(_gpu, "in_pairs", lambda w, x, stride: (w, x)):
        convolutions(nn, xp, rng, dtype)


def convolution_by_pairs(xp, rng, dtype):
    """The same of single precision as pairs of half precision."""
    from blasx import nn
    from blasx.nn import _gpu
    pairs = {"BM": 32, "BN": 64, "TM": 16, "TN": 32, "WARPS": 4, "BK": 32, "STAGES": 2, "BLOCKS": 1}
    with _tuned.using("s", convolve=pairs, convolve_weights=pairs), mock.patch.object(
            _gpu, "in_pairs", lambda w, x, stride: (w, _gpu._words(x))):
        convolutions(nn, xp, rng, dtype)


def convolution_boxes(xp, rng, dtype):
    """The same by convolve_wgmma, groups beside each other and one under the other: tiles, boxes
    and splits that are not full, several to a block, boxes that begin before the image."""
    from blasx import nn
    from blasx.nn import _gpu
    few = {"ROWS": 1, "BN": 64, "STAGES": 2}
    for of, weights, case in zip((few | {"BN": 104}, few | {"ROWS": 2}, few),
                                 (few | {"BN": 128}, few, few | {"ROWS": 2}), BOXED):
        with _tuned.using("s", convolve_wgmma=of, convolve_wgmma_weights=weights), \
                mock.patch.object(_gpu, "multiprocessors", lambda device: 2), \
                mock.patch.object(_gpu, "_convolution", None):  # what launches the others
            convolutions(nn, xp, rng, dtype, [case])
            one, *shape = case
            x, = arrays(np, rng, dtype, shape)
            x[1, 3, 4] = np.inf
            found = [one(nn).to(a).forward(a.asarray(x)) for a in (xp, np)]
            assert np.array_equal(*(np.isfinite(np.asarray(y)) for y in found))


CONVOLVED = (
    (lambda nn: nn.Conv2d(3, 20, 3, padding=1), 2, 3, 9, 11),
    (lambda nn: nn.Conv2d(4, 6, (2, 3), 2, "same", groups=2), 2, 4, 7, 6),
    (lambda nn: nn.Conv2d(5, 3, 1, 3, layout="NHWC", bias=False), 3, 7, 8, 5),
    (lambda nn: nn.Conv2d(3, 3, (3, 2), 1, (2, 0), (1, 3), groups=3), 1, 3, 5, 9),
    (lambda nn: nn.Conv2d(2, 3, 2, 3, 2, 2), 1, 2, 8, 10),
    (lambda nn: nn.Conv1d(2, 5, 4, 2, 3), 2, 2, 13),
    (lambda nn: nn.Conv2d(1, 40, 5), 1, 1, 20, 30))
BOXED = (
    (lambda nn: nn.Conv2d(40, 66, (2, 3), padding="same"), 5, 40, 7, 6),
    (lambda nn: nn.Conv2d(5, 130, 2, 1, (2, 1), (1, 2), layout="NHWC", bias=False), 2, 5, 8, 5),
    (lambda nn: nn.Conv1d(66, 9, 3, 1, 3), 3, 66, 13))


def convolutions(nn, xp, rng, dtype, cases=CONVOLVED):
    for make, *shape in cases:
        one = make(nn).to(dtype=np.dtype(dtype))
        right, runs = deepcopy(one).to(dtype=np.dtype("f8")), []
        (x,) = arrays(xp, rng, dtype, shape)
        y = right.forward(x.get().astype("f8"))
        (dy,) = arrays(xp, rng, dtype, y.shape)
        wanted = [y, right.backward(dy.get().astype("f8")),
                  *(p.grad for p in right.parameters().values())]
        for _ in SCHEDULES:
            there = deepcopy(one)
            for p in there.parameters().values():
                p.value = xp.asarray(p.value)
            y = there.forward(x)
            runs.append([y, there.backward(dy), *(p.grad for p in there.parameters().values())])
        for i, pair in enumerate(zip(same(runs), wanted, strict=True)):
            close(*pair, (one, shape, i))


def recurrence(xp, rng, dtype):
    """Three blocks to the units, which wait for each other; two launches for the rows."""
    from blasx import _tuned, nn
    few = {"UNITS": 4, "ROWS": 8, "WARPS": 2, "DEEP": 1, "EIGHTS": 1}
    back = {"UNITS": 8, "ROWS": 16, "WARPS": 2, "DEEP": 2, "CHUNK": 1}
    for width, units, cluster in (
            (12, 4, None), (20, 8, {"UNITS": 16, "WARPS": 1, "CLUSTER": 2, "STAGES": 3})):
        with _tuned.using("s", recurrent_steps=few | {"UNITS": units}, recurrent_unsteps=back,
                          recurrent_unsteps_cluster=cluster):
            for kind in (nn.LSTM, nn.GRU, nn.RNN):
                for options in ({}, {"bidirectional": True, "truncate": 3} | (
                        {"clip": 0.2} if kind is nn.LSTM else {})):
                    one_recurrence(xp, rng, dtype, kind, width, options)


def one_recurrence(xp, rng, dtype, kind, width, options):
    """Twice, the second time from where the first ended, a GRU from further away; then a nan, which
    goes on, and nobody waits for it."""
    here = kind(5, width, rng=1, **options)
    there = deepcopy(here)
    for p in there.parameters().values():
        p.value = xp.asarray(p.value)
    right, state = here.to(dtype=np.dtype("f8")), None
    x, dy = arrays(xp, rng, dtype, (11, 4, 5), (11, 4, width * here.directions))
    wide = [a.get().astype("f8") for a in (x, dy)]
    for _ in range(2):
        if state and kind.__name__ == "GRU":
            state = [tuple(100 * a for a in s) for s in state]
        given = state and [tuple(xp.asarray(a.astype("f4")) for a in s) for s in state]
        runs = [[there.forward(x, given), *there.last[0], there.last[-1][-1]]
                for _ in SCHEDULES]
        wanted = right.forward(wide[0], state)
        for pair in zip(same(runs), (wanted, *right.last[0], right.last[-1][-1])):
            close(*pair, options)
        assert there.cells[0]._kept[1][1] is None, "not by one kernel"
        close(there.backward(dy), right.backward(wide[1]), options)
        for cell, of in zip(there.cells, right.cells):
            for pair in zip(cell.dstate, of.dstate):
                close(*pair, options)
        for path, p in right.parameters().items():
            close(there.parameters()[path].grad, p.grad, path)
            p.grad = there.parameters()[path].grad = None
        state = right.last
    x[0, 0, 0] = np.nan
    y = there.forward(x)
    assert np.isnan(y[0, :, :width]).all() and np.isfinite(y[1:]).all()
    y, wanted = there.forward(x[1:, :1]), right.forward(wide[0][1:, :1])  # one step
    close(y, wanted, options)
    close(there.backward(y), right.backward(wanted), options)
    for path, p in right.parameters().items():
        close(there.parameters()[path].grad, p.grad, path)


class Recorded:
    """A stream for a graph: what it captures runs at once, and not again when it is launched."""

    ptr, is_capturing = 0, lambda self: False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def synchronize(self):
        pass

    def begin_capture(self):
        pass

    def end_capture(self):
        return SimpleNamespace(launch=lambda: None)


def graphs(xp, rng, dtype):
    """What a graph keeps, adds up and refuses: its first call for a shape."""
    from blasx import nn
    xp.cuda.Stream = lambda **_: Recorded()
    xp.cuda.MemoryPool = lambda: SimpleNamespace(malloc=None)
    xp.cuda.using_allocator = lambda malloc: nullcontext()

    def made(*layers):
        model = nn.Sequential(nn.Dense(8, 4, rng=0), *layers)
        for _, p in model.walk():
            if isinstance(p, nn.Parameter):
                p.value = xp.asarray(p.value)
        return model

    plain, graphed = (made(nn.LayerNorm(4), nn.BatchNorm(4)) for _ in "12")
    loss = nn.MeanSquare()
    graph = nn.Graph(graphed, loss)
    for rows in (6, 3):  # their gradients are added
        x, y = arrays(xp, rng, dtype, (rows, 8), (rows, 4))
        value = loss.forward(plain.forward(x), y)
        plain.backward(loss.backward(), dx=False)
        assert graph(x, y) == value
    for (path, p), q in zip(plain.walk(), dict(graphed.walk()).values()):
        if isinstance(p, nn.Parameter):
            assert np.array_equal(p.value, q.value), path
            assert p.grad is None or np.array_equal(p.grad, q.grad), path
    kept = {q: q.grad for q in graphed.parameters().values()}
    assert len(graph._graphs) == 2 and all(g is not None for g in kept.values())
    weight = graphed.layers[0].weight
    before, found = weight.value, graph._graphs.copy()
    weight.value = before.copy()
    graph(x, y)
    assert [made is found[key] for key, made in graph._graphs.items()] == [True, False]
    dropping = made(nn.Dropout(0.5))
    for _ in range(2):
        try:
            nn.Graph(dropping, loss)(x, y)
        except ValueError as error:
            assert "layer 1 Dropout(0.5) changes drawn on the host" in str(error)
        else:
            raise AssertionError("a mask was drawn by the host")
        assert int(dropping.layers[1].drawn.value) == 0 and dropping.layers[0].weight.grad is None


def attention(xp, rng, dtype):
    """Several tiles on both sides, their last ones not full; self and cross, masks of each kind,
    heads one after the other and beside each other."""
    from blasx import _tuned
    from blasx.nn._arrays import REALS
    of = {"WARPS": 2, "TILES": 1, "STAGES": 2, "BLOCKS": 1, "WIDTH": 32}
    letter = REALS[np.dtype(dtype)].letter
    with _tuned.using(letter, attention_forward=of | {"KEYS": 32},
                      attention_queries=of | {"LINES": 32},
                      attention_keys=of | {"LINES": 16, "STAGES": 3},
                      attention_pairs={"WARPS": 4, "WIDTH": 32}):
        for lead, m, n, d, causal, mask in (((1, 2), 37, 70, 16, True, None),
                                            ((2, 1), 40, 33, 24, False, "keys"),
                                            ((2,), 21, 40, 32, True, "all")):
            one_attention(xp, rng, TYPES[letter], lead, m, n, d, causal, mask)
        nothing_to_look_at(xp, rng, dtype)
        if letter == "s":
            several_heads(xp, rng)


def several_heads(xp, rng):
    """Queries, keys and values beside each other in what one product makes, and their gradients;
    in cross-attention keys and values."""
    from blasx import nn
    for z in (None, rng.standard_normal((2, 33, 48)).astype("f4")):
        here = nn.MultiHeadAttention(48, 3, causal=z is None, rng=2)
        x, dy = (rng.standard_normal((2, 21, 48)).astype("f4") for _ in range(2))
        runs = []
        for _ in SCHEDULES:
            there = deepcopy(here)
            for p in there.parameters().values():
                p.value = xp.asarray(p.value)
            y = there.forward(xp.asarray(x), None if z is None else xp.asarray(z))
            assert len(there.attention._kept[1]) == 1, "not by the one kernel"
            dx = there.backward(xp.asarray(dy))
            runs.append([y, *(dx if isinstance(dx, tuple) else (dx,)),
                         *(p.grad for p in there.parameters().values())])
        right = here.to(dtype=np.dtype("f8"))
        wanted = [right.forward(*(None if a is None else a.astype("f8") for a in (x, z)))]
        dx = right.backward(dy.astype("f8"))
        wanted += [*(dx if isinstance(dx, tuple) else (dx,)),
                   *(p.grad for p in right.parameters().values())]
        for i, pair in enumerate(zip(same(runs), wanted, strict=True)):
            close(*pair, (here, z is None, i))


def attention_boxes(xp, rng, dtype):
    """The same by attention_wgmma, in small tiles; blocks in which a group may have nothing
    to do; several rounds of blocks that take pairs of pieces and pieces by themselves."""
    from blasx import _tuned
    from blasx.nn import _gpu
    from blasx.nn._arrays import REALS
    letter = REALS[np.dtype(dtype)].letter
    tile = {"GROUPS": 2, "LINES": 64, "STAGES": 2, "BLOCKS": 1}
    for width, forward, ahead, groups, places, cases in (
            (64, 2, 1, 2, 4, (((1, 2), 70, 199, 64, True, None),
                              ((2, 1), 150, 65, 24, False, "all"))),
            (64, 2, 0, 3, 2, (((2,), 130, 70, 40, True, "keys"),)),
            (128, 2, 1, 2, 1, (((1,), 130, 70, 104, True, None),)),
            (64, 1, 0, 3, 1, (((3, 1), 130, 134, 24, True, None),)),
            (64, 1, 1, 1, 3, (((2, 3), 180, 180, 8, True, None),
                              ((5,), 70, 20, 16, False, None)))):
        of = tile | {"WIDTH": width}
        with _tuned.using(letter, attention_wgmma=of | {"GROUPS": forward, "AHEAD": ahead},
                          attention_wgmma_keys=of | {"GROUPS": min(groups, 2)},
                          attention_wgmma_queries=of | {"GROUPS": groups}), \
                mock.patch.object(_gpu, "multiprocessors", lambda device, of=places: of):
            for case in cases:
                one_attention(xp, rng, TYPES[letter], *case)
            if groups == 2:
                nothing_to_look_at(xp, rng, dtype)


def one_attention(xp, rng, me, lead, m, n, d, causal, mask):
    from blasx import nn
    q, k, v, dy = (rng.standard_normal((*lead, rows, d)) for rows in (m, n, n, m))
    dy[..., m // 2:, :] *= 1e-5
    if me.letter == "s":
        q, k, v = q * 1e9, k * 2e-9, v * 7e14
    q, k, v, dy = (np.asarray(x, me.dtype) for x in (q, k, v, dy))
    if mask == "keys":
        mask = np.arange(n) < rng.integers(n // 2, n, (*lead[:1], *(1,) * (len(lead) + 1)))
    elif mask == "all":
        mask = rng.random((m, n)) < 0.6
        mask[3] = False  # who looks nowhere gets 0
    here, there, runs = nn.DotProductAttention(causal), nn.DotProductAttention(causal, True), []
    for schedule in SCHEDULES:
        across = lambda x: x.swapaxes(-2, -3) if schedule % 2 else x  # noqa: B023, E731
        given = [across(xp.asarray(across(x).copy())) for x in (q, k, v)]
        y = there.forward(*given, None if mask is None else xp.asarray(mask))
        assert across(y).flags.c_contiguous
        runs.append([y, *there.backward(xp.asarray(dy))])
    wide = [np.asarray(x, "f8") for x in (q, k, v, dy)]
    wanted = here.forward(*wide[:3], mask), *here.backward(wide[3])
    for i, (x, right) in enumerate(zip(same(runs), wanted, strict=True)):
        error = np.linalg.norm(np.asarray(x, "f8") - right) / np.linalg.norm(right)
        bound = 2**-21 if me.letter == "s" else finfo(me.dtype).eps
        assert error <= bound, (me.letter, lead, m, n, d, i, error)


def nothing_to_look_at(xp, rng, dtype):
    """Zeros; a nan stays in its row, a weight of 0 does not hide one."""
    from blasx import nn
    layer = nn.DotProductAttention(True, True)
    q, k, v = (xp.asarray(rng.standard_normal((3, rows, 16)).astype(dtype)) for rows in (9, 5, 5))
    q[1, 7, 3] = np.nan
    v[2, 0, 2] = np.inf
    y = layer.forward(q, k, v)
    assert not y[:2, :4].astype("f4").any()
    bad = ~np.isfinite(y.astype("f4"))
    assert bad[1, 7].all() and bad[2, :, 2].all() and bad.sum() == 16 + 9
    dq, dk, dv = layer.backward(y)
    assert not dq[:2, :4].astype("f4").any() and np.isfinite(dq[0].astype("f4")).all()
    assert np.isnan(dk[1].astype("f4")).any() and np.isfinite(dk[0].astype("f4")).all()


def main(folder, letter, part):
    kernels = gpu.install(folder)
    import cupy

    from blasx.nn import _arrays
    _arrays._GEMM = dict.fromkeys(_arrays._GEMM, matmul)  # products of one matrix are not simulated
    with np.errstate(all="ignore"):
        globals()[part](cupy, np.random.default_rng(7), TYPES[letter].dtype)
    print("ok", letter, part, *sorted(set(kernels.launched)))


if __name__ == "__main__":
    main(*sys.argv[1:])
