"""Which kernels serve members of different sizes, beside those that serve them alone, by the rows
that ship for Hopper; nothing is computed:  python -m tests.sim.run_served FOLDER LETTER

A member has the bits of `_batched` if the same kernels serve it with the same constants. What may
differ: copies; how many warps a block has whose columns know nothing of each other (`narrower` of
_gpu_triangular.py); who has which tiles of Cholesky's, by columns of as many (tests/sim/
run_vbatched.py sees the bits).
"""

import sys
from itertools import product

from blasx import _tuned
from blasx._routine import Typed
from blasx._types import TYPES

from .gpu import Array, install

ORDERS = 33, 500, 513, 1000  # and where rows end and begin
SIDES = 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64
FREE = {"trsm_small": ("LANES", "WARPS", "BLOCKS"), "trsm_block": ("WARPS", "BLOCKS")}
CHOLESKY = "potrf_small", "potrf_columns", "potrf_block", "posv_small", "posv_columns", "posv_block"
KERNELS = ("gesv_shared getrf_shared potrf_small potrf_columns potrf_block posv_small posv_columns "
           "posv_block getrs_warp getrs_lines getrs_block potrs_warp potrs_lines potrs_block "
           "trsm_lines trsm_small trsm_block geqrf_small geqrf_shared geqrf_left gels_small "
           "gels_shared gels_warp ormqr_small ormqr_warp ormqr_strips ormqr_block").split()


def routines(letter):
    """name: (of `_batched`, of `_vbatched`, their operands by n and k)"""
    from blasx.batched import (
        _gpu_cholesky,
        _gpu_lu,
        _gpu_qr,
        _gpu_ragged,
        _gpu_ragged_blas,
        _gpu_ragged_qr,
        _gpu_triangular,
    )
    me, dtype = Typed(letter + "gesv_batched", letter), TYPES[letter].dtype

    def made(*shapes):
        return [Array((1, *shape), dtype) for shape in shapes]

    def square(n, k):
        return made((n, n), (n, k))

    def tall(n, k):
        return made((n, -(-n // 2)), (n, k))

    def wide(n, k):
        return made((-(-n // 2), n), (n, k))

    def factored(n, k):
        a, b = square(n, k)
        return a, Array((1, n), "i4"), b

    def reflectors(n, k):
        return made((n, n), (n,), (n, k))

    return {
        "gesv": (lambda *x: _gpu_lu.gesv(me, *x, 0, 0),
                 lambda *x: _gpu_ragged.gesv(me, *x, 0, 0), square),
        "getrs": (lambda *x: _gpu_lu.getrs(me, *x, 0, 0),
                  lambda *x: _gpu_ragged.getrs(me, *x, 0, 0), factored),
        "posv": (lambda *x: _gpu_cholesky.posv(me, *x, 1, 0, 0),
                 lambda *x: _gpu_ragged.posv(me, *x, 1, 0, 0), square),
        "potrs": (lambda *x: _gpu_cholesky.potrs(me, *x, 1, 0),
                  lambda *x: _gpu_ragged.potrs(me, *x, 1, 0), square),
        "trsm": (lambda *x: _gpu_triangular.triangular(me, "trsm", 1, *x, 0, 1, 0, 0, 0),
                 lambda *x: _gpu_ragged_blas.trsm(me, 1, *x, 0, 1, 0, 0, 0), square),
        **{f"geqrf {shape.__name__}": (
            lambda a, _: _gpu_qr.geqrf(me, a, 0),
            lambda a, _: _gpu_ragged_qr.geqrf(me, a, 0), shape) for shape in (square, tall, wide)},
        **{f"gels {shape.__name__}": (
            lambda *x: _gpu_qr.gels(me, *x, 0, 0, 0),
            lambda *x: _gpu_ragged_qr.gels(me, *x, 0, 0, 0), shape)
           for shape in (square, tall, wide)},
        "ormqr": (lambda *x: _gpu_qr.ormqr(me, "L", 0, *x, 0),
                  lambda *x: _gpu_ragged_qr.ormqr(me, "L", 0, *x, 0), reflectors),
    }


def main(folder, letter):
    kernels, served = install(folder), []

    def launch(kernel, *given):
        if kernel.name == "lascl_batched":
            return
        free = kernel.constants if kernel.name in CHOLESKY else FREE.get(kernel.name, ())
        constants = {k: v for k, v in kernel.constants.items() if k not in ("RAGGED", *free)}
        if kernel.name.endswith("_columns"):  # in how many tiles
            constants = {"N": kernel.constants["N"]}
        if kernel.name == "getrs_small":  # by rows for equal members or others, with the same bits
            constants = {}
        if kernel.name == "potrs_small":
            constants.pop("ONE_LINE", None)
        served.append((kernel.name, constants))

    kernels.launch = launch
    ends = {r["to"] for name in KERNELS for r in _tuned.table(90)[name].get(letter, ())}
    orders = sorted(n for n in {*ORDERS, *ends, *(n + 1 for n in ends)} if n <= 1000)
    wrong = []
    for name, (alone, among, operands) in routines(letter).items():
        least = 8 if name in ("getrs", "potrs") else 32
        sides = SIDES[:1] if name.startswith("geqrf") else SIDES
        for n, k in product((n for n in orders if n > least), sides):
            given = operands(n, k)
            alone(*given)
            expected, served[:] = served[:], ()
            among(*([x[0]] for x in given))
            if served != expected:
                wrong.append((name, n, k, served[:], expected))
            served.clear()
    assert not wrong, (len(wrong), wrong[:3])
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
