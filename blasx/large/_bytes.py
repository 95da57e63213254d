"""Shared memory of the kernels of one large matrix, as their sources lay it out."""


def leaf_bytes(dtype, v):
    """kernels/getrf_leaf.cu: messages of CLUSTER blocks to four columns, the warps' offers to two, a
    row of its own and a number, barriers, two lists, and the top."""
    size, w = dtype.itemsize, v["W"]
    messages, offers = 4 * v["CLUSTER"] * (32 + size * w), 2 * v["WARPS"] * 32
    return messages + offers + size * w + 16 + 32 + 8 * w + up(size * w * (w + 1), 16)


def rows_bytes(dtype, width, v):
    """kernels/getrf_rows.cu: COLUMNS columns of the rows of U, 32 rows at a time."""
    return dtype.itemsize * v["COLUMNS"] * (up(width, 32) + 4)


def reflectors_bytes(dtype, v):
    """kernels/geqrf_leaf.cu: barriers, sums of CLUSTER blocks to two columns with their heads, and
    what is made of them; of 32 columns to the right the sums, and those of this block; T; sizes."""
    size, w, c = dtype.itemsize, 4 * v["COLUMNS"], v["CLUSTER"]
    real = size // 2 if dtype.kind == "c" else size
    rows = 2 * c + 2 + 2 + 32 + 32 // c + 32 + 32 * v["WARPS"]
    last = size * (w * (w + 1) + 4 * w + 1) + real * (4 * w + 1) + 8
    return 32 + size * w * rows + up(last, 16)


def up(n, step):
    return -(-n // step) * step
