"""Shared memory of the kernels that give a block to each matrix (kernels/lu_block.cuh,
lu_solve.cuh), in bytes."""

LARGEST_BLOCK = 1024  # the largest order for which they have rows in kernels/tuned


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
