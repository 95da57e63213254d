"""Runs the launcher of members of different sizes (blasx/batched/_gpu_ragged.py) without a GPU, for
a process that has the sanitizers:  python -m tests.sim.run_vbatched FOLDER LETTER FAMILY

Arrays are NumPy's behind CuPy's names, kernels those of `VALUES` built for the CPU. Every member
must come out, to the bit, as from the `_batched` routine's launcher with the same constants.
"""

import gc
import sys
import weakref
from functools import partial
from math import inf
from unittest import mock

import numpy as np

from blasx import _tuned
from blasx._ragged import Ragged
from blasx._routine import Typed
from blasx._spaces import HOPPER

from .gpu import copied, install
from .run import check_solved, general, positive

WARP = dict(N=64, WARPS=1, BLOCKS=1, UPTO=2)
LINES = dict(LINES=16, CHUNKS=1, WARPS=2, BLOCKS=1, UPTO=16)
LU = dict(CHUNK=16, TM=16, TN=16, UNROLL=1, BLOCKS=1, NB=8, WARPS=2, ROWS=1)
PANELS = dict(NB=8, ROWS=2, WARPS=2, BLOCKS=1)
BY_PANELS = dict(geqrf_small=None, geqrf_shared=None, geqrf_left=None, geqrf_block=PANELS,
                 ormqr_strips=None, ormqr_block=PANELS,
                 gels_solve=dict(COLUMNS=2, WARPS=2, BLOCKS=1))
BY_STRIPS = dict(NB=16, COLUMNS=16, WARPS=2, BLOCKS=1)
PASSING = dict(N=32, UPTO=2, LANES=32, NB=8, WARPS=1, BLOCKS=1)
TALL = dict(WARPS=3, COLUMNS=2, ROWS=2, BLOCKS=1)
STRIPS = dict(WARPS=2, N=16, R=16, STAGES=2, BLOCKS=1, DEEP=1, RESIDENT=0, GROUP=4)
BY_TWO = dict(posv_small=None, posv_columns=None, posv_block=None,
              potrf_columns=None)  # posv is potrf and potrs
VALUES = {
    "few": {},
    "lu": {"getrf_block": LU | dict(RESIDENT=0), "getrf_shared": None,
           "gesv_shared": dict(TN=16, BLOCKS=1, N=48, WINDOW=48, WARPS=1, PANEL=1),
           "getrs_lines": None, "getrs_warp": WARP,
           "getrs_block": dict(WARPS=2, NB=32, DEEP=32, WIDTH=4, TM=16, TN=8, BLOCKS=1)},
    "windows": {"getrf_shared": dict(TN=16, BLOCKS=1, N=72, WINDOW=32, WARPS=4, PANEL=2),
                "gesv_shared": dict(TN=16, BLOCKS=1, N=72, WINDOW=32, WARPS=8, PANEL=2),
                "getrs_lines": LINES},
    "cholesky": BY_TWO | {
        "potrf_small": None, "potrf_block": TALL, "potrs_lines": None, "potrs_warp": WARP,
        "potrs_block": dict(WARPS=2, BLOCKS=1, UPTO=32)},
    "lines of L": BY_TWO | {"potrf_block": TALL, "potrs_lines": LINES},
    "columns": BY_TWO | {
        "potrf_small": None, "potrf_columns": dict(N=48, WARPS=2, BLOCKS=1, AHEAD=0),
        "potrf_block": None, "potrs_lines": LINES},
    "by blocks": {"posv_small": None, "posv_columns": None,
                  "posv_block": dict(WARPS=3, COLUMNS=6, ROWS=2, BLOCKS=1)},
    "by columns": {"posv_small": None, "posv_columns": dict(N=48, WARPS=2, BLOCKS=1, AHEAD=0)},
    "by warps": {"posv_block": None},
    "two sweeps": BY_TWO | {
        "potrf_block": TALL, "potrs_warp": None, "potrs_block": None, "potrs_lines": None,
        "trsm_small": None, "trsm_lines": LINES | dict(UPTO=1), "trsm_block": STRIPS},
    "small triangles": BY_TWO | {
        "potrf_block": TALL, "potrs_warp": None, "potrs_block": None, "potrs_lines": None,
        "trsm_lines": None, "trsm_small": dict(N=44, LANES=16, C=1, WARPS=2, BLOCKS=1)},
    "by panels": BY_TWO | {
        "potrf_block": TALL, "potrf_panels": dict(NB=16), "trsm_small": None, "trsm_split": None,
        "trsm_block": STRIPS, "gemm_warp": None, "syrk_split": None,
        "syrk_block": dict(BM=16, BN=16, TM=16, TN=16, BK=16, STAGES=2, RESIDENT=0, WARPS=2,
                           BLOCKS=1)},
    "qr": {"geqrf_small": dict(N=8, LANES=8, KEPT=1, WARPS=1, BLOCKS=1)},
    "tiles": {"geqrf_small": None, "geqrf_shared": dict(N=16, WARPS=1, BLOCKS=1, HEIGHTS=2)},
    "left": {"geqrf_small": None, "geqrf_shared": None,
             "geqrf_left": dict(NB=16, ROWS=1, WARPS=2, BLOCKS=1)},
    "mixed": {},
    "lanes": {"gels_small": dict(N=8, LANES=8, C=1, KEPT=1, WARPS=1, BLOCKS=1)},
    "beside": {"gels_small": None, "gels_shared": dict(N=24, WARPS=1, BLOCKS=1, HEIGHTS=2)},
    "panels": {"gels_small": None, "gels_shared": None, "gels_warp": None, "ormqr_warp": None,
               "ormqr_small": None, **BY_PANELS},
    "passing": {"gels_small": None, "gels_shared": None, "gels_warp": PASSING,
                "ormqr_warp": PASSING | dict(LANES=8, UPTO=2),
                "ormqr_small": dict(N=32, LANES=8, WARPS=1, BLOCKS=1), **BY_PANELS},
    "strips": {"gels_small": None, "gels_shared": None, "gels_warp": None, "ormqr_warp": None,
               "ormqr_small": None, **BY_PANELS, "ormqr_strips": BY_STRIPS},
    "eigen": {},
    "staying": {"syevd_block": dict(ROWS=9, LANES=1, WIDTH=1, GROUPS=5, WARPS=1, SHARED=1, BLOCKS=1,
                                    STAY=1, SPREAD=1)},
    "rotations": {"syevd_block": None, "stedc_leaf": None,
                  "sytrd_rows": dict(N=24, EACH=3, WARPS=1, BLOCKS=1),
                  "steqr_lane": dict(LANES=4, WARPS=1, PARTS=2),
                  "lasr_rows": dict(ROWS=24, EACH=1, WAVE=2, WARPS=1),
                  "orgqr_small": dict(N=24, WARPS=2, BLOCKS=1)},
    "rotations of rows": {"syevd_block": None, "stedc_leaf": None, "sytrd_rows": None,
                          "sytrd_block": dict(NB=2, WARPS=2, BLOCKS=1),
                          "steqr_lane": dict(LANES=2, WARPS=1, PARTS=3),
                          "lasr_rows": dict(ROWS=8, EACH=2, WAVE=2, WARPS=1),
                          "orgqr_small": None, "orgqr_strips": BY_STRIPS},
    "division": {"syevd_block": None, "sytrd_rows": None, "sytrd_block": None,
                 "sytrd_cluster": dict(NB=2, WARPS=2, CLUSTER=2),
                 "steqr_lane": dict(LANES=2, WARPS=1, PARTS=2),
                 "lasr_rows": dict(ROWS=32, EACH=1, WAVE=2, WARPS=1),
                 "stedc_leaf": dict(WARPS=2, values=1), "stedc_merge": dict(WARPS=2),
                 "ormqr_warp": None, "ormqr_small": None, "ormqr_strips": BY_STRIPS},
    "small": {}, "joined": {},
    "blas": {"gemm_thread": None, "gemm_lines": None, "gemm_warp": None, "gemm_split": None,
             "gemm_block": dict(BM=32, BN=32, TM=32, TN=32, BK=8, STAGES=2, RESIDENT=0, WARPS=1,
                                BLOCKS=1),
             "trsm_small": None, "trsm_lines": LINES | dict(UPTO=2),
             "trsm_block": STRIPS},
}


TILES = dict(gemm_split=None, gemm_block=dict(BM=32, BN=32, TM=16, TN=16, BK=16, STAGES=2,
                                              RESIDENT=0, WARPS=4, BLOCKS=1))


def same(found, alone, what):
    for i, (x, y) in enumerate(zip(found, alone, strict=True)):
        assert np.asarray(x).tobytes() == np.asarray(y)[0].tobytes(), (what, i)


def main(folder, letter, family):
    me, rng = Typed(letter + "gesv_vbatched", letter), np.random.default_rng(0)

    def members(*shapes):
        return [copied(general(rng, me.dtype, 1, m, n)[0]) for m, n in shapes]

    kernels, calls = install(folder), watched()
    real = {"c": "s", "z": "d"}.get(letter, letter)
    products = TILES if family == "division" else {}
    with _tuned.using(letter, **VALUES[family]), _tuned.using(real, **products):
        FAMILIES[family](kernels, me, members)
    assert calls and not any(call() for call in calls), "a call outlives its routine"
    print("ok")


def watched():
    """References to all calls from now on, which must not wait for Python's collector: workspace
    of theirs would."""
    from blasx.batched._gpu_ragged import Call
    gc.disable()
    calls, init = [], Call.__init__

    def begin(call, *given):
        calls.append(weakref.ref(call))
        init(call, *given)

    Call.__init__ = begin
    return calls


def lu(sim, me, members):
    from blasx.batched import _gpu_lu, _gpu_ragged
    a = members((41, 37), (0, 3), (35, 44), (48, 48))
    a[2] = copied(np.asfortranarray(a[2]))
    compare(lambda x: _gpu_ragged.getrf(me, x, 0), lambda x: _gpu_lu.getrf(me, x, 0), 2, a)
    assert sim.launched == 6 * ["getrf_block"]  # three alone, all together three times

    orders = 40, 48, 0, 33, 34
    a, b = members(*zip(orders, orders)), members(*zip(orders, (2, 9, 1, 0, 5)))
    a[3][:, 5] = 0
    compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0), 3,
            a, b)
    factors, piv, _ = _gpu_ragged.getrf(me, a, 0)
    compare(lambda *x: _gpu_ragged.getrs(me, *x, 2, 0), lambda *x: _gpu_lu.getrs(me, *x, 2, 0), 1,
            factors, piv, b)


def few(sim, me, members):
    """Rows for few members, as alone and all together are here, with the bits of the rows for any
    number."""
    from blasx import _kernel
    from blasx.batched import _gpu_lu, _gpu_ragged
    a, b = members((40, 40), (39, 39)), members((40, 2), (39, 1))
    a[1][:, 5] = 0
    for kernel, many, one, k, operands in (
            ("getrf_shared", _gpu_ragged.getrf, _gpu_lu.getrf, 2, (a,)),
            ("gesv_shared", _gpu_ragged.gesv, _gpu_lu.gesv, 3, (a, b))):
        own, usual = (_tuned.row(kernel, me.letter, 40, HOPPER, lines) for lines in (1, inf))
        assert own["WARPS"] != usual["WARPS"] and own["to"] == usual["to"] == 40
        zeros = (0,) * len(operands)
        compare(lambda *x: many(me, *x, *zeros), lambda *x: one(me, *x, *zeros), k, *operands)
        with _tuned.using(me.letter, **{kernel: _tuned.capitals(usual)}):
            alone = [one(me, *(x[i][None] for x in operands), *zeros) for i in range(2)]
        found = many(me, *operands, *zeros)
        for j in range(k + 1):
            same(found[j], [result[j] for result in alone], j)
    a, b = members((40, 40), (48, 48)), members((40, 1), (48, 1))
    sim.launched.clear()
    _gpu_ragged.gesv(me, a, b, 0, 0)
    assert sim.launched == ["gesv_shared"]  # the row to 40 joins the next
    compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0), 3,
            a, b)
    try:
        with _gpu_ragged.Branches(2, 1).turn(0, True):
            raise ArithmeticError
    except ArithmeticError:
        assert _kernel.recorded_begun(), "the next launch would record an event that is gone"


def small(sim, me, members):
    """By the rows that ship: of LU, whose bits are the same, others for equal members; of Cholesky
    the same, member by member."""
    from blasx.batched import _gpu_cholesky, _gpu_lu, _gpu_ragged
    a, b = members((9, 9), (0, 0), (5, 5)), members((9, 2), (0, 1), (5, 1))
    a[2][:, 3] = 0
    compare(lambda x: _gpu_ragged.getrf(me, x, 0), lambda x: _gpu_lu.getrf(me, x, 0), 2, a)
    compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0), 3,
            a, b)
    with _tuned.using(me.letter, gesv_small=None):
        sim.launched.clear()
        compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0),
                3, a, b)
        assert set(sim.launched) == {"getrf_small", "getrs_small"}
        solved_by_two(me, members, 5, 3)
        with _tuned.using(me.letter, getrs_small=dict(N=24, LR=8, LC=4, CV=2, WARPS=2, BLOCKS=1)):
            solved_by_two(me, members, 22, 7)
    for n in (9, 5):
        one, ragged = (_tuned.row("getrf_small", me.letter, n, 90, plain=x) for x in (False, True))
        assert one["ONE_LINE"] == 2 and "ONE_LINE" not in ragged
    orders = 7, 13
    a = [copied(positive(np.random.default_rng(n), me.dtype, 1, n)[0]) for n in orders]
    b = members(*((n, 2) for n in orders))
    compare(lambda *x: _gpu_ragged.posv(me, *x, 1, 0, 0),
            lambda *x: _gpu_cholesky.posv(me, *x, 1, 0, 0), 2, a, b)
    compare(lambda *x: _gpu_ragged.potrs(me, *x, 1, 0),
            lambda *x: _gpu_cholesky.potrs(me, *x, 1, 0), 1, a, b)


def joined(sim, me, members):
    """Few small members go with the next larger ones, where these have tiles as they have, and LU
    of other types than complex double anyway."""
    from blasx.batched import _gpu_cholesky, _gpu_lu, _gpu_ragged
    orders = 2, 26, 31, 8, 13, 5
    a, b = members(*((n, n) for n in orders)), members(*((n, 1) for n in orders))
    p = [copied(positive(np.random.default_rng(n), me.dtype, 1, n)[0]) for n in orders]
    compare(lambda x: _gpu_ragged.getrf(me, x, 0), lambda x: _gpu_lu.getrf(me, x, 0), 2, a)
    compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0), 3,
            a, b)
    compare(lambda x: _gpu_ragged.potrf(me, x, 1, 0),
            lambda x: _gpu_cholesky.potrf(me, x, 1, 0), 1, p)
    lu = 1 + (me.letter == "z")
    for routine, of, launched in ((_gpu_ragged.getrf, (a, 0), lu * ["getrf_small"]),
                                  (_gpu_ragged.potrf, (p, 1, 0), 2 * ["potrf_small"])):
        sim.launched.clear()
        routine(me, *of)
        assert sim.launched == launched


def solved_by_two(me, members, n, k):
    """A batch whose every other member is singular, in place and not."""
    from blasx.batched import _gpu_lu
    a, b = np.array(members(*5 * [(n, n)])), np.array(members(*5 * [(n, 3)]))
    a[1::2, :, k] = 0
    for in_place in (0, 1):
        _, _, x, info = map(np.asarray, _gpu_lu.gesv(me, copied(a), copied(b), 0, in_place))
        assert [*info] == 2 * [0, k + 1] + [0] and np.array_equal(x[1::2], b[1::2])
        for i in range(0, 5, 2):
            check_solved(a[i], b[i], x[i], 0)


def windows(sim, me, members):
    from blasx.batched import _gpu_lu, _gpu_ragged
    a = members((65, 37), (35, 72), (40, 40))
    compare(lambda x: _gpu_ragged.getrf(me, x, 0), lambda x: _gpu_lu.getrf(me, x, 0), 2, a)
    orders = 70, 33, 48
    a, b = members(*zip(orders, orders)), members(*zip(orders, (2, 8, 1)))
    a[2][:, 5] = 0
    compare(lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), lambda *x: _gpu_lu.gesv(me, *x, 0, 0), 3,
            a, b)
    one, two = ([np.asarray(x) for x in _gpu_lu.gesv(me, a[0][None], b[0][None], 0, 0, kept)[2:]]
                for kept in (1, 0))  # where nobody wants the factors they need room all the same
    assert np.array_equal(one[0], two[0]) and one[1] == two[1] == 0
    assert set(sim.launched) == {"getrf_shared", "gesv_shared"}


def cholesky(sim, me, members):
    from blasx.batched import _gpu_cholesky, _gpu_ragged
    a = [copied(positive(np.random.default_rng(n), me.dtype, 1, n)[0]) for n in (41, 0, 44)]
    a[2][0, 0] = -1
    for lower in (0, 1):
        compare(lambda x: _gpu_ragged.potrf(me, x, lower, 0),
                lambda x: _gpu_cholesky.potrf(me, x, lower, 0), 1, a)
        b = members((41, 1), (0, 2), (44, 9))
        compare(lambda *x: _gpu_ragged.posv(me, *x, lower, 0, 0),
                lambda *x: _gpu_cholesky.posv(me, *x, lower, 0, 0), 2, a, b)


def at_once(sim, me, members, orders=(33, 40, 0, 41, 48, 40)):
    """posv of one right-hand side; of two it is another matter, and beside them."""
    from blasx.batched import _gpu_cholesky, _gpu_ragged
    sides = 1, 1, 1, 1, 1, 2
    a = [copied(positive(np.random.default_rng(n), me.dtype, 1, n)[0]) for n in orders]
    a[3][17, 17], a[4] = -1, copied(np.asfortranarray(a[4]))
    b = members(*zip(orders, sides))
    for lower in (0, 1):
        sim.launched.clear()
        compare(lambda *x: _gpu_ragged.posv(me, *x, lower, 0, 0),
                lambda *x: _gpu_cholesky.posv(me, *x, lower, 0, 0), 2, a, b)
        kernels = {"posv_small", "posv_columns", "posv_block"}
        assert len(kernels & set(sim.launched)) == 1, sim.launched


def by_panels(sim, me, members):
    """Failed members and nan among them, in each order."""
    from blasx.batched import _gpu_cholesky, _gpu_ragged
    a = [copied(positive(np.random.default_rng(n), me.dtype, 1, n)[0])
         for n in (33, 49, 64, 41, 70, 48)]
    a[1][20, 20], a[2][40, 3], a[2][3, 40] = -1, np.nan, np.nan
    a[3], a[5] = (copied(np.asfortranarray(a[i])) for i in (3, 5))
    for lower in (0, 1):
        compare(lambda x: _gpu_ragged.potrf(me, x, lower, 0),
                lambda x: _gpu_cholesky.potrf(me, x, lower, 0), 1, a)
        b = members(*((len(x), 1 + i) for i, x in enumerate(a)))
        compare(lambda *x: _gpu_ragged.posv(me, *x, lower, 0, 0),
                lambda *x: _gpu_cholesky.posv(me, *x, lower, 0, 0), 2, a, b)
    assert {"lascl_batched", "trsm_block", "syrk_block"} < set(sim.launched)


def qr(sim, me, members):
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((8, 8), (3, 7), (0, 2), (7, 2), (1, 1), (5, 5), (8, 3), (4, 1), (6, 2), (6, 3))
    a[1][1, 1] = np.nan
    compare(lambda x: _gpu_ragged_qr.geqrf(me, x, 0), lambda x: _gpu_qr.geqrf(me, x, 0), 2, a)


def tiles(sim, me, members):
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((16, 16), (3, 12), (0, 2), (13, 9), (1, 1), (9, 15))
    compare(lambda x: _gpu_ragged_qr.geqrf(me, x, 0), lambda x: _gpu_qr.geqrf(me, x, 0), 2, a)
    assert set(sim.launched) == {"geqrf_shared"}


def left(sim, me, members):
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((50, 50), (33, 37), (0, 2), (64, 20), (20, 41), (7, 3))
    a[0] = copied(np.asfortranarray(a[0]))
    compare(lambda x: _gpu_ragged_qr.geqrf(me, x, 0), lambda x: _gpu_qr.geqrf(me, x, 0), 2, a)
    assert set(sim.launched) == {"geqrf_left"}


def mixed(sim, me, members):
    """Odd numbers of reflectors before members by geqrf_left, by the rows that ship."""
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((3, 3), (113, 17), (2, 5), (6, 5), (114, 20))
    compare(lambda x: _gpu_ragged_qr.geqrf(me, x, 0), lambda x: _gpu_qr.geqrf(me, x, 0), 2, a)
    assert {"geqrf_small", "geqrf_left"} == set(sim.launched)


def panels(sim, me, members):
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((19, 11), (9, 12), (0, 1), (26, 9))
    compare(lambda x: _gpu_ragged_qr.geqrf(me, x, 0), lambda x: _gpu_qr.geqrf(me, x, 0), 2, a)
    qr, tau, _ = _gpu_ragged_qr.geqrf(me, a, 0)
    qr = [x[:, :len(t)] for x, t in zip(qr, tau)]
    trans = "C" if me.is_complex else "T"
    for side, c in (("L", members((19, 3), (9, 1), (0, 2), (26, 0))),
                    ("R", members((2, 19), (4, 9), (1, 0), (3, 26)))):
        compare(lambda *x: _gpu_ragged_qr.ormqr(me, side, trans, *x, 1),
                lambda *x: _gpu_qr.ormqr(me, side, trans, *(y.copy() for y in x), 1), 1, qr, tau, c)
    a = members((19, 11), (9, 12), (0, 1), (11, 19), (5, 5), (3, 2))
    a[4][:, 2] = 0
    b = members((19, 2), (12, 1), (1, 2), (19, 3), (5, 2), (3, 0))
    b[0] *= 2.0 ** (np.finfo(me.dtype).maxexp - 3)  # sums of these overflow
    for trans in ("N", trans):
        compare(lambda *x: _gpu_ragged_qr.gels(me, *x, trans, 0, 0),
                lambda *x: _gpu_qr.gels(me, *x, trans, 0, 0), 2, a, b)


def passing(sim, me, members):
    panels(sim, me, members)
    assert all(sim.launched.count(name) > 1 for name in ("ormqr_warp", "ormqr_small", "gels_warp"))


def strips(sim, me, members):
    panels(sim, me, members)
    assert {"larft_panels", "ormqr_strips"} < set(sim.launched)
    assert "ormqr_block" not in sim.launched


def beside(sim, me, members):
    """gels of one right-hand side, and of two beside it; a member that lies by columns, one that is
    wide, one with a column of zeros."""
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((19, 11), (9, 12), (0, 1), (24, 24), (5, 5), (20, 17))
    a[0], a[4][:, 2] = copied(np.asfortranarray(a[0])), 0
    b = members((19, 1), (12, 1), (1, 1), (24, 1), (5, 1), (20, 2))
    b[3] *= 2.0 ** (np.finfo(me.dtype).maxexp - 3)
    for trans in "N", "C" if me.is_complex else "T":
        compare(lambda *x: _gpu_ragged_qr.gels(me, *x, trans, 0, 0),
                lambda *x: _gpu_qr.gels(me, *x, trans, 0, 0), 2, a, b)
    assert sim.launched.count("gels_shared") > 4


def lanes(sim, me, members):
    from blasx.batched import _gpu_qr, _gpu_ragged_qr
    a = members((8, 5), (5, 8), (3, 2), (0, 1), (7, 1), (8, 8), (4, 3), (6, 1))
    b = members((8, 2), (8, 1), (3, 4), (1, 2), (7, 1), (8, 3), (4, 0), (6, 3))
    a[2][:, 1] = 0
    a[5][3, 3] = np.nan
    trans = "C" if me.is_complex else "T"
    with _tuned.using(me.letter, gels_warp=None, ormqr_warp=None,
                      ormqr_small=None, **BY_PANELS):
        for op in ("N", trans):
            compare(lambda *x: _gpu_ragged_qr.gels(me, *x, op, 0, 0),
                    lambda *x: _gpu_qr.gels(me, *x, op, 0, 0), 2, a, b)
    assert sim.launched.count("gels_small") > 8


def blas(sim, me, members):
    from blasx.batched import _gpu_blas, _gpu_ragged_blas, _gpu_triangular
    a, b, c = (members(*x) for x in (((5, 33), (0, 3), (40, 9)), ((7, 33), (2, 3), (35, 9)),
                                     ((5, 7), (0, 2), (40, 35))))
    compare(lambda a, b, c: (_gpu_ragged_blas.gemm(me, 2.0, a, b, 0.5, c, 0, 2, 0),),
            lambda a, b, c: (_gpu_blas.gemm(me, 2.0, a, b.swapaxes(1, 2), 0.5, c, 1, False, True,
                                            0),), 1, a, b, c, infos=False)
    a, b = members((20, 20), (0, 0), (9, 9)), members((20, 35), (0, 3), (9, 2))
    for x in a:
        x += 9 * np.eye(len(x), dtype=x.dtype)
    for side, lower, trans in ((0, 1, 0), (0, 0, 2), (1, 0, 1)):
        right = [x.T.copy() for x in b] if side else b
        compare(lambda *x: (_gpu_ragged_blas.trsm(me, 2.0, *x, side, lower, trans, 0, 0),),
                lambda *x: (_gpu_triangular.triangular(me, "trsm", 2.0, *x, side, lower, trans, 0,
                                                       0),), 1, a, right, infos=False)


def eigen(sim, me, members):
    same_eigen(sim, me, members, 9, 40, 0, 9, 1, 18, 4, 3)


def staying(sim, me, members):
    from blasx.batched._gpu_eig import by_jacobi
    same_eigen(sim, me, members, 9, 8, 0, 9, 1, 4, 2, 6)
    own = VALUES["staying"]["syevd_block"] | {"vectors": 1}
    with _tuned.using(me.letter, syevd_block=own):
        assert by_jacobi(me, 9, True) and not by_jacobi(me, 9, False)


def rotations(sim, me, members):
    same_eigen(sim, me, members, 9, 20, 0, 9, 1, 24, 23, 2)
    assert {"steqr_lane", "lasr_rows"} < set(sim.launched)


def division(sim, me, members):
    same_eigen(sim, me, members, 33, 65, 0, 33, 40)
    assert {"sytrd_cluster", "stedc_merge", "gemm_block", "ormqr_strips"} < set(sim.launched)


def same_eigen(sim, me, members, *orders):
    """The first lies by columns, the fourth has a nan; all in place, in parts that have a
    workspace in turn, and by as many launches as a few."""
    from blasx.batched import _gpu_eig, _gpu_ragged, _gpu_ragged_eig
    a = members(*zip(orders, orders))
    a[0], a[3][0, 0] = copied(np.asfortranarray(a[0])), np.nan

    def alone(x, *how):
        if not x.size:
            return np.zeros((1, 0), me.real), x, np.zeros(1, "i4")
        return _gpu_eig.syevd(me, x.copy(), *how)

    for vectors, lower, overwrite in ((1, 0, 0), (1, 1, 1), (0, 0, 0)):
        compare(lambda x: _gpu_ragged_eig.syevd(me, x, vectors, lower, overwrite),
                lambda x: alone(x, vectors, lower, overwrite), 1 + vectors, a,
                infos=bool(vectors))
    x = [y.copy() for y in a]
    v = _gpu_ragged_eig.syevd(me, x, 1, 0, 1)[1]
    assert all(y is z for y, z in zip(x, v))
    few, launches = _gpu_ragged_eig.syevd(me, a, 1, 0, 0), []
    for times in 1, 3:
        sim.launched.clear()
        w, v, _ = _gpu_ragged_eig.syevd(me, times * a, 1, 0, 0)
        launches.append(list(sim.launched))
    assert launches[0] == launches[1], launches
    with mock.patch.object(_gpu_ragged, "MEMORY", 1):  # a member at a time
        for many in w, _gpu_ragged_eig.syevd(me, 3 * a, 1, 0, 0)[0]:
            same(many, [x[None] for x in 3 * few[0]], "many")
    steps = _gpu_ragged_eig._steps
    with mock.patch.object(_gpu_ragged_eig, "_steps",  # as if they were larger than a kernel takes
                           lambda me, n, *how: None if n == orders[0] else steps(me, n, *how)):
        found = [_gpu_ragged_eig.syevd(me, a, vectors, 0, 0) for vectors in (1, 0)]
    values = _gpu_ragged_eig.syevd(me, a, 0, 0, 0)[0]
    for many, one in zip((*found[0][:2], found[1][0]), (*few[:2], values)):
        same(many, [x[None] for x in one], "larger")


FAMILIES = dict(lu=lu, few=few, small=small, joined=joined, windows=windows, cholesky=cholesky,
                qr=qr, tiles=tiles, left=left, mixed=mixed, lanes=lanes, panels=panels,
                passing=passing, blas=blas, eigen=eigen, staying=staying, rotations=rotations,
                division=division) | {
                    "lines of L": cholesky, "columns": cholesky, "two sweeps": cholesky,
                    "small triangles": cholesky,
                    "by panels": by_panels, "by blocks": at_once, "by warps": at_once,
                    "by columns": partial(at_once, orders=(43, 44, 0, 41, 48, 44)),
                    "beside": beside, "strips": strips,
                    "rotations of rows": rotations}


def apart(arrays):
    r = Ragged.pack(arrays)
    data = copied(np.repeat(r.data, 2))
    return Ragged(data[::2], r.shapes)


def compare(many, one, members, *operands, infos=True):
    """The members of both launchers' results and their infos; lists, one buffer, and one of which
    every other number is a member's."""
    alone = [one(*(x[i][None] for x in operands)) for i in range(len(operands[0]))]
    for pack in (list, Ragged.pack, apart):
        found = many(*([y.copy() for y in x] if pack is list else pack(x) for x in operands))
        for k in range(members + infos):
            same(found[k], [result[k] for result in alone], k)


if __name__ == "__main__":
    main(*sys.argv[1:])
