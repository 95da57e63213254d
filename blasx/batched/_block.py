"""Shared memory that kernels are launched with, in bytes, from their constants."""

from .._types import TYPES


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


def shared_bytes(dtype, m, constants, beside=0):
    """kernels/lu_shared.cuh: m rows, in eights, of WINDOW columns of a matrix of order N and those
    beside it, and what the warps share; with several windows two panels, and where rows are."""
    v, size, rows = constants, dtype.itemsize, -(-m // 8) * 8
    vector, double = 16 // size, dtype.char in "dD"
    apart = v["WINDOW"] + beside + (0 if v.get("TIGHT") else 2 if dtype.kind == "c" else 4)
    shared = 2 * v["PANEL"] * (-(-9 * size // 16) * 16 + 16) + 144
    if v["WINDOW"] < v["N"]:
        apart += 2 * (12 if double else 8 + vector)
        shared += 16 * v["N"]
    return rows * apart * size + shared


def cholesky_bytes(dtype, n, constants):
    """kernels/cholesky_block.cuh: the tiles of the first panel, from the diagonal down, and those
    of the rows that cross the diagonal of the last."""
    rows, columns = -(-n // 8), min(constants["COLUMNS"], -(-n // 8))
    tiles = columns * rows - columns * (columns - 1) // 2
    if constants["ROWS"] * constants["WARPS"] > constants["COLUMNS"]:
        tiles += columns * rows
    return 64 * dtype.itemsize * tiles


def above_bytes(dtype, constants):
    """kernels/cholesky_columns.cuh: what is above the diagonal, two lines as one of N + 8."""
    return -(-constants["N"] // 16) * 8 * (constants["N"] + 8) * dtype.itemsize


def posv_bytes(dtype, n):
    """kernels/posv_block.cu: L in tiles and a right-hand side."""
    rows = -(-n // 8)
    return dtype.itemsize * (32 * rows * (rows + 1) + 8 * rows)


def upper_bytes(letter, constants):
    """kernels/cholesky_large.cuh: what is on its way from A to C, then L for a right-hand side; or
    the member as a line."""
    v, size = constants, TYPES[letter].dtype.itemsize
    N, line = v["N"], v.get("ONE_LINE", 0)
    if N <= 32:
        return 0
    pairs = N // 8 * (N // 8 + 1) * 32
    return v["WARPS"] * size * -(-max(pairs, line * (N * N + 2 * (16 // size))) // 4) * 4


def potrs_bytes(dtype, n):
    """kernels/cholesky_solve.cuh: L in tiles, right-hand sides, of double precision inverses."""
    rows = -(-n // 8)
    tiles = rows * (rows + 1) // 2 + rows * (2 if dtype.char in "dD" else 1)
    return 64 * dtype.itemsize * tiles


def square_bytes(dtype, n):
    """kernels/warp_solve.cuh: a factor by rows, an odd number of scalars apart, and what of 16
    bytes is before it and after."""
    return n * (n | 1) * dtype.itemsize + 32


def line_room(n, constants):
    """kernels/solve_lines.cuh: numbers of a warp, two squares and a right-hand side."""
    return 2 * constants["LINES"] * (constants["LINES"] + 1) + n


def solve_bytes(dtype, n, constants):
    rows = min(n, constants["DEEP"]) * leading(constants["NB"], dtype)
    return (n * leading(constants["WIDTH"], dtype) + rows) * dtype.itemsize + 8 * n


# Columns that a warp takes at once (kernels/qr_panels.cuh)
STRIP = {"s": 32, "d": 16, "c": 32, "z": 8}


def panel_bytes(letter, constants, rows):
    """kernels/qr_panels.cuh: `rows` of a panel, and of double precision the warps' products."""
    size, past = {"s": (4, 4), "d": (8, 4), "c": (8, 4), "z": (16, 2)}[letter]
    panel, across = constants["NB"], STRIP[letter] + 4 if letter in "dz" else 0
    return size * (rows * (panel + past) + constants["WARPS"] * panel * across)


def left_bytes(letter, constants, rows):
    """kernels/geqrf_left.cu: all `rows` of a panel, in eights, and the parts of W."""
    return strip_bytes(letter, constants | {"COLUMNS": constants["NB"]}, rows)


def strip_bytes(letter, constants, rows):
    """kernels/qr_strips.cuh: all `rows` of a strip, in eights, and the parts of W."""
    size, past = {"s": (4, 4), "d": (8, 2), "c": (8, 2), "z": (16, 1)}[letter]
    columns = constants["COLUMNS"]
    parts = (constants["WARPS"] + 1) * constants["NB"] * columns
    return size * (-(-rows // 8) * 8 * (columns + past) + parts)


def qr_bytes(dtype, columns, constants):
    """kernels/qr_shared.cuh: columns, in eights, of N rows; of complex128 one row more."""
    return (constants["N"] + dtype.itemsize // 16) * dtype.itemsize * (-(-columns // 8) * 8)


SIDES_OF_GELS = 4  # right-hand sides up to which kernels/gels_small.cu solves


def gels_room(constants, columns, sides):
    """kernels/gels_small.cu: numbers of a team, R and B."""
    return columns * (constants["N"] + 1) + sides * constants["N"]


def teams_of(constants):
    """kernels/teams.cuh: teams of a block, whole ones of a warp, or one of all warps."""
    return constants["WARPS"] * (32 // (constants["LANES"] * constants.get("GROUPS", 1))) or 1


def gels_bytes(dtype, constants, room):
    """The same of a block whose teams have `room` numbers each."""
    return teams_of(constants) * room * dtype.itemsize


def passing_numbers(constants, rows):
    """kernels/passing_columns.cuh: NB columns of so many rows, and tau."""
    return (rows + 1) * (constants["NB"] + 1)


def passing_bytes(dtype, constants, rows):
    """The same of a block: one or two panels to each team."""
    v = constants
    panels = 32 * v["WARPS"] // v["LANES"] * (2 if v["N"] > v["NB"] else 1)
    return panels * passing_numbers(v, rows) * dtype.itemsize


def small_q_numbers(dtype, constants, count):
    """kernels/small_reflectors.cuh: V of a team by columns, and tau."""
    few = 16 // dtype.itemsize
    return count * odd_packs(constants["N"], few) + -(-count // few) * few


def small_q_bytes(dtype, constants, count):
    """The same of a block of kernels/ormqr_small.cu."""
    return (32 * constants["WARPS"] // constants["LANES"] * dtype.itemsize
            * small_q_numbers(dtype, constants, count))


def triangle_bytes(kernel, letter, n, constants):
    """kernels/triangular.cuh: the tiles of L that all need, and what the warps move."""
    v, size = constants, TYPES[letter].dtype.itemsize
    tensors = letter in "dz" or kernel == "trsm_split"
    block = v["R"] * (8 + 16 // size if tensors else 8)
    ring = v["STAGES"] * v["DEEP"] * (v["N"] * 8 + v["WARPS"] * block)
    if kernel == "trmm_block":
        return size * max(ring, v["WARPS"] * block)
    tiles = -(-min(n, v["N"]) // 8)
    return size * (tiles * (tiles + 1) // 2 * 64 + (ring if n > v["N"] else v["WARPS"] * block))


def inverse_bytes(letter, constants):
    """kernels/inverse_strips.cuh: the factors."""
    size, N = TYPES[letter].dtype.itemsize, constants["N"]
    gap = 0 if constants.get("TIGHT") else 1 if letter == "z" else 0 if N % 16 else 8
    return size * N * (N + gap)


def small_triangle_bytes(letter, constants, staged):
    """kernels/trsm_small.cu: L of each team, and its columns of X if `staged`."""
    v, size = constants, TYPES[letter].dtype.itemsize
    strip = -(-v["LANES"] * v["C"] * (v["N"] + 1) * size // 16) * 16
    return 32 * v["WARPS"] // v["LANES"] * (small_square_bytes(letter, v) + strip * staged)


def small_square_bytes(letter, constants):
    """kernels/small_columns.cuh: a triangle or square of N columns, and a pack."""
    rows, size = constants["N"], TYPES[letter].dtype.itemsize
    return size * rows * odd_packs(rows, 16 // size) + 16


def odd_packs(numbers, pack):
    """Room for so many numbers: an odd number of packs."""
    return numbers if numbers // pack % 2 else numbers + pack


def dealt(threads, columns, multiple, room, most):
    """Lanes of a team where members' columns are dealt to a block's lanes (kernels/orgqr_small.cu,
    dealt_columns.cuh): as many as the columns ask for, a `multiple`, or more, so that all
    teams, of `room` bytes each, have room in `most`."""
    lanes = max(columns, -(-threads // (most // max(room, 1))), 1)
    return min(threads, -(-lanes // multiple) * multiple)


def pitch(letter, n, along_k, split=False):
    """The numbers that kernels/product_tiles.cuh gives a line of n."""
    size = TYPES[letter].dtype.itemsize
    if split and letter == "s" and not along_k:
        return -(-(n - 8) // 32) * 32 + 8
    if letter in "shb" or letter == "c" and not split:
        return (-(-n * size // 16) | 1) * 16 // size
    line, past = 128 // size, 2 if letter == "z" and not along_k else 4
    return -(-(n - past) // line) * line + past


def product_bytes(letter, constants, half=False, split=False):
    """kernels/products.cuh: for each team STAGES slices of A and of B, which may be the same; or
    its sums on their way to memory, 16 rows a warp."""
    v, t, border = constants, TYPES[letter], constants.get("BORDER", 0)
    deep, sums = v["BK"], TYPES[t.sums].dtype.itemsize
    team = v["BM"] * v["BN"] // (v["TM"] * v["TN"])

    def slice_of(rows):
        return max(rows * pitch(letter, deep, True, split),
                   deep * pitch(letter, rows, False, split))

    slices = slice_of(v["BM"] + border) + (
        0 if half and v["RESIDENT"] else slice_of(v["BN"] + border))
    return v["WARPS"] // team * max(v["STAGES"] * slices * t.dtype.itemsize,
                                    team * 16 * (v["TN"] + (2 if letter in "dz" else 4)) * sums)


def line_bytes(letter, constants, m, n, k):
    """kernels/line_products.cuh: of a team, slices of A and B, each a line with what of 16 bytes is
    before it and after, of B with what is read past its last row; then in their place rows of
    C."""
    v, size = constants, TYPES[letter].dtype.itemsize
    pack, deep, whole = 16 // size, v["DEEP"], v["RESIDENT"]
    rows, out = (min(m, 16 * tiles * v["DOWN"]) for tiles in (v["RM"], v["RM"] if whole else 1))
    pitch = row_pitch(v, k, 4) if whole else slice_pitch(pack, deep, k)
    of_b = row_pitch(v, n, 32 // size)
    stages = min(v["STAGES"], -(-k // deep))
    of_b = min(k, deep) * of_b + max(0, 8 * v["RN"] * v["ACROSS"] - of_b)
    slices = (1 if whole else stages) * line_of(pack, rows * pitch) + stages * line_of(pack, of_b)
    return size * max(slices, line_of(pack, out * row_pitch(v, n, 4)))


def syrk_bytes(letter, constants, n, k):
    """kernels/syrk_lines.cu: of a team, A as a line or slices of it, then in their place rows of
    C."""
    v, size = constants, TYPES[letter].dtype.itemsize
    pack, deep = 16 // size, v["DEEP"]
    slices = line_of(pack, n * row_pitch(v, k, 4)) if v["STAGES"] == 1 else (
        min(v["STAGES"], -(-k // deep)) * line_of(pack, n * slice_pitch(pack, deep, k)))
    return size * max(slices, line_of(pack, row_pitch(v, n, 4)))


def row_pitch(constants, n, unit):
    """kernels/lines.cuh: from a row of n to the next."""
    return (-(-n // unit) | 1) * unit if constants.get("PADDED") else n


def line_of(pack, count):
    """The room of kernels/lines.cuh, for a line of so many numbers wherever it begins."""
    return (count + 2 * pack - 2) // pack * pack


def slice_pitch(pack, deep, k):
    """kernels/lines.cuh: from a row of a slice to the next."""
    return deep + pack - 1 + (k - deep - pack + 1) % pack


def tiled_bytes(letter, constants):
    """kernels/gemm_tiled.cu: STAGES slices of A and of B, of double precision by k or by rows."""
    v, size = constants, TYPES[letter].dtype.itemsize

    def slice_of(rows):
        by_k = v["BK"] * (rows + (32 if letter in "dz" else 16) // size)
        return max(by_k, rows * (v["BK"] + 4)) if letter in "dz" else by_k

    return v["STAGES"] * (slice_of(v["BM"]) + slice_of(v["BN"])) * size


def svd_column(letter, vectors, constants):
    """kernels/svd.cuh: numbers of a pack, and from one column to the next."""
    v, line = constants, 16 // TYPES[letter].dtype.itemsize
    lanes, long = v["LANES"], v["LANES"] * v["ROWS"] * (1 + vectors)
    pack = line if v["ROWS"] % line == 0 else 2 - v["ROWS"] % 2
    if not v.get("SPREAD") or lanes >= 8 * line // pack:
        return pack, long + line
    even = max(1, (lanes & -lanes) // (v["WIDTH"] & -v["WIDTH"]))
    return pack, (-(-long // (pack * even)) | 1) * even * pack


def svd_room(letter, n, vectors, constants):
    """kernels/svd.cuh: numbers of a member's columns, and bytes of a block."""
    v, t = constants, TYPES[letter]
    staying = v.get("STAY") and v["LANES"] * v["GROUPS"] > 32
    columns = 2 * v["WIDTH"] * (v["GROUPS"] if staying else -(-n // (2 * v["WIDTH"])))
    size, (_, long) = t.dtype.itemsize, svd_column(letter, vectors, v)
    rest = -(-(columns * (2 * t.real.itemsize + 4) + v["WARPS"] * t.real.itemsize) // 16) * 16
    apart = rest + columns * long * size * v["SHARED"]
    if v.get("TILED"):  # products, K and turns of each warp's pairs (kernels/svd_tiles.cuh)
        apart += -(-(2 * 16 * 17 * size + 8 * (2 * t.real.itemsize + size)) // 16) * 16 * v["WARPS"]
    if v.get("SPREAD") and v["SHARED"]:
        apart += (v["GROUPS"] * v["WIDTH"] * long * size - apart) % 128
    return columns * long, teams_of(v) * apart


def sytrd_bytes(letter, n, constants):
    """kernels/sytrd_block.cu: the matrix, a panel's v and w, parts of products and sums."""
    v, t = constants, TYPES[letter]
    numbers = (n * (n | 1) + 2 * n * v["NB"] + 32 * max(v["WARPS"], -(-n // 32))
               + 2 * v["NB"] + 1 + v["WARPS"])
    return numbers * t.dtype.itemsize + v["WARPS"] * t.real.itemsize


def sytrd_cluster_bytes(letter, n, constants):
    """kernels/sytrd_cluster.cu: barriers, two products of A and of a panel, its v and w, sums."""
    v, t = constants, TYPES[letter]
    packs = 2 * (-(-n * t.dtype.itemsize // 16) + 2 * v["NB"])
    return (16 + 16 * packs + (2 * n * v["NB"] + 1 + v["WARPS"]) * t.dtype.itemsize
            + (v["WARPS"] + 1) * t.real.itemsize)


LEAF = 32  # rows of a leaf at most (kernels/stedc_leaf.cu)


def leaf_bytes(letter, constants):
    """kernels/stedc_leaf.cu: a leaf's vectors and its elements for each warp."""
    return constants["WARPS"] * LEAF * (LEAF + 3) * TYPES[letter].real.itemsize


def merge_bytes(letter, m):
    """kernels/stedc_merge.cu: seven numbers and eight indices for each row of a part."""
    return m * (7 * TYPES[letter].real.itemsize + 8 * 4)


def forms_q(letter, constants):
    """kernels/lasr_rows.cu: whether a column of Q fits the registers of a thread."""
    v, most = constants, 512 if letter in "sd" else 256
    return v["EACH"] == 1 and v["ROWS"] % 8 == 0 and (
        v["ROWS"] * TYPES[letter].dtype.itemsize <= most)


def rotation_bytes(letter, n, constants):
    """kernels/lasr_rows.cu: ROWS rows, and twice the rotations of WAVE sweeps."""
    rows, wave, t = constants["ROWS"] | 1, constants["WAVE"], TYPES[letter]
    return (-(-n * rows // 16) * 16 * t.dtype.itemsize
            + 2 * wave * (n + 4 * wave) * 2 * t.real.itemsize)
