"""Shared memory of the kernels of one large matrix, as their sources lay it out."""


def panel_bytes(dtype, width, v):
    """kernels/getrf_panel.cu: heads of CLUSTER blocks and rows of four columns, the warps' offers to
    two, a row of its own, barriers, two lists, the top; and U to the right of the first leaf."""
    size, w = dtype.itemsize, v["W"]
    heads, offers = 4 * v["CLUSTER"] * (16 + up(2 * size, 16)), 2 * v["WARPS"] * 32
    shared = heads + offers + up(5 * w * size + 9 * 8 + 8 * w + size * w * (w + 1), 16)
    return shared + size * max(width - w, 0) * (w + 4)


def rows_bytes(dtype, width, v):
    """kernels/getrf_rows.cu: COLUMNS columns of the rows of U, 32 rows at a time."""
    return dtype.itemsize * v["COLUMNS"] * (up(width, 32) + 4)


def up(n, step):
    return -(-n // step) * step
