"""Shared memory that kernels are launched with, in bytes, from their constants."""

from .._types import TYPES

LARGEST_BLOCK = 1024  # the largest order for which lu_block.cuh and lu_solve.cuh have tuned rows


def leading(n, dtype):
    """The row length that kernels/multiply.cuh gives rows of n numbers."""
    line = 128 // dtype.itemsize
    past = (32 if dtype.char in "dD" else 16) // dtype.itemsize
    return (n - past + line - 1) // line * line + past


def lu_bytes(dtype, m, n, constants):
    if constants["RESIDENT"]:
        return m * leading(n, dtype) * dtype.itemsize
    panel, chunk = constants["NB"], min(n, constants["CHUNK"])
    return (m * leading(panel, dtype) + panel * leading(chunk, dtype)) * dtype.itemsize


def solve_bytes(dtype, n, constants):
    rows = min(n, constants["DEEP"]) * leading(constants["NB"], dtype)
    return (n * leading(constants["WIDTH"], dtype) + rows) * dtype.itemsize + 8 * n


def panel_bytes(letter, constants, rows):
    """kernels/qr_panels.cuh: `rows` of a panel, and of double precision the warps' products."""
    size, past, strip = {"s": (4, 4, 0), "d": (8, 4, 20), "c": (8, 4, 0), "z": (16, 2, 12)}[letter]
    panel, warps = constants["NB"], constants["WARPS"]
    return size * (rows * (panel + past) + warps * panel * strip)


def gemm_bytes(letter, constants):
    """kernels/gemm_block.cu: STAGES slices of A and of B."""
    dtype, deep = TYPES[letter].dtype, constants["BK"]

    def slice_of(rows):
        return max(leading(deep, dtype) * rows, leading(rows, dtype) * deep)

    slices = slice_of(constants["BM"]) + slice_of(constants["BN"])
    return constants["STAGES"] * slices * dtype.itemsize


def svd_room(letter, n, vectors, constants):
    """kernels/svd.cuh: numbers of a member's columns, and bytes of a block."""
    v, t = constants, TYPES[letter]
    members = 32 * v["WARPS"] // (v["LANES"] * v["GROUPS"])
    columns = 2 * v["WIDTH"] * -(-n // (2 * v["WIDTH"]))
    numbers = columns * (v["LANES"] * v["ROWS"] * (1 + vectors) + 16 // t.dtype.itemsize)
    rest = -(-(columns * (2 * t.real.itemsize + 4) + v["WARPS"] * t.real.itemsize) // 16) * 16
    return numbers, members * (rest + numbers * t.dtype.itemsize * v["SHARED"])
