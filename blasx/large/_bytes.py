"""Shared memory of the kernels of one large matrix, as their sources lay it out."""


def panel_bytes(dtype, width, v):
    """kernels/getrf_panel.cu: heads of CLUSTER blocks and rows of four columns, the warps' offers
    to two, a row of its own, barriers, two lists, the top; and, of several leaves, a row of one for
    each thread, and U to the right of the first."""
    size, w = dtype.itemsize, v["W"]
    heads, offers = 4 * v["CLUSTER"] * (16 + up(2 * size, 16)), 2 * v["WARPS"] * 32
    shared = heads + offers + up(5 * w * size + 9 * 8 + 8 * w + size * w * (w + 1), 16)
    rows = 32 * v["WARPS"] * (w + 1) if width > w else 0
    return shared + size * (rows + max(width - w, 0) * (w + 4))


def rows_bytes(dtype, width, v):
    """kernels/getrf_rows.cu: COLUMNS columns of the rows of U, 32 rows at a time."""
    return dtype.itemsize * v["COLUMNS"] * (up(width, 32) + 4)


def wide_bytes(dtype, width, below, v):
    """kernels/getrf_wide.cu: COLUMNS columns, 32 rows at a time, and 32 rows that wait."""
    return dtype.itemsize * v["COLUMNS"] * (up(width + below, 32) + 4 + 36)


def columns_bytes(rows, v):
    """kernels/getrf_columns.cu: a word of each row of a column."""
    return rows * v["BYTES"]


def moved_bytes(dtype, rows, most, v):
    """kernels/getrf_moved.cu: a number of each row that moves, `most`, to STAGES columns, and
    its word; of 32 rows two."""
    return most * (v["STAGES"] * dtype.itemsize + 4) + 8 * -(-rows // 32)


def reflectors_bytes(dtype, v):
    """kernels/geqrf_leaf.cu: barriers, sums of CLUSTER blocks to two columns with their heads, a
    head and the warps' sums; T and four rows of numbers; powers of two."""
    size, w = dtype.itemsize, 4 * v["COLUMNS"]
    real = size // 2 if dtype.kind == "c" else size
    rows = 2 * v["CLUSTER"] + 3 + v["WARPS"]
    last = size * (w * (w + 1) + 4 * w + 1) + real * (4 * w + 1) + 8
    return 16 + size * w * rows + up(last, 16)


def apply_bytes(dtype, v):
    """kernels/geqrf_apply.cu: barriers; sums of BATCH columns by blocks, by warps, and T^H times
    them; of this block's columns twice; T^H; this block's rows of the columns."""
    size, w, batch = dtype.itemsize, 4 * v["COLUMNS"], v["BATCH"]
    rows = batch * (2 + v["WARPS"]) + 2 * (batch // v["CLUSTER"])
    return 16 + size * (w * rows + w * w + batch * (8 * v["ROWS"] * v["WARPS"] + 8))


def up(n, step):
    return -(-n // step) * step
