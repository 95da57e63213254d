"""Shared memory of the kernels of one large matrix, as their sources lay it out."""


def panel_bytes(dtype, v):
    """kernels/getrf_panel.cu: messages of CLUSTER blocks to four columns, the warps' offers to two, a
    row of its own and a number, barriers, two lists, and the top."""
    size, w = dtype.itemsize, v["W"]
    messages, offers = 4 * v["CLUSTER"] * (32 + size * w), 2 * v["WARPS"] * 32
    return messages + offers + size * w + 16 + 64 + 8 * w + up(size * w * (w + 1), 16)


def rows_bytes(dtype, width, v):
    """kernels/getrf_rows.cu: COLUMNS columns of the rows of U, 32 rows at a time."""
    return dtype.itemsize * v["COLUMNS"] * (up(width, 32) + 4)


def up(n, step):
    return -(-n // step) * step
