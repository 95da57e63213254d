"""What can be tuned: the constants of every kernel, and which of them fit a GPU.

A Space is searched in stages, the most important first: a stage lists changes to the best constants
so far, which lose what is optional and in the stage where a change does not say it; every constant
is in some stage. `fits` is the one predicate of what may be compiled and launched: it says what the
kernel's source asserts, that a thread's part of the matrix leaves registers for the work, and that
the shared memory of a block is there. A new kernel is a function for its stages, one for what fits,
and a line in SPACES.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product

import numpy as np

from ._types import TYPES
from .batched._block import (
    SIDES_OF_GELS,
    above_bytes,
    cholesky_bytes,
    gels_bytes,
    gels_room,
    inverse_bytes,
    leaf_bytes,
    left_bytes,
    line_bytes,
    line_room,
    lu_bytes,
    merge_bytes,
    panel_bytes,
    passing_bytes,
    posv_bytes,
    potrs_bytes,
    product_bytes,
    qr_bytes,
    rotation_bytes,
    shared_bytes,
    small_q_bytes,
    small_q_numbers,
    small_square_bytes,
    small_triangle_bytes,
    solve_bytes,
    square_bytes,
    strip_bytes,
    svd_room,
    syrk_bytes,
    sytrd_bytes,
    sytrd_cluster_bytes,
    teams_of,
    tiled_bytes,
    triangle_bytes,
    upper_bytes,
)
from .large._bytes import apply_bytes, columns_bytes, moved_bytes, reflectors_bytes, wide_bytes
from .large._bytes import panel_bytes as cluster_bytes

# Of lanes.cuh, products.cuh, svd.cuh and cholesky_columns.cuh, 0 unless given; and what only the
# launch is told, 1 unless given
OPTIONAL = {"ONE_LINE", "BORDER", "SPREAD", "STAY", "TIGHT", "TILED", "ADJACENT", "PADDED",
            "BULK", "STAGED", "ODD_ROWS", "multiple"}
# 0 or 1; every other constant is at least 1
FLAGS = ("RESIDENT", "SHARED", "SPREAD", "STAY", "TIGHT", "AHEAD", "KEPT", "TWOFOLD", "PADDED",
         "BULK", "ODD_ROWS")
SINCE = {"BULK": 90}  # of these the compute capability that GPUs must have
MOST = 1024  # the largest order of the kernels that give a block to a matrix
BY_DEFAULT = 48 * 1024  # bytes of shared memory that a block has without asking
PART = 160  # words of 4 bytes of a matrix in the registers of a thread, which has 255
LARGE_PART = 180  # where a little of it may be spilled
WHOLE_PART = 224  # where there is little else
SIDES_PART = 84  # where it has four right-hand sides at a time
LANES = (1, 2, 4, 8, 16, 32)
WARPS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Gpu:
    """What decides what runs well on a device: name, CUDA version of the driver, compute
    capability (90: Hopper), bytes of shared memory that a block can have."""

    name: str
    driver: int
    capability: int
    shared: int


HOPPER = Gpu("NVIDIA H200", 13000, 90, 232448)  # on which the table that ships was measured


@dataclass(frozen=True)
class Space:
    """One kernel's. `stages(letter, n)`; `fits(letter, n, constants, gpu)`; the routine that it is
    timed in; orders that are tuned beside those of the rows there are. `optional`: where it has no
    row the routine goes on to the next kernel or to NVIDIA's library, which is timed too; not at
    orders to which it is `needed`.
    `vendor`: where these are faster its row says so beside the constants, which serve what they
    cannot do. `compiled`: there is such a kernel; else the host goes by the constants."""

    routine: str
    stages: Callable
    fits: Callable
    orders: tuple = ()
    optional: bool = False
    vendor: bool = False
    compiled: bool = True
    letters: str = "sdcz"
    smallest: int = 1  # orders that the routine gives it
    largest: int = MOST
    needed: int = 0

    def may_leave(self, n):
        """Whether the routine has another way for members of this order."""
        return self.optional and n > self.needed


def fits(kernel, letter, n, values, gpu):
    """True if `kernel` can run with these constants on matrices of order n."""
    if letter not in SPACES[kernel].letters or set(values) - OPTIONAL != _names(kernel):
        return False
    return (all(type(v) is int and (v in (0, 1) if k in FLAGS else 1 <= v <= 4096)
                for k, v in values.items())
            and bool(SPACES[kernel].fits(letter, n, values, gpu)))


def nearest(kernel, letter, n, values, gpu):
    """Of the constants that fit those with the most in common with `values`, or None. There may be
    hundreds of thousands: how many each has in common is found first, then what fits."""
    stages, later, common = SPACES[kernel].stages(letter, n), set(), []
    for stage in reversed(stages):  # a later stage's choice stands
        common.insert(0, [sum(values.get(k) == x for k, x in change.items() if k not in later)
                          for change in stage])
        later |= {k for change in stage for k in change}
    sums = reduce(np.add.outer, map(np.array, common))
    for place in np.argsort(-sums.ravel(), kind="stable"):
        at = np.unravel_index(place, sums.shape)
        found = {k: v for i, stage in zip(at, stages) for k, v in stage[i].items()}
        if fits(kernel, letter, n, found, gpu):
            return found
    return None


@cache
def _names(kernel):
    """The constants of a kernel that are not optional."""
    letter = SPACES[kernel].letters[0]
    every = {k for stage in SPACES[kernel].stages(letter, 4) for change in stage for k in change}
    return every - OPTIONAL


def words(letter):
    """4-byte registers to a number."""
    return TYPES[letter].dtype.itemsize // 4


def options(**choices):
    """Every combination of the choices, as changes."""
    return [dict(zip(choices, values)) for values in product(*choices.values())]


def power_of_two(x):
    return x & (x - 1) == 0


# -- lanes.cuh: a team of LR x LC lanes to a matrix


def team_stages(letter, n):
    """The teams at most twice as wide as high with a few elements a lane, and those with whole rows
    by shared memory, if n fills them; then the warps of a block, and the blocks for which registers
    are rationed."""
    N = next((size for size in (4, 8, 12, 16, 24, 32) if n <= size), 32)
    teams = [v for v in options(N=(N,), LR=LANES, LC=LANES, CV=(4, 2, 1))
             if v["LC"] <= 2 * v["LR"] and 2 <= N * N // (v["LR"] * v["LC"]) <= 32]
    rations = [(2, 1), (1, 1), (4, 1), (8, 1), (2, 8), (2, 10), (2, 12), (2, 16), (4, 16), (1, 16),
               (1, 20), (2, 5), (4, 4)]
    if n == N:
        pack = 4 // min(words(letter), 4)
        teams += [dict(N=N, LR=r, LC=1, CV=pack, STAGED=1) for r in LANES if r <= N]
    return teams, [dict(WARPS=w, BLOCKS=b) for w, b in rations]


def lu_team_stages(letter, n):
    """STAGED in both ways."""
    teams, rations = team_stages(letter, n)
    return teams + [v | {"STAGED": 2} for v in teams if "STAGED" in v and v["LR"] > 1], rations


def has_tiles(letter, v):
    """TILES of lanes.cuh: a warp to a member (tiles.cuh)."""
    return (v["LR"], v["LC"], v["CV"]) == (8, 4, 1 if letter == "z" else 2)


def team_fits(letter, n, v, gpu, most=PART, ways=1):
    """`ways`: the largest STAGED."""
    size, N, LR, LC, CV = words(letter), v["N"], v["LR"], v["LC"], v["CV"]
    part = -(-N // LR) * (N // LC) * size
    tiles = has_tiles(letter, v)  # in shared memory
    members, line, staged = 32 // (LR * LC) * v["WARPS"], v.get("ONE_LINE", 0), v.get("STAGED", 0)
    shared = v["WARPS"] * N * (4 * N * size + 16) * tiles + bool(line) * (
        4 * size * N * (members * N + -N % LR) + 16) + bool(staged) * 4 * size * (
        members * N * N + 32 * CV * v["WARPS"] + 2 * (members + v["WARPS"]) * (N + 8 // size))
    return (n <= N and N % (LC * CV) == 0
            and (N % LR == 0 if 32 % (LR * LC) == 0 else LC == 1 and LR <= 16)
            and 4 * size * CV <= 16 and part <= most and 32 * v["WARPS"] <= 1024
            and part * 32 * v["WARPS"] * v["BLOCKS"] <= 49152
            and line <= 2 and staged <= ways and (not staged or LC == 1) and shared <= BY_DEFAULT)


def lu_team_fits(letter, n, v, gpu):
    """A lane alone has nobody to tell."""
    return team_fits(letter, n, v, gpu, ways=2 if v["LR"] > 1 else 1)


def team_solve_fits(letter, n, v, gpu):
    """A solve asks for little beside the factors."""
    return team_fits(letter, n, v, gpu, 200)


def cholesky_team_stages(letter, n):
    """Past 32 a warp with the tiles of the triangle."""
    if n <= 32:
        return team_stages(letter, n)
    N = min(-(-n // 8) * 8, 96)
    return ([dict(N=N, LR=8, LC=4, CV=1 if letter == "z" else 2)],
            [dict(WARPS=w, BLOCKS=b // w) for w in (1, 2, 4) for b in (8, 6, 10, 12, 14, 16)
             if b % w == 0])


def cholesky_team_fits(sides):
    """`sides`: the right-hand sides of a member that has more than 32 rows, and no others have N
    above 32 then: they may have more."""
    def fits(letter, n, v, gpu):
        size, N = words(letter), v["N"]
        if N <= 32:
            return team_fits(letter, n, v, gpu)
        part = N // 8 * (N // 8 + 1) * size  # of which the first column of tiles is elsewhere
        scratch = v["WARPS"] * (4 * size * (N * ((12 if letter == "z" else 8) + sides) + 144)
                                + 16 * (N // 2 + 16))
        return (32 * sides < n <= N <= 96 and N % 8 == 0 and part <= LARGE_PART
                and v.get("ONE_LINE", 0) <= 1 and "STAGED" not in v
                and has_tiles(letter, v) and 32 * v["WARPS"] <= 1024
                and (part + 24) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
                and scratch <= BY_DEFAULT and scratch + upper_bytes(letter, v) <= gpu.shared)
    return fits


# -- lu_block.cuh, lu_solve.cuh: a block to a matrix, or to WIDTH of its right-hand sides


def lu_stages(letter, n):
    return (options(NB=(16, 8, 32), RESIDENT=(1,), CHUNK=(64,))
            + options(NB=(16, 8, 32), RESIDENT=(0,), CHUNK=(128, 256)),
            options(WARPS=WARPS, ROWS=(1, 2, 4)),
            [dict(TM=m, TN=n, UNROLL=u) for m, n in ((16, 16), (32, 16), (32, 32))
             for u in (1, 8, 16)],
            options(BLOCKS=(1, 2, 3, 4)))


def lu_fits(letter, n, v, gpu):
    dtype = TYPES[letter].dtype
    return (32 * v["WARPS"] * v["ROWS"] >= n and v["WARPS"] <= 32 and v["UNROLL"] <= v["NB"]
            and v["NB"] * v["ROWS"] * words(letter) <= PART
            and v["TM"] * v["TN"] // 32 * words(letter) <= PART
            and lu_bytes(dtype, n, n, v) + 4096 <= gpu.shared)


# -- lu_shared.cuh, lu_windows.cuh: a block to a matrix in shared memory, all of it or a window of
# columns, PANEL of its warps for the panels


def shared_stages(letter, n):
    """Panels by more warps leave more registers, tiles that are narrower too: which is best depends
    on both, where a block has the whole matrix."""
    N = -(-n // 8) * 8
    whole = ((2, 1), (1, 1), (3, 1), (4, 1), (5, 2), (6, 2), (8, 2), (8, 4), (4, 2), (12, 4))
    windows = options(WINDOW=(128, 64, 96, 160, 32), WARPS=(16, 12, 8), PANEL=(4, 5, 6, 3, 8),
                      TN=(32,))
    return ([dict(N=N, WINDOW=N, WARPS=w, PANEL=p, TN=t) for w, p in whole for t in (32, 16, 8)]
            + [dict(N=N) | v for v in windows if v["WINDOW"] < N],
            options(TN=(32, 16, 8)), options(BLOCKS=(1, 2, 4, 6)))


def shared_fits(beside):
    def fit(letter, n, v, gpu):
        size, rows = words(letter), -(-v["N"] // (32 * v["PANEL"]))
        return (n <= v["N"] and v["N"] % 8 == 0 and 8 * rows * size <= PART
                and (v["WINDOW"] == v["N"] or (v["WINDOW"] < v["N"] and v["WINDOW"] % 32 == 0))
                and v["TN"] in (8, 16, 32) and v["PANEL"] <= v["WARPS"] <= 32
                and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
                and shared_bytes(TYPES[letter].dtype, n, v, beside) <= gpu.shared)
    return fit


def substitution_stages(letter, n):
    return (options(WARPS=WARPS[:4], NB=(32,)),
            options(DEEP=(128, 64, 32), WIDTH=(8, 4, 16, 32, 64)),
            [dict(TM=m, TN=n) for m, n in ((16, 8), (16, 16), (32, 16), (32, 32))],
            options(BLOCKS=(1, 2, 4)))


def substitution_fits(letter, n, v, gpu):
    return (v["NB"] == 32 and v["WARPS"] <= 32 and v["TM"] * v["TN"] // 32 * words(letter) <= PART
            and v["TM"] % 8 == 0 and v["TN"] % 8 == 0
            and solve_bytes(TYPES[letter].dtype, n, v) + 2048 <= gpu.shared)


# -- solve_lines.cuh: a warp to a right-hand side


def line_solve_stages(letter, n):
    """UPTO: the right-hand sides up to which it is used; what is timed has one."""
    return options(LINES=(16, 8, 32), CHUNKS=(1, 2, 4), WARPS=(1, 4)), options(
        UPTO=(1,), BLOCKS=(8, 1, 4, 6, 10, 12, 16, 20, 24))


def line_solve_fits(letter, n, v, gpu):
    return (v["LINES"] in (8, 16, 32) and v["CHUNKS"] * v["LINES"] * words(letter) <= 128
            and v["LINES"] * words(letter) <= 64
            and 32 * v["WARPS"] * v["BLOCKS"] <= 2048 and v["WARPS"] <= 32
            and v["WARPS"] * line_room(n, v) * TYPES[letter].dtype.itemsize <= gpu.shared)


# -- warp_solve.cuh: a warp to a matrix and its right-hand sides


def warp_solve_stages(letter, n):
    """UPTO: the right-hand sides up to which it is used; what is timed has one."""
    return (options(N=(-(-n // 32) * 32,), WARPS=(1,), UPTO=(1,)),
            options(BLOCKS=(1, 8, 12, 16, 24, 32)))


def warp_solve_fits(letter, n, v, gpu):
    rows = v["N"] // 32 * words(letter)
    return (n <= v["N"] and v["N"] % 32 == 0 and v["WARPS"] == 1 and 9 * rows <= PART
            and (10 * rows + 24) * 32 * v["BLOCKS"] <= 65536 and v["BLOCKS"] <= 32
            and square_bytes(TYPES[letter].dtype, n) <= gpu.shared)


# -- cholesky_block.cuh: a block to a matrix, ROWS tile rows of it to a warp


def cholesky_stages(letter, n):
    """The whole matrix as one panel, shared by few warps or many; panels of a few tile columns."""
    each = {w: -(-n // (8 * w)) for w in range(1, 17)}
    return ([dict(COLUMNS=w * rows, ROWS=rows, WARPS=w) for w, rows in each.items()]
            + [dict(COLUMNS=c, ROWS=each[w], WARPS=w)
               for c in (6, 4, 3, 2, 1) for w in (4, 8, 12, 13, 16)],
            options(BLOCKS=(1, 2, 3, 4, 5, 6, 8, 10, 12)))


def cholesky_fits(letter, n, v, gpu):
    """Tensor cores multiply in double precision only where a thread has 64 registers."""
    threads, part = 32 * v["WARPS"], 2 * v["ROWS"] * words(letter)
    if v["ROWS"] * v["WARPS"] > v["COLUMNS"]:
        part *= 1 + v["COLUMNS"]
    return (n <= 8 * v["ROWS"] * v["WARPS"] and threads <= 512 and part <= PART
            and max(part + 40, 64 if letter in "dz" else 0) * threads * v["BLOCKS"] <= 65536
            and cholesky_bytes(TYPES[letter].dtype, n, v) + 4096 <= gpu.shared)


def cholesky_columns_stages(letter, n):
    """potrf_columns, posv_columns: rows as many as fill the tiles."""
    odd = ({"ODD_ROWS": 1},) if n % 2 and letter != "z" else ()
    return (options(N=(-(-n // 8) * 8,), WARPS=(4, 3, 5, 6, 8, 2), AHEAD=(1, 0)),
            ({}, *odd), options(BLOCKS=(2, 1, 3, 4, 5, 6)))


def cholesky_columns_fit(sides):
    def fits(letter, n, v, gpu):
        size, rows = words(letter), v["N"] // 8
        part = 2 * size * sum(range(rows, 0, -v["WARPS"]))  # of a warp's columns
        need = max(part + 24, 64 if letter in "dz" else 0)  # as cholesky_fits has it
        panels = 4 * size * (27 if letter == "z" else 18) * v["N"] + 64
        panels += sides * v["N"] * (TYPES[letter].dtype.itemsize + TYPES[letter].real.itemsize)
        return (v["N"] == 8 * -(-n // 8) and v["WARPS"] <= rows and need <= PART + 40
                and need * 32 * v["WARPS"] * v["BLOCKS"] <= 65536 and panels <= BY_DEFAULT
                and panels + above_bytes(TYPES[letter].dtype, v) <= gpu.shared)
    return fits


def positive_system_stages(letter, n):
    """posv_block: where the whole matrix is one panel."""
    shapes, blocks = cholesky_stages(letter, n)
    return [v for v in shapes if v["ROWS"] * v["WARPS"] <= v["COLUMNS"]], blocks


def positive_system_fits(letter, n, v, gpu):
    return (v["ROWS"] * v["WARPS"] <= v["COLUMNS"] and cholesky_fits(letter, n, v, gpu)
            and posv_bytes(TYPES[letter].dtype, n) + 4096 <= gpu.shared)


def cholesky_panels_stages(letter, n):
    return (options(NB=(160, 128, 96, 64)),)


def cholesky_panels_fit(letter, n, v, gpu):
    return v["NB"] % 8 == 0


def positive_stages(letter, n):
    """UPTO: the right-hand sides up to which it is used; what is timed has one."""
    return options(WARPS=(2, 1, 4, 8)), options(BLOCKS=(1, 2, 4, 8), UPTO=(32,))


def positive_fits(letter, n, v, gpu):
    return (v["WARPS"] <= 16 and 80 * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
            and potrs_bytes(TYPES[letter].dtype, n) + 1024 <= gpu.shared)


# -- triangular_small.cuh: a lane to C columns; triangular.cuh: a strip of R columns and N rows to a
# warp


def lane_stages(letter, n):
    heights = [N for N in (4, 8, 12, 16, 24, 32, 40, 48, 64) if n <= N][:2]
    return ([dict(N=N, LANES=lanes, C=c) for N in heights for lanes in LANES for c in (1, 2)
             if N <= 2 * lanes * c and lanes * c <= 2 * N],
            options(WARPS=(2, 1, 4, 8)), options(BLOCKS=(1, 2, 4, 6, 8, 12, 16)))


def lane_fits(letter, n, v, gpu):
    """A lane keeps little beside its columns."""
    part = v["N"] * v["C"] * words(letter)
    return (n <= v["N"] <= 96 and v["N"] % (4 // min(words(letter), 4)) == 0
            and part <= PART + 32
            and (v["LANES"] in LANES or v["LANES"] == 32 * v["WARPS"]) and v["WARPS"] <= 32
            and part * 32 * v["WARPS"] * v["BLOCKS"] <= 49152
            and small_triangle_bytes(letter, v, True) <= gpu.shared)


def dealt_stages(letter, n, most=1):
    """Up to `most` columns to a lane, as many warps as leave few lanes over, and lanes of a team in
    fours, eights, ..."""
    heights = sorted({-(-n // 4) * 4, -(-n // 8) * 8})

    def over(columns, warps):
        return 32 * warps % -(-n // columns) / warps

    shapes = [dict(N=N, WARPS=w) | ({"C": c} if most > 1 else {})
              for N in heights for c in range(1, most + 1)
              for w in sorted(range(1, 17), key=lambda w: (round(over(c, w) / 4), w))[:4]]
    return shapes, options(multiple=(1, 4, 8, 16, 32)), options(BLOCKS=(1, 2, 3, 4, 6, 8, 12, 16))


def dealt_fits(letter, n, v, most, room, gpu):
    """`room`: the bytes of a team."""
    part = v["N"] * v.get("C", 1) * words(letter)
    return (n <= v["N"] <= most and v["N"] % 4 == 0 and part <= PART + 32 and v["WARPS"] <= 32
            and (part + 24) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536 and room <= gpu.shared)


def inverse_stages(letter, n):
    return dealt_stages(letter, n, 2)


def inverse_fits(letter, n, v, gpu):
    return 32 * v["WARPS"] * v["C"] >= v["N"] and dealt_fits(
        letter, n, v, 96, small_square_bytes(letter, v), gpu)


def q_stages(letter, n):
    """A lane to a column, or several: warps for all columns at once, twice that, or fewer."""
    shapes, *more = dealt_stages(letter, n)
    N = -(-n // 4) * 4
    shared = [dict(N=N, PARTS=parts, WARPS=warps) for parts in (4, 8, 2, 16)
              for all_at_once in [-(-n * parts // 32)]
              for warps in sorted({2 * all_at_once, *(-(-all_at_once // t) for t in (1, 2, 3))})]
    return [v | {"PARTS": 1} for v in shapes] + shared, *more


def q_fits(letter, n, v, gpu):
    dtype, N, parts, warps = TYPES[letter].dtype, v["N"], v["PARTS"], v["WARPS"]
    room = small_q_numbers(dtype, v, n) * dtype.itemsize
    if parts == 1:
        return dealt_fits(letter, n, v, 128, room, gpu)
    few = 16 // dtype.itemsize
    part = 2 * -(-N // (few * parts)) * 4  # of a column and of v
    return (n <= N <= 256 and N % 4 == 0 and parts in (2, 4, 8, 16) and part <= PART and warps <= 32
            and (part + 24) * 32 * warps * v["BLOCKS"] <= 65536 and room <= gpu.shared)


def inverse_strip_stages(letter, n):
    """A warp to each strip of R columns, or to two of them."""
    N = -(-n // 8) * 8
    return ([dict(N=N, R=r, WARPS=w) for r in (16, 32)
             for w in range(-(-N // r), -(-N // (2 * r)) - 1, -1)],
            options(BLOCKS=(1, 2, 3, 4, 6, 8)), options(GROUP=(4, 2, 1)),
            options(TIGHT=(0, 1)))


def inverse_strip_fits(letter, n, v, gpu):
    part = v["N"] * v["R"] // 32 * words(letter)
    static = v["N"] * (8 + 4 * words(letter)) + 64
    return (n <= v["N"] <= 2 * v["WARPS"] * v["R"] and v["N"] % 8 == 0 and v["WARPS"] <= 32
            and v["R"] in (16, 32) and part <= WHOLE_PART
            and (part + 16) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
            and inverse_bytes(letter, v) + static <= gpu.shared)


def interchange_stages(letter, n):
    return (options(WARPS=WARPS),)


def interchange_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32


def inverse_part_stages(letter, n):
    return options(LINES=(16, 8, 32, 64)), options(WARPS=(8, 4, 2))


def inverse_part_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32


def mirror_stages(letter, n):
    return options(TILE=(16, 8, 32)), options(WARPS=(8, 4, 2))


def mirror_fits(letter, n, v, gpu):
    """A team of threads has a tile, of which some are a block's, or the block has one."""
    numbers, threads = v["TILE"] ** 2, 32 * v["WARPS"]
    room = max(1, threads // numbers) * v["TILE"] * (v["TILE"] + 1) * 4 * words(letter)
    return (v["TILE"] in (8, 16, 32) and v["WARPS"] <= 32 and 0 in (
        threads % numbers, numbers % threads) and room <= 48 * 1024)


def strip_stages(letter, n):
    """Heights of which some are together little more than n."""
    heights = {max(16, -(-n // (8 * parts)) * 8) for parts in range(1, n // 24 + 2)}
    return ([dict(N=N, R=r, RESIDENT=int(n <= N), DEEP=1 if N % 16 else 2)
             for N in sorted(heights, reverse=True) if N <= 128 for r in (16, 32)],
            options(WARPS=(4, 2, 8, 1, 3, 5, 6)), options(BLOCKS=(1, 2, 3, 4, 6, 8)),
            options(DEEP=(2, 1, 4), STAGES=(2, 3, 4)), options(GROUP=(4, 1, 2, 8)))


def strip_fits(kernel):
    def fit(letter, n, v, gpu):
        part = v["N"] * v["R"] // 32 * words(letter)
        static = v["N"] * 2 * 4 * words(letter) + 64
        return (v["N"] % (8 * v["DEEP"]) == 0 and v["N"] <= 128 and v["R"] in (16, 32)
                and v["WARPS"] <= 32 and part <= PART
                and v["STAGES"] >= 2 and (n <= v["N"]) >= v["RESIDENT"]
                and part * 32 * v["WARPS"] * v["BLOCKS"] <= 49152
                and triangle_bytes(kernel, letter, n, v) + static <= gpu.shared)
    return fit


# -- qr.cuh, qr_panels.cuh: a lane to a column; a block to a matrix


def columns_stages(letter, n):
    N = next((size for size in (4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48) if n <= size), 64)
    lanes = next((lanes for lanes in LANES if N <= lanes), 32)
    return ([dict(N=N, LANES=few, KEPT=1)
             for few in sorted({lanes, lanes // 2, -(-N // 2), -(-N // 3)})]
            + [dict(N=N, LANES=few, KEPT=h) for few in (32, 64) for h in (0, 1)],
            [dict(WARPS=w, BLOCKS=b) for w, b in (
                (2, 1), (1, 1), (4, 1), (8, 1), (1, 16), (2, 8), (2, 4), (2, 6))])


def columns_fits(letter, n, v, gpu):
    N, lanes = v["N"], v["LANES"]
    each = -(-N // lanes)
    part = N * words(letter) * each
    return (n <= N <= 64 and N % 4 == 0 and each <= 3
            and (lanes <= 32 or lanes == 64 == 32 * v["WARPS"]) and (v["KEPT"] or lanes >= 32)
            and part <= PART
            and v["WARPS"] <= 32 and part * 32 * v["WARPS"] * v["BLOCKS"] <= 49152)


def least_squares_stages(letter, n):
    """A lane to a column, or to up to three; past 16 rows those of members with fewer columns."""
    N = next((size for size in (4, 8, 12, 16, 20, 24, 28, 32, 40, 48) if n <= size), 64)
    few = [dict(N=N, LANES=-(-n // c), C=c, KEPT=1) for c in (1, 2, 3) if n <= 32 * c]
    return ([dict(N=N, LANES=lanes, C=c, KEPT=1) for lanes in LANES for c in (1, 2)
             if min(N, 16) <= lanes * c < 2 * N] + [dict(N=N, LANES=32, C=2, KEPT=0)] + few,
            [dict(WARPS=w, BLOCKS=b) for w, b in (
                (1, 1), (2, 1), (4, 1), (1, 8), (1, 16), (2, 8), (2, 4))])


def least_squares_fits(letter, n, v, gpu):
    """For LANES C columns at most, and also with fewer lanes and all of what they keep."""
    part, size = v["N"] * max(v["C"], 1 + v["KEPT"]) * words(letter), TYPES[letter].dtype.itemsize
    static = 2 * teams_of(v) * v["N"] * size
    return (n <= v["N"] <= 64 and v["N"] % 4 == 0 and v["LANES"] <= 32 and v["C"] <= 3
            and (v["KEPT"] or v["LANES"] == 32)
            and part <= 256 and v["WARPS"] <= 32
            and part // 2 * 32 * v["WARPS"] * v["BLOCKS"] <= 49152
            and gels_bytes(TYPES[letter].dtype, v, gels_room(v, min(n, v["LANES"] * v["C"]),
                                                             SIDES_OF_GELS)) + static <= gpu.shared)


def warp_qr_stages(letter, n):
    N = -(-n // 8) * 8  # eight rows more where columns would have to change places
    return (options(N=(N, N + 8)[:2 - N // 8 % 2], WARPS=(1,), HEIGHTS=(1, 2), BLOCKS=(6,)),
            options(BLOCKS=(1, 3, 4, 8, 10, 12, 14, 16)), options(HEIGHTS=(3, 4)))


def warp_qr_fits(sides):
    def fits(letter, n, v, gpu):
        dtype = TYPES[letter].dtype
        part = v["N"] * words(letter) // (1 + (dtype.kind == "c"))  # V; of real ones tiles of A
        static = dtype.itemsize * (56 + (3 + sides) * v["N"] + 16 * v["HEIGHTS"])
        return (n <= v["N"] and 8 < v["N"] and v["N"] % 8 == 0 and v["WARPS"] == 1 and part <= 224
                and 32 * (part + 50) * v["BLOCKS"] <= 65536
                and qr_bytes(dtype, v["N"], v) + static + 1024 <= gpu.shared)
    return fits


def passing_part(letter, v, more):
    """Words of a thread: of right-hand sides, four at a time or one, of the column, and `more`."""
    return -(-v["N"] // v["LANES"]) * words(letter) * ((4 if v["UPTO"] > 1 else 1) + 1 + more)


def passing_stages(more, least):
    """Of teams of so many lanes or more. UPTO: the right-hand sides up to which it is used, one
    where four are too many for the registers; what is timed has one."""
    def stages(letter, n):
        whole = max(least, min(32, 1 << (n - 1).bit_length()))
        lanes = [x for x in (whole, whole // 2, whole // 4) if x >= least]
        N = next((size for size in (whole, 48, 64, 80, 96, 128, 160, 192, 224, 256, 288, 384)
                  if n <= size), 512)
        few = passing_part(letter, {"N": N, "LANES": 32, "UPTO": 16}, more) <= SIDES_PART
        return (options(N=(N,), UPTO=(16 if few else 1,), LANES=lanes, NB=(16, 8, 4, 32, 2, 1)),
                options(WARPS=(1, 2, 4)), options(BLOCKS=(1, 8, 12, 16, 24, 32)))
    return stages


def passing_fits(more, least):
    def fits(letter, n, v, gpu):
        part, threads = passing_part(letter, v, more), 32 * v["WARPS"]
        return (n <= v["N"] and v["LANES"] in LANES and v["LANES"] >= least and v["WARPS"] <= 32
                and v["NB"] in LANES and v["NB"] <= v["LANES"]
                and part <= (SIDES_PART if v["UPTO"] > 1 else 128)
                and (part + 24) * threads * v["BLOCKS"] <= 65536
                and passing_bytes(TYPES[letter].dtype, v, n) <= gpu.shared)
    return fits


def small_q_stages(letter, n):
    N = next((size for size in (4, 8, 12, 16, 20, 24, 28, 32, 40, 48) if n <= size), 64)
    whole = min(32, 1 << (N - 1).bit_length())
    return (options(N=(N,), LANES=sorted({whole, max(1, whole // 2), max(1, whole // 4)},
                                         reverse=True)),
            options(WARPS=(1, 2, 4), BLOCKS=(1,)), options(BLOCKS=(1, 4, 8, 12, 16)))


def small_q_fits(letter, n, v, gpu):
    """Also with a quarter of the lanes, for few columns where the row says so."""
    part, dtype = v["N"] * words(letter), TYPES[letter].dtype
    return (n <= v["N"] <= 64 and v["N"] % 4 == 0 and v["LANES"] in LANES and v["WARPS"] <= 32
            and part <= 128 and (part + 24) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
            and small_q_bytes(dtype, v | {"LANES": max(1, v["LANES"] // 4)}, n) <= gpu.shared)


def panel_stages(letter, n):
    return (options(NB=(16, 8, 32), ROWS=(2, 1, 4)), options(WARPS=WARPS),
            options(BLOCKS=(1, 2, 4, 5, 6, 8, 10, 12)))


def reflector_fits(letter, n, v, gpu):
    size, panel, few = 4 * words(letter), v["NB"], min(v["NB"], 16)
    static = size * (panel * (2 * panel + 5) + 2 * few + 3 * v["WARPS"] * few) + 512
    return (panel in (8, 16, 32) and 32 * v["WARPS"] * v["BLOCKS"] <= 2048 and v["WARPS"] <= 32
            and few * v["ROWS"] * words(letter) <= PART
            and panel_bytes(letter, v, n) + MOST * size + static <= gpu.shared)


def panel_fits(letter, n, v, gpu):
    return 32 * v["WARPS"] * v["ROWS"] >= n and reflector_fits(letter, n, v, gpu)


def left_stages(letter, n):
    return (options(NB=(16, 32, 8), ROWS=(2, 1, 3, 4), WARPS=(4, 8, 2, 3, 16)),
            options(BLOCKS=(1, 2, 4, 5, 6, 8)))


def left_fits(letter, n, v, gpu):
    size, panel = 4 * words(letter), v["NB"]
    static = size * (panel * (panel + 6) + 3 * 16 * (v["WARPS"] + 1)) + 512
    return (32 * v["WARPS"] * v["ROWS"] >= n and panel in (8, 16, 32) and 2 <= v["WARPS"] <= 16
            and (panel > 8 or letter in "dz") and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
            and min(panel, 16) * v["ROWS"] * words(letter) <= PART
            and panel**2 // 32 * words(letter) <= PART
            and left_bytes(letter, v, n) + static <= gpu.shared)


def q_strip_stages(letter, n):
    return (options(COLUMNS=(16, 32, 8), NB=(16, 32), WARPS=(4, 8, 2, 16)),
            options(BLOCKS=(1, 2, 3, 4, 6, 8)))


def q_strip_fits(letter, n, v, gpu):
    columns, panel = v["COLUMNS"], v["NB"]
    return (columns in (8, 16, 32) and panel in (16, 32) and (columns > 8 or letter in "dz")
            and (panel == 16 or letter != "z")  # larft_panels has V^H V twice in registers
            and v["WARPS"] <= 16 and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
            and max(columns, 16) * panel // 32 * words(letter) <= PART
            and strip_bytes(letter, v, n) <= gpu.shared)


def t_stages(letter, n):
    return options(NB=(16,)), options(WARPS=WARPS)


def t_fits(letter, n, v, gpu):
    return v["NB"] in (16, 32)[:1 + (letter != "z")] and v["WARPS"] <= 16


def triangle_stages(letter, n):
    return options(COLUMNS=(4, 1, 2, 8)), options(WARPS=WARPS[:4]), options(BLOCKS=(1, 2, 4))


def triangle_fits(letter, n, v, gpu):
    size = 4 * words(letter)
    return v["WARPS"] <= 32 and n * v["COLUMNS"] * size + 33 * 32 * size + 512 <= gpu.shared


# -- svd.cuh: GROUPS of LANES lanes to a matrix


def jacobi_stages(letter, n):
    """A lane may have whole columns where they are short."""
    most = max(n, 4)
    teams = [v for v in options(
        ROWS=sorted({2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, min(most, 20)}), LANES=LANES,
        WIDTH=(4, 2, 1, 3, 5, 6), GROUPS=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16))
        if most <= v["ROWS"] * v["LANES"] < 2 * most
        and v["GROUPS"] <= -(-most // (2 * v["WIDTH"]))]  # pairs of blocks
    in_warps = [v | dict(WARPS=w) for v in (*teams, *staying_teams(most))
                for w in ((1, 4) if v["LANES"] * v["GROUPS"] <= 32
                          else (v["LANES"] * v["GROUPS"] // 32,))]
    return ([*in_warps, *tiled_teams(most)],
            [dict(SHARED=1), dict(SHARED=1, SPREAD=1), dict(SHARED=0)], options(BLOCKS=(1, 2, 4)))


def tiled_teams(n):
    """A warp to each pair of blocks of eight columns, or to two or three, or eight or sixteen."""
    pairs = -(-n // 16)
    warps = {pairs, -(-n // 32), -(-n // 48), *(w for w in (8, 16) if w < pairs)}
    for warps, tiles in product(sorted(warps), (2, 4, 1)):
        yield dict(ROWS=-(-n // 32), LANES=32, WIDTH=8, GROUPS=warps, WARPS=warps, TILED=tiles)


def staying_teams(n):
    """With as few rows to a lane, and groups in whole warps, as hold n columns."""
    for lanes, width in product(LANES, (1, 2, 3, 4, 5)):
        groups = -(-n // (2 * width))
        while lanes * groups > 32 and lanes * groups % 32:
            groups += 1
        yield dict(ROWS=-(-n // lanes), LANES=lanes, WIDTH=width, GROUPS=groups, STAY=1)


def holds(v, n):
    """Whether a team has room for all blocks of n columns."""
    return n <= 2 * v["WIDTH"] * v["GROUPS"]


def jacobi_fits(vectors):
    def fit(letter, n, v, gpu):
        team = v["LANES"] * v["GROUPS"]
        if v.get("TILED"):
            shape = v["LANES"] == 32 and v["WIDTH"] == 8 and v["GROUPS"] == v["WARPS"]
        else:
            part = 2 * v["WIDTH"] * v["ROWS"] * (1 + vectors) * words(letter)
            shape = v["WIDTH"] <= 6 and part <= 200
        return (shape and n <= v["ROWS"] * v["LANES"] and v["LANES"] in LANES and v["WARPS"] <= 16
                and (team <= 32 or team == 32 * v["WARPS"])
                and (not v.get("STAY") or holds(v, n))
                and svd_room(letter, n, vectors, v)[1] + 512 <= gpu.shared)
    return fit


# -- Hermitian matrices: sytrd_rows, sytrd_block, sytrd_cluster, steqr_lane, lasr_rows


def few_rows_stages(letter, n):
    N = next((size for size in (8, 16, 24, 32, 48, 64, 96, 128) if n <= size), 128)
    teams = [dict(N=N, EACH=each, WARPS=w) for each in (2, 1, 3, 4) for w in (1, 2, 3, 4)]
    return teams, options(BLOCKS=(1, 8, 12, 16))


def few_rows_fits(letter, n, v, gpu):
    team = v["N"] // v["EACH"]
    static = 32 * v["WARPS"] // max(team, 1) * (4 * v["N"] + 4 * v["WARPS"]) * 4 * words(letter)
    return (n <= v["N"] and v["N"] % 8 == 0 and v["N"] % v["EACH"] == 0
            and (32 % team == 0 if team <= 32 else team == 32 * v["WARPS"])
            and v["N"] * v["EACH"] * words(letter) <= PART
            and 32 * v["WARPS"] * v["BLOCKS"] <= 2048 and static + 512 <= BY_DEFAULT)


def reduction_stages(letter, n):
    return options(NB=(4, 1, 8)), options(WARPS=WARPS), options(BLOCKS=(1, 2, 4))


def reduction_fits(letter, n, v, gpu):
    return (v["WARPS"] <= 32 and power_of_two(v["WARPS"]) and 2 * v["NB"] * words(letter) <= 64
            and sytrd_bytes(letter, n, v) + 512 <= gpu.shared)


def clustered_reduction_stages(letter, n):
    return options(CLUSTER=(8, 4, 1), NB=(8, 4, 16, 2)), options(WARPS=(16, 8, 32))


def clustered_reduction_fits(letter, n, v, gpu):
    """Clusters are halved at the launch where members are many, as the tuner's are: it could not
    tell that one block is slower where they are few."""
    return (v["WARPS"] <= 32 and v["CLUSTER"] in ((4, 8) if gpu.capability >= 90 else (1,))
            and 4 * v["NB"] * words(letter) <= 64
            and sytrd_cluster_bytes(letter, n, v) + 512 <= gpu.shared)


def ql_stages(letter, n):
    return options(LANES=LANES), options(WARPS=(1,), PARTS=(2, 12, 20, 40))


def ql_fits(letter, n, v, gpu):
    return (v["WARPS"] == 1 and v["LANES"] in LANES and 2 <= v["PARTS"] <= 64
            and 2 * n * v["LANES"] * TYPES[letter].real.itemsize + 512 <= gpu.shared)


def rotation_stages(letter, n):
    return (options(ROWS=(64, 32, 40, 48, 16, 8, 128), EACH=(2, 1, 4), WARPS=(1, 2, 4)),
            options(WAVE=(4, 2, 8)))


def rotation_fits(letter, n, v, gpu):
    return (v["WARPS"] <= 32 and v["ROWS"] % v["EACH"] == 0
            and v["ROWS"] <= 32 * v["WARPS"] * v["EACH"] <= 2 * v["ROWS"] + 32
            and v["EACH"] * v["WAVE"] * words(letter) <= 32
            and rotation_bytes(letter, n, v) + 512 <= gpu.shared)


def leaf_of_tree_stages(letter, n):
    return (options(WARPS=(4, 1, 2, 8)),)


def leaf_of_tree_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32 and leaf_bytes(letter, v) + 512 <= gpu.shared


def merge_stages(letter, n):
    return (options(WARPS=(16, 4, 8, 2, 32)),)


def merge_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32 and merge_bytes(letter, n) + 512 <= gpu.shared


# -- gemm.cuh: a thread, a warp or a block to a tile


def thread_stages(letter, n):
    """As few threads as a member's rows and columns ask for."""
    parts = options(PM=(1, 2, 3, 4, 5, 6), PN=(4, 2, 8, 12, 3, 6, 1))
    return ([v | dict(DOWN=-(-n // v["PM"]), ACROSS=-(-n // v["PN"])) for v in parts],
            options(WARPS=(4, 2, 8)))


def thread_fits(letter, n, v, gpu):
    return (v["PM"] * v["DOWN"] >= n and v["PN"] * v["ACROSS"] >= n and v["WARPS"] <= 32
            and v["PN"] % (4 // words(letter)) == 0 and v["DOWN"] * v["ACROSS"] <= 32
            and v["PM"] * v["PN"] * words(letter) <= 64)


def warp_stages(letter, n):
    return ([dict(TM=m, TN=n) for m, n in ((16, 16), (8, 8), (16, 8), (32, 16), (32, 32))],
            options(DEPTH=(8, 4, 16), WARPS=(4, 1, 2, 8)), options(BLOCKS=(1, 2, 4)))


def warp_fits(letter, n, v, gpu):
    return (v["TM"] % 8 == 0 and v["TN"] % 8 == 0 and v["DEPTH"] % 4 == 0 and v["WARPS"] <= 32
            and v["TM"] * v["TN"] // 32 * words(letter) <= 128)


def _teams():
    """Tiles of a warp, and of a team of warps; of a warp with company."""
    tiles = ((32, 32), (16, 32), (32, 64), (16, 16), (16, 64), (48, 48), (24, 48), (64, 32))
    teams = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (2, 4), (3, 1), (3, 2), (3, 3))
    return [dict(TM=m, TN=n, BM=i * m, BN=j * n, WARPS=i * j * w)
            for m, n in tiles for i, j in teams for w in ((1, 2, 4) if i * j == 1 else (1,))]


def _bordered(teams, n):
    """And those that have a few rows and columns of n beside their tiles."""
    return teams + [v | dict(BORDER=4) for v in teams
                    if max(v["BM"], v["BN"]) < n <= min(v["BM"], v["BN"]) + 4]


def tile_stages(letter, n):
    """All of k in shared memory, or a ring of slices."""
    whole = -(-n // 8) * 8
    slices = options(RESIDENT=(1,), STAGES=(1, 2, 3, 4), BK=(16, 24, 32, 48, 64)) + options(
        RESIDENT=(1,), STAGES=(1,), BK=(whole,)) + options(
        RESIDENT=(0,), STAGES=(2, 3, 4), BK=(16, 32))
    return _bordered(_teams(), n), slices, options(BLOCKS=(1, 2, 3, 4, 5))


def square_stages(letter, n):
    """The same where slices of A are square."""
    return ([v | dict(BK=v["BM"]) for v in _teams()],
            [dict(RESIDENT=1, STAGES=1), dict(RESIDENT=0, STAGES=2), dict(RESIDENT=0, STAGES=3)],
            options(BLOCKS=(1, 2, 3, 4, 5)))


def split_stages(letter, n):
    """The same on the tensor cores."""
    teams = [v for v in tile_stages(letter, n)[0] if v["TM"] % 16 == 0]
    return (teams, *tile_stages(letter, n)[1:])


def tile_fits(symmetric=False, half=False, split=False):
    """`symmetric`: slices of A are square. `half` of C, by square tiles, resident as a whole.
    `split`: single precision on the tensor cores."""
    def fit(letter, n, v, gpu):
        few, sums = 16 // TYPES[letter].dtype.itemsize, TYPES[letter].sums
        team, deep = v["BM"] // v["TM"] * (v["BN"] // v["TN"]), v["BK"]
        border = v.get("BORDER", 0)
        if letter in "sc" and not split:  # 4 x 8 lanes, which may have neighbouring rows
            down, across, step = (4 * few if v["TM"] // 4 % few == 0 else 4), 8, few
        else:
            down, across, step = 16, 16 if letter in "hb" else 8, 16 if letter in "hb" else 8
        return (v["BM"] % v["TM"] == 0 == v["BN"] % v["TN"] and v["TM"] % down == 0
                and v["TN"] % across == 0 and v["BM"] % few == 0 == v["BN"] % few
                and deep % max(step, few) == 0 and (deep == v["BM"] or not symmetric)
                and (v["BM"] == v["BN"] or not half)
                and (v["WARPS"] == team or team == 1) and v["WARPS"] <= 32
                and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
                and v["TM"] * v["TN"] // 32 * words(sums) <= 144
                and (v["STAGES"] >= 2 if not v["RESIDENT"] else n <= deep * v["STAGES"])
                and (n <= v["BM"] or not half or not v["RESIDENT"])
                and (not border or (border % few == 0 and v["RESIDENT"] and not symmetric
                                    and not half and n <= min(v["BM"], v["BN"]) + border))
                and product_bytes(letter, v, half, split) + 512 <= gpu.shared)
    return fit


WARP_TILES = 36  # words of a number, times its tiles of 16 x 8: what its registers hold


def line_stages(letter, n):
    ways = product((1, 2, 3), (1, 2, 3, 4, 5, 6, 7, 8, 10), (1, 2, 3, 4, 5, 6))
    slices = options(DEEP=(16, 8, 32, 48, 64, 80, 96), STAGES=(1, 2, 3), RESIDENT=(1, 0))
    return (line_teams(letter, n, ways), slices, *line_options(letter, n))


def symmetric_line_stages(letter, n):
    """A team owns a member; both operands as a whole, or the right one in slices."""
    ways = ((d, a, -(-n // (16 * d))) for d, a in product(range(1, 9), range(1, 9)))
    chunk = 128 // TYPES[letter].dtype.itemsize
    slices = options(DEEP=(-(-n // chunk) * chunk,), STAGES=(1,), RESIDENT=(1,))
    slices += options(DEEP=(chunk, 2 * chunk), STAGES=(2, 3), RESIDENT=(1,))
    return (line_teams(letter, n, ways), slices, *line_options(letter, n))


def line_teams(letter, n, ways):
    """Teams of so many warps down and across, and tiles of a warp, that have few to spare."""
    return [dict(DOWN=d, ACROSS=a, RM=m, RN=-(-n // (8 * a)), WARPS=d * a) for d, a, m in ways
            if m * -(-n // (8 * a)) * words(letter) <= WARP_TILES]


def line_options(letter, n):
    return (neighbour_stages(letter, n, {}, dict(ADJACENT=1)), options(BULK=(0, 1)),
            options(WARPS=(1, 2, 4)),
            options(BLOCKS=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16)))


def neighbour_stages(letter, n, *ways):
    """How rows are read from different banks: as they lie, in these ways, or, where they may be,
    apart. Of single numbers neighbours are faster at most orders that are no multiple of four,
    too."""
    size = TYPES[letter].dtype.itemsize
    return [*ways] * (n * size % 128 != 0) + [dict(PADDED=1)] * (n * size % 16 == 0)


def line_fits(letter, n, v, gpu):
    size, team = TYPES[letter].dtype.itemsize, v["DOWN"] * v["ACROSS"]
    return (v["DEEP"] * size % 128 == 0 and 8 * v["RN"] * v["ACROSS"] >= n
            and (not v.get("BULK") or gpu.capability >= SINCE["BULK"] and not v.get("PADDED"))
            and (n * size % 16 == 0 or not v.get("PADDED"))
            and (v["STAGES"] > 1 or v["RESIDENT"] and n <= v["DEEP"])
            and v["RM"] * v["RN"] * words(letter) <= WARP_TILES
            and (v["WARPS"] == team or team == 1) and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
            and v["WARPS"] // team * line_bytes(letter, v, n, n, n) + 512 <= gpu.shared)


def symmetric_line_fits(letter, n, v, gpu):
    return line_fits(letter, n, v, gpu) and v["RESIDENT"] and 16 * v["RM"] * v["DOWN"] >= n


CIRCLE_TILES = 40  # the same of a warp of kernels/syrk_lines.cu, which has none of another operand


def circle_stages(letter, n):
    """Teams of which no warp's group is empty; A as a whole, and in slices."""
    teams = [dict(TEAM=t, RM=m, WARPS=t) for t in range(1, 17) for m in [-(-n // (16 * t))]
             if 16 * m * (t - 1) < n and circle_tiles(t, m) * words(letter) <= CIRCLE_TILES]
    chunk = 128 // TYPES[letter].dtype.itemsize
    slices = options(DEEP=(chunk,), STAGES=(1,)) + options(DEEP=(chunk, 2 * chunk), STAGES=(2, 3))
    adjacent = dict(ADJACENT=2) if n % 4 == 2 else {} if n % 2 else dict(ADJACENT=4)
    return (teams, slices, neighbour_stages(letter, n, adjacent), options(BULK=(0, 1)),
            options(WARPS=(1, 2, 4)),
            options(BLOCKS=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16)))


def circle_tiles(team, rm):
    """A warp's, of its group with itself and with those half the way round."""
    return rm * (rm + 1) + 2 * rm**2 * (team // 2)


def circle_fits(letter, n, v, gpu):
    size, team = TYPES[letter].dtype.itemsize, v["TEAM"]
    return (v["DEEP"] * size % 128 == 0 and 16 * v["RM"] * team >= n
            and (not v.get("BULK") or gpu.capability >= SINCE["BULK"] and v["STAGES"] == 1
                 and not v.get("PADDED"))
            and v.get("ADJACENT", 0) in (0, 2, 4)
            and (n * size % 16 == 0 or not v.get("PADDED"))
            and circle_tiles(team, v["RM"]) * words(letter) <= CIRCLE_TILES
            and (v["WARPS"] == team or team == 1) and 32 * v["WARPS"] * v["BLOCKS"] <= 2048
            and v["WARPS"] // team * syrk_bytes(letter, v, n, n) + 512 <= gpu.shared)


def vector_stages(letter, n):
    return (options(LANES=(8, 4, 16, 32), R=(4, 2, 8)), options(DOWN=(8, 4, 16, 32)),
            options(WARPS=(4, 2, 8)))


def vector_fits(letter, n, v, gpu):
    return (v["R"] <= v["LANES"] and v["LANES"] in LANES and v["DOWN"] in LANES
            and v["WARPS"] <= 32 and v["R"] * words(letter) <= 64)


def one_product_stages(letter, n):
    return (options(TILE=(16, 32)),)


def one_product_fits(letter, n, v, gpu):
    return v["TILE"] % 16 == 0 and 32 * (v["TILE"] + 1) * 4 * words(letter) <= BY_DEFAULT


# -- the ladder: gemm_naive, gemm_tiled


def element_stages(letter, n):
    return (options(DIM_X=(32, 16, 64, 128), DIM_Y=(8, 1, 2, 4, 16, 32)),)


def element_fits(letter, n, v, gpu):
    return v["DIM_X"] * v["DIM_Y"] <= 1024 and v["DIM_X"] * v["DIM_Y"] % 32 == 0


def ladder_stages(letter, n):
    sides = 128, 64, 256, 32
    warps = (32, 64), (64, 64), (64, 32), (32, 32), (16, 64), (16, 32), (16, 16)
    tiles = [dict(BM=bm, BN=bn, TM=tm, TN=tn, WARPS=bm // tm * (bn // tn))
             for bm, bn in product(sides, sides) for tm, tn in warps
             if bm % tm == 0 == bn % tn and 2 <= bm // tm * (bn // tn) <= 8]
    return (tiles, options(BK=(16, 8, 32), STAGES=(3, 2, 4)),
            options(STEP=(8, 16) if letter in "dz" else (1,), AHEAD=(1, 0)),
            options(GROUP=(8, 4, 16), BLOCKS=(1, 2, 3, 4)))


def ladder_fits(letter, n, v, gpu):
    threads, few = 32 * v["WARPS"], 4 // min(words(letter), 4)
    tm, tn, deep = v["TM"], v["TN"], v["BK"]
    tensor, step = letter in "dz", v["STEP"]
    part = (tm // 4 + tn // 4) * step // 8 if tensor else tm // 4 + tn // 8
    part = (tm * tn // 32 + (1 + v["AHEAD"]) * part) * words(letter)

    def shared_out(rows):  # among the threads, whatever the layout
        across = rows // few
        return (threads % across == 0 and divides(threads // across, deep)
                and rows % 32 == 0 and divides(rows, threads // 8) and divides(v["WARPS"], deep)
                and (not tensor or divides(rows, threads * few // deep)))

    return (v["BM"] % tm == 0 == v["BN"] % tn and v["WARPS"] == v["BM"] // tm * (v["BN"] // tn)
            and tm % (16 if tensor else 4 * few) == 0 == tn % (8 if tensor else 8 * few)
            and step in ((8, 16) if tensor else (1,)) and v["STAGES"] >= 2
            and deep % 8 == 0 == deep % ((1 + v["AHEAD"]) * step)
            and v["WARPS"] <= 32 and shared_out(v["BM"]) and shared_out(v["BN"])
            and part <= 224 and (part + 16) * threads * v["BLOCKS"] <= 65536
            and tiled_bytes(letter, v) + 1024 <= gpu.shared)


def divides(a, b):
    """True if one of the two is a multiple of the other."""
    return max(a, b) % min(a, b) == 0


# -- gemm_wgmma: groups of four warps on Hopper's tensor cores, and the kernels that split operands


def wgmma_bytes(v, parts=2):
    """Shared memory: stages of both halves of 64 of k, or of one, at a multiple of 1024 bytes, and
    what is known of the rows and columns of four warps, or four slices of 64 rows and columns."""
    return v["STAGES"] * parts * 128 * (64 * v["GROUPS"] + v["BN"]) + 1024 + v["GROUPS"] * 2**14


def wgmma_stages(letter, n):
    tiles = [dict(GROUPS=g, BN=b, STAGES=s) for g, b, s in (
        (2, 128, 3), (2, 64, 4), (1, 128, 4))]
    # the last three are of numbers that the tuner's problem has none of: measured by hand
    return (tiles, options(EACH=(8, 4, 2)), options(WIDE=(16, 8, 32)),
            options(ONE_BY_ONE=(8,), RARE=(8,), MENDED=(6,)))


def wgmma_fits(letter, n, v, gpu):
    return (gpu.capability == 90 and v["GROUPS"] <= 3 and v["BN"] in (64, 128)
            and v["STAGES"] >= 2 and wgmma_bytes(v) + 256 <= gpu.shared)


# -- gemm_half: the same for products of half precision


def half_bytes(v):
    """Shared memory: stages of 64 of k, at a multiple of 1024 bytes, and for each warp the bias of
    BN columns and 16 rows of 72 numbers on their way to C."""
    return (v["STAGES"] * 128 * (64 * v["GROUPS"] + v["BN"]) + 1024
            + 8 * v["GROUPS"] * (v["BN"] + 16 * 72))


def half_product_stages(letter, n):
    tiles = [dict(GROUPS=g, BN=b, STAGES=s) for g, b, s in (
        (2, 256, 4), (2, 128, 6), (2, 192, 5), (1, 256, 4), (1, 128, 6), (3, 128, 5))]
    return tiles, options(CLUSTER=(2, 1), WIDE=(8, 4, 16))


def half_product_fits(letter, n, v, gpu):
    return (gpu.capability == 90 and v["GROUPS"] <= 3 and v["BN"] in (64, 128, 192, 256)
            and v["CLUSTER"] in (1, 2) and v["BN"] % (64 * v["CLUSTER"]) == 0
            and v["GROUPS"] * v["BN"] <= 512 and v["STAGES"] >= 2
            and half_bytes(v) + 256 <= gpu.shared)


# -- gemm_crt: the same for bytes; crt_split, crt_join: what becomes bytes, and what of them


def crt_bytes(v):
    """Shared memory: stages of 128 of k, at a multiple of 1024 bytes."""
    return v["STAGES"] * 128 * (64 * v["GROUPS"] + v["BN"]) + 1024


def crt_fits(letter, n, v, gpu):
    return half_product_fits(letter, n, v, gpu) and crt_bytes(v) + 256 <= gpu.shared


def crt_split_bytes(letter, v):
    """Shared memory: two stages of LINES lines, with what keeps neighbours in different banks."""
    numbers = max(v["DEEP"] * (v["LINES"] + 1), v["LINES"] * (v["DEEP"] + 2))
    return 2 * TYPES[letter].dtype.itemsize * numbers


def crt_split_stages(letter, n):
    return (options(LINES=(16, 32), DEEP=(256, 128, 512)),
            options(WARPS=(8, 4, 16), BLOCKS=(3, 2, 4, 1)))


def crt_split_fits(letter, n, v, gpu):
    return (v["LINES"] % 16 == 0 and v["LINES"] % v["WARPS"] == 0 and v["DEEP"] % 128 == 0
            and v["LINES"] // v["WARPS"] <= 4
            and 80 * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
            and v["BLOCKS"] * (crt_split_bytes(letter, v) + 1024) <= gpu.shared)


def crt_join_stages(letter, n):
    return (options(WARPS=(8, 4, 16), BLOCKS=(2, 1, 3, 4)),)


def crt_join_fits(letter, n, v, gpu):
    return 80 * 32 * v["WARPS"] * v["BLOCKS"] <= 65536


# -- split_digits: lines of one product as digits for gemm_digits, which is like gemm_int8


def digit_products_bytes(v):
    """Shared memory: stages, and of 128 columns, for each warp, how they are scaled."""
    return crt_bytes(v) + 4 * v["GROUPS"] * 128 * 16


def digit_products_fit(letter, n, v, gpu):
    return crt_fits(letter, n, v, gpu) and digit_products_bytes(v) + 256 <= gpu.shared


def digits_part(k, v):
    """What each block of a cluster has of a line."""
    return -(-k // (128 * v["CLUSTER"])) * 128


def digits_bytes(k, v):
    """Shared memory: parts of LINES lines, and the largest number of each, here and of all."""
    return v["LINES"] * (4 * digits_part(k, v) + 8)


def digit_stages(letter, n):
    return options(LINES=(16, 32, 8), CLUSTER=(8, 4, 16)), options(WARPS=(16, 8), BLOCKS=(2, 1, 3))


def digit_fits(letter, n, v, gpu):
    """Sums of products of bytes have 32 bits."""
    return (gpu.capability == 90 and v["CLUSTER"] in (1, 2, 4, 8, 16) and v["LINES"] in (8, 16, 32)
            and v["WARPS"] in (4, 8, 16, 32) and 3 * 2**14 * n < 2**31
            and v["BLOCKS"] * (digits_bytes(n, v) + 1024) <= gpu.shared
            and 32 * 32 * v["WARPS"] * v["BLOCKS"] <= 65536)


# -- split_lines: lines as pairs


def pair_stages(letter, n):
    return (options(LINES=(32, 64, 16), CLUSTER=(8, 16, 4, 2, 1)),
            options(HELD=(16, 8, 4, 32), WARPS=(8, 16, 4)))


def pair_fits(letter, n, v, gpu):
    return (v["WARPS"] in (4, 8, 16, 32) and v["LINES"] in (16, 32, 64)
            and v["CLUSTER"] in (1, 2, 4, 8, 16)
            and 512 * v["WARPS"] * v["HELD"] + 1024 <= gpu.shared)


# -- LU of one large matrix: the panel of a cluster, and the columns beside it


def cluster_stages(letter, n):
    shapes = [v for v in options(CLUSTER=(16, 8, 4, 2), WARPS=(16, 8, 4, 2, 1), ROWS=(1, 2, 4, 8))
              if v["CLUSTER"] * v["WARPS"] * v["ROWS"] * 32 in range(n, 4 * n + 128)]
    return shapes, options(W=(32, 16, 8, 4, 64))


def cluster_fits(letter, n, v, gpu):
    return (gpu.capability >= 90 and v["CLUSTER"] <= 16 and v["WARPS"] <= 16
            and v["CLUSTER"] * v["WARPS"] * v["ROWS"] * 32 >= n
            and v["ROWS"] * v["W"] * words(letter) <= (64 if v["WARPS"] > 8 else 128)
            and power_of_two(v["W"]) and 16 // TYPES[letter].dtype.itemsize <= v["W"] <= 64
            and v["W"] >= 2 and 32 * v["WARPS"] >= v["W"]
            and cluster_bytes(TYPES[letter].dtype, v["W"], v) <= gpu.shared)


def rows_stages(letter, n):
    return ([dict(COLUMNS=c, WARPS=c // 4) for c in (16, 32, 8, 64)], options(BLOCKS=(2, 1, 3)))


def rows_fits(letter, n, v, gpu):
    return (gpu.capability >= 90 and v["WARPS"] * 4 == v["COLUMNS"] and v["COLUMNS"] % 8 == 0
            and v["BLOCKS"] <= 4 and v["WARPS"] <= 16)


def wide_stages(letter, n):
    return [dict(COLUMNS=c, WARPS=c // 4) for c in (32, 24, 16)], options(BLOCKS=(1, 2))


def wide_fits(letter, n, v, gpu):
    return (rows_fits(letter, n, v, gpu) and v["BLOCKS"] * (
        wide_bytes(TYPES[letter].dtype, n, 128, v) + 1024) <= gpu.shared)


def top_stages(letter, n):
    return (options(WARPS=(10, 18, 6)),)


def top_fits(letter, n, v, gpu):
    return gpu.capability >= 90 and 2 < v["WARPS"] <= 32


def order_stages(letter, n):
    return (options(WARPS=(8, 4, 16)),)


def columns_of_l_stages(letter, n):
    return options(BYTES=(4, 8, 2, 16)), options(WARPS=(16, 32, 8))


def columns_of_l_fits(letter, n, v, gpu):
    return (gpu.capability >= 90 and v["WARPS"] <= 32 and v["BYTES"] in (2, 4, 8, 16)
            and v["BYTES"] <= TYPES[letter].dtype.itemsize and columns_bytes(n, v) <= gpu.shared)


def moved_stages(letter, n):
    return options(WARPS=(16, 32, 8)), options(STAGES=(2, 3)), options(COLUMNS=(16, 8, 32))


def moved_fits(letter, n, v, gpu):
    """Of blocks as wide as half of what is there, or 4096."""
    return (gpu.capability >= 90 and v["WARPS"] <= 32 and v["STAGES"] > 1 and n < 2**16
            and moved_bytes(TYPES[letter].dtype, n, min(n, 8192), v) <= gpu.shared)


# -- potrf_panel: blocks of one large matrix that wait for each other


def potrf_panel_bytes(letter, v):
    """Shared memory: a block, and either the one that solves for it or the ring of stages."""
    side, size = v["TILES"], TYPES[letter].dtype.itemsize
    return size * side * (64 * side + max(128 * v["STAGES"] * v["DEPTH"], 64 * side + 160))


def potrf_panel_stages(letter, n):
    """Blocks, the tiles of a warp, and what multiplies; then the ring, and how many share a
    multiprocessor."""
    return ([dict(TILES=s, WARPS=s, WR=r, GROUPS=g, TWOFOLD=p) for s, r, g in (
                (8, 4, 2), (8, 4, 1), (8, 2, 1), (4, 2, 2), (4, 2, 1))
             for p in range(1 + (letter == "s"))],
            [dict(DEPTH=d, STAGES=s, BLOCKS=b) for d, s, b in (
                (4, 3, 1), (4, 4, 1), (4, 2, 2), (2, 4, 1), (2, 4, 2), (2, 4, 3), (1, 4, 1),
                (8, 2, 2), (8, 3, 1))])


def potrf_panel_fits(letter, n, v, gpu):
    side, share, shared = v["TILES"], v["WARPS"] // v["GROUPS"], potrf_panel_bytes(letter, v)
    if v["WARPS"] != side or side % 2 or v["WARPS"] % v["GROUPS"] or side % v["WR"]:
        return False
    columns = side * side // (share * v["WR"])
    part = 4 * words(letter) * columns * v["WR"] * (1 + 2 * v["TWOFOLD"])
    return (columns > 0 and share * v["WR"] * columns == side * side and side % columns == 0
            and side % v["DEPTH"] == 0 and v["DEPTH"] % v["GROUPS"] == 0 and v["STAGES"] >= 2
            and v["TWOFOLD"] <= (letter == "s")
            and part <= PART and part * 32 * v["WARPS"] * v["BLOCKS"] <= 49152
            and v["BLOCKS"] * (shared + 1280) <= gpu.shared + 1024)


# -- geqp3_panel: columns by turns to blocks that are on the GPU together


def pivoted_stages(letter, n):
    return (options(NB=(32, 16, 64)), options(WARPS=(16, 8), TALL=(2, 1, 4)),
            options(EACH=(16, 8, 4), COLUMNS=(4, 2, 1)))


def pivoted_fits(letter, n, v, gpu):
    """x and what it is multiplied by in the registers of a thread, inner products in shared
    memory."""
    across, size = v["WARPS"] // v["TALL"], TYPES[letter].dtype.itemsize
    shared = size * (v["WARPS"] * (4 * v["WARPS"] + 33) + (v["TALL"] + 3) * v["NB"])
    return (v["WARPS"] in WARPS and v["WARPS"] >= 8 and v["WARPS"] % v["TALL"] == 0
            and v["NB"] % 8 == 0 == v["NB"] % across and v["NB"] <= 128
            and words(letter) * (v["EACH"] + v["COLUMNS"]) + 8 * v["COLUMNS"] + v["EACH"] <= 120
            and v["COLUMNS"] in (1, 2, 4) and shared + 1024 <= BY_DEFAULT)


# -- hetrf_panel: strips of rows by turns to such blocks; hetrf_undo, hetrs_rows, hetrs_diagonal


def indefinite_stages(letter, n):
    return (options(NB=(64, 32, 128)), options(WARPS=(16, 8), TALL=(2, 1, 4)))


def indefinite_fits(letter, n, v, gpu):
    """Rows of L of the panel in the registers of the warps across it."""
    if v["WARPS"] not in (8, 16) or v["WARPS"] % v["TALL"] or v["NB"] < 2:
        return False
    across = v["WARPS"] // v["TALL"]
    shared = TYPES[letter].dtype.itemsize * (32 * v["WARPS"] + v["NB"] + 1 + 16 * v["WARPS"])
    return (v["NB"] + across) // across * words(letter) <= 72 and shared + 1024 <= BY_DEFAULT


# -- trsv_blocks: 64 rows of a large triangle and a few right-hand sides


def substitution_bytes(letter, v):
    size = TYPES[letter].dtype.itemsize
    return size * 64 * (v["SIDES"] * (1 + v["WARPS"] // 2) + 66) + 128


def large_triangle_stages(letter, n):
    return (options(WARPS=(8, 4, 16), SIDES=(4, 2, 1)),)


def large_triangle_fits(letter, n, v, gpu):
    return (v["WARPS"] in (4, 8, 16) and v["SIDES"] <= v["WARPS"]
            and substitution_bytes(letter, v) <= gpu.shared)


def permutation_stages(letter, n):
    return (options(WARPS=(8, 4, 16)),)


def permutation_fits(letter, n, v, gpu):
    return 1 <= v["WARPS"] <= 16


def lag2s_stages(letter, n):
    return (options(WARPS=(8, 4, 16), COLUMNS=(128, 64, 256)),)


def lag2s_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32 and v["COLUMNS"] > 0


def butterfly_stages(letter, n):
    return (options(WARPS=(4, 8, 2), COLUMNS=(32, 16, 64)),)


def window_stages(letter, n):
    return (options(WINDOW=(256,)),)


# -- layers of networks: rows.cuh, a team to a row; elements.cuh


def row_stages(letter, n):
    teams = options(TEAM=(32, 8, 64, 128, 256, 512, 1024), PACKS=(4, 1, 2, 8, 16))
    return ([v | {"RESIDENT": int(n <= span(letter, v))} for v in teams],
            options(WARPS=(4, 8, 16), BLOCKS=(1, 2, 3, 4, 6, 8)))


def part_stages(letter, n):
    """Rows that the blocks of a cluster may share."""
    first, second = row_stages(letter, n)
    wide = options(TEAM=(512, 256, 1024), PACKS=(4, 2, 8), CLUSTER=(2, 4, 8, 16))
    return ([v | {"CLUSTER": 1} for v in first]
            + [v | {"RESIDENT": 1, "WARPS": v["TEAM"] // 32} for v in wide
               if n <= span(letter, v) < 4 * n],
            second)


def span(letter, v):
    """How much of a row a team holds."""
    return v["TEAM"] * v["PACKS"] * v.get("CLUSTER", 1) * 16 // TYPES[letter].dtype.itemsize


def row_fits(lines, always=False, more=28):
    """True if a thread has room for its part of so many lines of a row, and for what else it
    needs, `more` registers."""
    def fits(letter, n, v, gpu):
        held = lines * v["PACKS"] * (8 if letter in "hb" else 4)
        if v.get("CLUSTER", 1) > 1 and (gpu.capability < 90 or v["TEAM"] != 32 * v["WARPS"]
                                        or not v["RESIDENT"] or v["CLUSTER"] > 16):
            return False
        return (power_of_two(v["TEAM"]) and v["TEAM"] <= 32 * v["WARPS"] <= 1024
                and power_of_two(v["WARPS"]) and v["PACKS"] <= 16
                and (n <= span(letter, v) if v["RESIDENT"] else not always)
                and (held + more) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536)
    return fits


# -- chunks.cuh: rows that go through shared memory


def chunk_bytes(letter, lines, v):
    """Shared memory of a block: chunks of so many lines of a row, what warps found, barriers."""
    size, slots = TYPES[letter].dtype.itemsize, v["WARPS"] * v["SLOTS"]
    return (slots * (lines * v["PACKS"] * 512 + 8)
            + 2 * v["WARPS"] * v["CLUSTER"] * 4 * max(size, 4) + 16)


def chunk_stages(letter, n):
    return (options(WARPS=(16, 1, 2, 4, 8, 12, 18, 24), PACKS=(8, 2, 4), SLOTS=(3, 1, 2, 4, 6)),
            options(CLUSTER=(1, 2, 4), BLOCKS=(1, 2, 3, 4, 6, 8, 12, 16)))


def chunk_fits(lines):
    """True if a row has room in its blocks' slots wherever it begins, these in shared memory, and a
    lane's part of a chunk in registers."""
    def fits(letter, n, v, gpu):
        nbytes, threads = n * TYPES[letter].dtype.itemsize, 32 * v["WARPS"]
        team, chunk = v["WARPS"] * v["CLUSTER"], v["PACKS"] * 512
        held = lines * v["PACKS"] * (8 if letter in "hb" else 4)
        return (gpu.capability >= 90 and power_of_two(v["PACKS"]) and power_of_two(v["CLUSTER"])
                and team <= 32
                and nbytes + (nbytes % 128 > 0) * 128 <= team * v["SLOTS"] * chunk
                and v["BLOCKS"] * (chunk_bytes(letter, lines, v) + 1024) <= gpu.shared + 1024
                and (held + 40) * threads * v["BLOCKS"] <= 65536 and v["BLOCKS"] <= 32)
    return fits


def pack_stages(letter, n):
    return (options(WARPS=(8, 4, 16), PACKS=(1, 2, 4)),)


def pack_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32 and v["PACKS"] <= 8


# -- recurrent_steps: units and rows to a block, U in its registers; for an LSTM, the most gates


def lstm_stages(letter, n):
    return (options(UNITS=(16, 8, 4, 32), DEEP=(4, 1, 2, 8), WARPS=(8, 4, 16)),
            options(ROWS=(16, 8, 32), EIGHTS=(1, 2, 4)))


def lstm_fits(letter, n, v, gpu):
    """Weights, words and sums in the registers of a thread, the warps' sums in shared memory."""
    weights, words = 2 * v["DEEP"] * v["UNITS"], 4 * v["EIGHTS"] * v["DEEP"]
    each = -(-v["UNITS"] * v["ROWS"] // (32 * v["WARPS"]))
    return (n <= 16 * v["DEEP"] * v["WARPS"] and v["UNITS"] % 4 == 0
            and v["ROWS"] % (8 * v["EIGHTS"]) == 0 and 32 * v["WARPS"] <= 1024
            and (weights + words + v["UNITS"] + 13 * each + 40) * 32 * v["WARPS"] <= 65536
            and weights <= 160
            and 4 * v["WARPS"] * v["ROWS"] * (4 * v["UNITS"] + 4) + 128 <= BY_DEFAULT)


# -- attention: ROWS lines of a side to a block, LINES of the other to a tile; fp32 as pairs


def line_width(n):
    """The numbers of a line for which kernels of attention are compiled."""
    return -(-n // 32) * 32


def attention_bytes(kernel, letter, v):
    """Shared memory: what a block has of a side, Q, or two operands; a ring of tiles of two."""
    line, rows = 2 * v["WIDTH"] * (1 + (letter == "s")), 16 * v["TILES"] * v["WARPS"]
    if kernel == "attention_forward":
        return line * (rows + 2 * v["STAGES"] * v["KEYS"])
    of_queries = 8 * v["LINES"] * (kernel == "attention_keys")
    return 2 * line * rows + v["STAGES"] * (2 * line * v["LINES"] + of_queries)


def attention_stages(across):
    def stages(letter, n):
        return ([v | {"WIDTH": line_width(n)} for v in options(
                    WARPS=(4, 8), TILES=(1, 2), BLOCKS=(1, 2, 3))],
                options(**{across: (64, 32, 128, 16)}, STAGES=(2, 3)))
    return stages


def attention_fits(kernel, across):
    """`sums` for each of 16 lines: of a tile of S (dS, too), of the answers."""
    def fits(letter, n, v, gpu):
        sums = {"attention_forward": (1, 1), "attention_queries": (2, 1), "attention_keys": (2, 2)}
        of_tile, of_answers = sums[kernel]
        part = v["TILES"] * (of_tile * v[across] + of_answers * v["WIDTH"]) // 2
        return (v["WIDTH"] == line_width(n) and v["TILES"] in (1, 2, 4) and v["WARPS"] <= 16
                and v[across] in (16, 32, 64, *(128,) * (letter != "s")) and v["STAGES"] >= 2
                and part <= PART
                and (part + 60) * 32 * v["WARPS"] * v["BLOCKS"] <= 65536
                and v["BLOCKS"] * (attention_bytes(kernel, letter, v) + 1024) <= gpu.shared + 1024)
    return fits


def wgmma_width(n):
    """The numbers of a line in boxes of 64."""
    return -(-n // 64) * 64


def attention_wgmma_bytes(kernel, v):
    """Shared memory: barriers, and from a multiple of 1024 bytes on a block's two operands (or two
    pieces of one), STAGES of two, and two numbers of each query."""
    of_queries = 8 * v["LINES"] * (kernel == "attention_wgmma_keys")
    return (4 * v["WIDTH"] * 64 * v["GROUPS"] + 2048
            + v["STAGES"] * (4 * v["WIDTH"] * v["LINES"] + of_queries))


def attention_wgmma_stages(kernel):
    kinds = {"attention_wgmma": [dict(GROUPS=g, AHEAD=a)
                                 for g, a in ((2, 1), (3, 1), (1, 1), (1, 0), (2, 0))],
             "attention_wgmma_queries": options(GROUPS=(2, 3, 1)),
             "attention_wgmma_keys": options(GROUPS=(2, 1))}[kernel]
    lines = (64,) if kernel == "attention_wgmma_keys" else (128, 64)

    def stages(letter, n):
        return ([v | {"WIDTH": wgmma_width(n)} for v in kinds],
                options(LINES=lines, STAGES=(2, 3, 4), BLOCKS=(1, 2, 3, 4)))
    return stages


def attention_wgmma_fits(kernel):
    """Registers of a thread (attention_boxes.cuh): the answers' sums; of a tile S, dP, and P and dS
    as factors; a product's sums before groups have shared them out."""
    def fits(letter, n, v, gpu):
        forward, keyed = kernel == "attention_wgmma", kernel == "attention_wgmma_keys"
        ahead, groups = v["AHEAD"] if forward else 1, v["GROUPS"]
        part = v["WIDTH"] // 2 * (1 + keyed) + v["LINES"] * (2 + ahead) // 4
        if not forward:
            part += v["LINES"] // 2 + v["LINES"] // 4 * keyed
        at_start = 512 // (groups + 1) // v["BLOCKS"] // 8 * 8
        given = 32 if forward else 24
        taken = min(((groups + 1) * at_start - given) // groups // 8 * 8, 240)
        return (gpu.capability == 90 and v["WIDTH"] == wgmma_width(n) and v["WIDTH"] in (64, 128)
                and v["LINES"] in (64, 128, *(192,) * forward) and v["STAGES"] >= 2
                and ahead in (0, 1) and groups in (1, 2, 3)
                and part <= taken - 16 * min(v["BLOCKS"], 2)
                and max(v["LINES"], v["WIDTH"]) // 2 + 26 <= at_start
                and not (keyed and v["LINES"] > 96)
                and v["BLOCKS"] * (attention_wgmma_bytes(kernel, v) + 1024) <= gpu.shared + 1024)
    return fits


def line_pair_stages(letter, n):
    return (options(WARPS=(8, 4, 16), WIDTH=(line_width(n),)),)


def line_pair_fits(letter, n, v, gpu):
    return v["WARPS"] in (4, 8, 16) and v["WIDTH"] == line_width(n)


# -- convolve, convolve_weights: tiles of a product whose second operand is windows of images


def convolution_bytes(letter, v, along):
    """Shared memory: stages of BK of k of both operands, neighbours in k or (not `along`) in s."""
    size = TYPES[letter].dtype.itemsize
    pitch = v["BK"] + 16 // size
    of_images = v["BN"] * pitch if along else v["BK"] * (v["BN"] + 8)
    return v["STAGES"] * size * (v["BM"] * pitch + of_images)


def convolution_stages(letter, n):
    tiles = [dict(BM=bm, BN=bn, TM=tm, TN=tn, WARPS=bm // tm * (bn // tn))
             for bm in (16, 32, 64, 128) for bn in (32, 64, 128) for tm in (16, 32, 64)
             for tn in (16, 32, 64) if bm % tm == bn % tn == 0 and bm < 2 * max(n, 9)]
    return tiles, options(BK=(16, 32, 8), STAGES=(3, 2, 4), BLOCKS=(2, 1, 3, 4))


def convolution_fits(along):
    def fits(letter, n, v, gpu):
        """Sums, and fragments in two parts, in the registers of a thread."""
        threads, each = 32 * v["WARPS"], words(letter)
        part = each * (v["TM"] * v["TN"] // 32 + v["TM"] // 2)
        return (v["WARPS"] == v["BM"] // v["TM"] * (v["BN"] // v["TN"]) and threads <= 512
                and v["BM"] % v["TM"] == v["BN"] % v["TN"] == v["TM"] % 16 == v["TN"] % 8 == 0
                and v["BK"] % 8 == threads % v["BK"] == v["BM"] * v["BK"] % threads == 0
                and v["BN"] * v["BK"] % threads == 0 and (along or threads % v["BN"] == 0)
                and v["STAGES"] >= 2 and part <= PART
                and (part + 50) * threads * v["BLOCKS"] <= 65536
                and v["BLOCKS"] * (convolution_bytes(letter, v, along) + 4096) <= gpu.shared)
    return fits


# -- convolve_wgmma, convolve_wgmma_weights: groups of four warps on Hopper's tensor cores


def convolution_wgmma_bytes(v):
    """Shared memory: stages of both parts of 64 of k, at a multiple of 1024 bytes, and where the
    columns of each warp are."""
    return (v["STAGES"] * 256 * (64 * v["ROWS"] + 2 // v["ROWS"] * v["BN"]) + 1024
            + 8 * 4 * v["BN"])


def convolution_wgmma_stages(across):
    tiles = [dict(ROWS=r, BN=b, STAGES=s) for r, b, s in (
        (2, 128, 3), (1, 128, 2), (2, 200, 2), (1, 104, 3), (2, 64, 4), (1, 64, 3))
        if not across or b % 64 == 0]
    return lambda letter, n: (tiles,)


def convolution_wgmma_fits(across):
    def fits(letter, n, v, gpu):
        return (gpu.capability == 90 and v["ROWS"] in (1, 2) and v["STAGES"] >= 2
                and v["BN"] in ((64, 128) if across else (64, 104, 128, 200))
                and convolution_wgmma_bytes(v) + 256 <= gpu.shared)
    return fits


def channel_stages(letter, n):
    return (options(WARPS=(8, 16), BLOCKS=(4, 2, 3)),)


def channel_fits(letter, n, v, gpu):
    return v["WARPS"] in (8, 16) and 2 * v["WARPS"] * v["BLOCKS"] <= 64


# -- recurrent_unsteps: the same with as many words as gates, and a quarter of the units' products


def lstm_back_stages(letter, n):
    return (options(UNITS=(16, 8, 32), DEEP=(16, 4, 8, 32), WARPS=(8, 4, 16)),
            options(ROWS=(16, 32), CHUNK=(4, 1, 2, 8)))


def lstm_back_fits(letter, n, v, gpu):
    """Weights, words and two sums in the registers of a thread, the warps' sums in shared
    memory."""
    weights, chunks = v["DEEP"] * v["UNITS"] // 2, 8 * v["CHUNK"]
    each = -(-v["UNITS"] * v["ROWS"] // (32 * v["WARPS"]))
    return (4 * n <= 16 * v["DEEP"] * v["WARPS"] and v["UNITS"] % 8 == v["ROWS"] % 16 == 0
            and v["DEEP"] % v["CHUNK"] == 0 and 32 * v["WARPS"] <= 1024
            and (weights + chunks + v["UNITS"] + 9 * each + 50) * 32 * v["WARPS"] <= 65536
            and weights <= 128
            and 4 * v["WARPS"] * (v["ROWS"] * (v["UNITS"] + 4) + 7 * 32 * each) + 128 <= BY_DEFAULT)


# -- recurrent_unsteps_cluster: a cluster has all units, each block some columns of U in registers


def unsteps_cluster_bytes(v):
    """Shared memory of a block: of two steps pairs of its units and parts of dh from each block, of
    STAGES steps seven numbers of a unit."""
    threads = 32 * v["WARPS"]
    each = -(-8 * v["UNITS"] // threads)
    return (192 + 256 * (v["UNITS"] + 4) + 64 * v["CLUSTER"] * v["UNITS"]
            + 28 * v["STAGES"] * each * threads)


def unsteps_cluster_stages(letter, n):
    return options(UNITS=(16, 32), WARPS=(4, 8, 2, 16), CLUSTER=(8, 4, 2)), options(
        STAGES=(4, 2, 3, 6))


def unsteps_cluster_fits(letter, n, v, gpu):
    """Weights and three sums of a tile in the registers of a thread."""
    wide = v["CLUSTER"] * v["UNITS"]
    weights, tiles = v["UNITS"] * wide // (8 * v["WARPS"]), wide // (16 * v["WARPS"])
    each = -(-8 * v["UNITS"] // (32 * v["WARPS"]))
    return (gpu.capability >= 90 and n <= wide and v["UNITS"] in (16, 32)
            and v["CLUSTER"] in (2, 4, 8) and wide % (16 * v["WARPS"]) == 0
            and 2 <= v["STAGES"] and weights <= 128
            and (weights + 12 * tiles + 6 * each + 50) * 32 * v["WARPS"] <= 65536
            and unsteps_cluster_bytes(v) <= gpu.shared)


# -- QR of one large matrix: leaves of clusters, what applies them, and T of a block


def qr_leaf_stages(letter, n):
    shapes = [v for v in options(CLUSTER=(16, 8, 4, 2), WARPS=(8, 4, 16), ROWS=(4, 8, 2, 1, 16, 32))
              if v["CLUSTER"] * v["WARPS"] * v["ROWS"] * 8 in range(n, 4 * n + 128)]
    return shapes, options(COLUMNS=(8, 4, 2, 1))


def qr_leaf_fits(letter, n, v, gpu):
    part = v["ROWS"] * v["COLUMNS"] * words(letter)
    return (gpu.capability >= 90 and v["CLUSTER"] <= 16 and 3 <= v["WARPS"] <= 16
            and v["CLUSTER"] * v["WARPS"] * v["ROWS"] * 8 >= n
            and part <= (64 if v["WARPS"] > 8 else 128)
            and all(power_of_two(v[k]) for k in ("CLUSTER", "ROWS", "COLUMNS"))
            and v["COLUMNS"] <= min(8, 2 * v["WARPS"])
            and 16 // TYPES[letter].dtype.itemsize <= 4 * v["COLUMNS"]
            and reflectors_bytes(TYPES[letter].dtype, v) <= gpu.shared)


def qr_apply_stages(letter, n):
    return *qr_leaf_stages(letter, n), options(BATCH=(32, 16))


def qr_apply_fits(letter, n, v, gpu):
    return (qr_leaf_fits(letter, n, {k: x for k, x in v.items() if k != "BATCH"}, gpu)
            and v["BATCH"] % 4 == v["BATCH"] % v["CLUSTER"] == 0
            and apply_bytes(TYPES[letter].dtype, v) <= gpu.shared)


def qr_t_stages(letter, n):
    return (options(WARPS=(4, 8, 2)),)


def qr_t_fits(letter, n, v, gpu):
    return gpu.capability >= 90 and v["WARPS"] <= 8


# -- orhr_top: the top of tall orthonormal columns in the shared memory of a block


def top_of_tall_stages(letter, n):
    return (options(WARPS=(8, 16, 4, 32)),)


def top_of_tall_fits(letter, n, v, gpu):
    return v["WARPS"] <= 32 and n * (n + 1) * TYPES[letter].dtype.itemsize <= gpu.shared


# -- what the host does beside the GPU


def width_stages(letter, n):
    return (options(WIDTH=(64, 32, 96, 128, 192, 256, 384, 512)),)


def copy_stages(letter, n):
    """Threads that copy to the GPU, and as many from it; pages of what each has in hand; columns
    of a block."""
    return (options(THREADS=(8, 4, 2, 6, 12, 16)), options(PIECE=(2048, 512, 1024, 4096)),
            options(BLOCK=(512, 256, 1024)))


def host_fits(letter, n, v, gpu):
    return v.get("THREADS", 1) <= 64


def class_stages(letter, n):
    """Of ragged calls: streams beside the current one; threads of a block from which on what
    follows waits until all its blocks have begun; members below which a class of small ones goes
    with the next larger one."""
    return (options(WIDE=(128, 64, 256, 1024)), options(FEW=(1024, 256, 4096, 1)),
            options(STREAMS=(31, 15, 7)))


def class_fits(letter, n, v, gpu):
    return v.get("STREAMS", 1) < 128  # as many as a device keeps apart


def leaf_stages(letter, n):
    return (options(LEAF=(512, 256, 1024, 2048)),)


def leaf_fits(letter, n, v, gpu):
    return gpu.capability == 90  # elsewhere products are cuBLAS's, and so may triangles be


def polar_stages(letter, n):
    return (options(POLAR=(1,)),)


def polar_fits(letter, n, v, gpu):
    return True


SPACES = {
    "getrf_small": Space("getrf", lu_team_stages, lu_team_fits, orders=(4, 8, 16, 32)),
    "gesv_small": Space("gesv", lu_team_stages, lu_team_fits, (4, 8, 16, 32), True),
    "getrf_shared": Space("getrf", shared_stages, shared_fits(0), optional=True, smallest=33,
                          largest=512),
    "gesv_shared": Space("gesv", shared_stages, shared_fits(8), optional=True, smallest=33,
                         largest=256),
    "getrf_block": Space("getrf", lu_stages, lu_fits, smallest=33),
    "getrf_nopiv": Space("getrf_nopiv", lu_stages, lu_fits, smallest=33),
    **{f"{routine}_lines": Space(routine, line_solve_stages, line_solve_fits, (64, 128, 256, 512),
                                 True, smallest=33) for routine in ("getrs", "potrs")},
    **{f"{routine}_warp": Space(routine, warp_solve_stages, warp_solve_fits, (32, 40, 48, 64), True,
                                smallest=17, largest=160) for routine in ("getrs", "potrs")},
    **{f"{routine}_small": Space(routine, team_stages, team_solve_fits, orders=(4, 8, 16, 32))
       for routine in ("getrs", "potrs")},
    "getrs_block": Space("getrs", substitution_stages, substitution_fits, smallest=33),
    "getri_small": Space("getri", inverse_stages, inverse_fits, (4, 8, 16, 32, 64), True,
                         largest=96),
    "getri_shared": Space("getri", inverse_strip_stages, inverse_strip_fits, (64, 96, 128), True,
                          smallest=17, largest=232),
    "laswp_identity": Space("getri", interchange_stages, interchange_fits, smallest=33),
    "gels_small": Space("gels", least_squares_stages, least_squares_fits, (4, 8, 16, 32), True,
                        largest=64),
    "gels_shared": Space("gels", warp_qr_stages, warp_qr_fits(1), (40, 48, 64), optional=True,
                         smallest=17, largest=160),
    "gels_warp": Space("gels", passing_stages(2, 32), passing_fits(2, 32), (40, 48, 64, 96), True,
                       smallest=33, largest=512),
    "lascl_batched": Space("gels", interchange_stages, interchange_fits),
    "potrf_panels": Space("potrf", cholesky_panels_stages, cholesky_panels_fit,
                          (256, 512, 1024), True, compiled=False, smallest=161),
    **{f"{routine}_columns": Space(routine, cholesky_columns_stages, cholesky_columns_fit(sides),
                                   (64, 128), True, smallest=33, largest=200)
       for routine, sides in (("potrf", 0), ("posv", 1))},
    **{f"{routine}_small": Space(routine, cholesky_team_stages, cholesky_team_fits(sides),
                                 (4, 8, 16, 32, 48, 64), True, needed=32 * sides, largest=96)
       for routine, sides in (("potrf", 0), ("posv", 1))},
    "potrf_block": Space("potrf", cholesky_stages, cholesky_fits, (256,), True,
                         smallest=33, largest=256),
    "posv_block": Space("posv", positive_system_stages, positive_system_fits, (64, 128), True,
                        smallest=33, largest=256),
    "potri_small": Space("potri", inverse_stages, inverse_fits, (4, 8, 16, 32, 64), True,
                         largest=96),
    "potri_shared": Space("potri", inverse_strip_stages, inverse_strip_fits, (64, 96, 128), True,
                          smallest=17, largest=232),
    "potri_parts": Space("potri", inverse_part_stages, inverse_part_fits, (256, 512), smallest=113),
    "trsm_small": Space("trsm", lane_stages, lane_fits, (4, 8, 16, 32, 48), True, largest=64),
    "potrs_block": Space("potrs", positive_stages, positive_fits, (64, 128), True, smallest=33),
    "trsm_lines": Space("trsv", line_solve_stages, line_solve_fits, (64, 128, 256, 512), True,
                        smallest=33),
    "trsm_block": Space("trsm", strip_stages, strip_fits("trsm_block")),
    "trsm_split": Space("trsm", strip_stages, strip_fits("trsm_split"), (64, 128), True,
                        letters="c"),
    "trmm_small": Space("trmm", lane_stages, lane_fits, (4, 8, 16, 32, 48), True, largest=64),
    "trmm_block": Space("trmm", strip_stages, strip_fits("trmm_block")),
    "geqrf_small": Space("geqrf", columns_stages, columns_fits, (4, 8, 16, 32, 64), optional=True),
    "geqrf_shared": Space("geqrf", warp_qr_stages, warp_qr_fits(0), (40, 48, 64), optional=True,
                          smallest=17, largest=160),
    "geqrf_left": Space("geqrf", left_stages, left_fits, optional=True, smallest=17),
    "geqrf_block": Space("geqrf", panel_stages, panel_fits),
    "orgqr_small": Space("orgqr", q_stages, q_fits, (4, 8, 16, 24, 32, 48, 64), True,
                         largest=200),
    "orgqr_strips": Space("orgqr", q_strip_stages, q_strip_fits, optional=True, smallest=17),
    "orgqr_block": Space("orgqr", panel_stages, reflector_fits),
    "ormqr_warp": Space("ormqr_one", passing_stages(0, 1), passing_fits(0, 1),
                        (4, 8, 16, 32, 48, 64, 96), True, largest=512),
    "ormqr_small": Space("ormqr", small_q_stages, small_q_fits, (4, 8, 16, 24, 32, 48), True,
                         largest=64),
    "ormqr_strips": Space("ormqr", q_strip_stages, q_strip_fits, optional=True, smallest=17),
    "ormqr_block": Space("ormqr", panel_stages, reflector_fits),
    "larft_panels": Space("ormqr", t_stages, t_fits, smallest=17),
    "gels_solve": Space("gels", triangle_stages, triangle_fits),
    "gesvd_values": Space("gesvd_values", jacobi_stages, jacobi_fits(False), optional=True,
                          largest=512),
    "gesvd_vectors": Space("gesvd", jacobi_stages, jacobi_fits(True), optional=True, largest=512),
    "gram_level": Space("gesvd", interchange_stages, interchange_fits, optional=True, smallest=33,
                        largest=512),
    "syevd_block": Space("syevd", jacobi_stages, jacobi_fits(False), (4, 8, 16, 24), True,
                         largest=256),
    "sytrd_rows": Space("syevd", few_rows_stages, few_rows_fits, optional=True, largest=64),
    "sytrd_block": Space("syevd", reduction_stages, reduction_fits, optional=True, largest=256),
    "sytrd_cluster": Space("syevd", clustered_reduction_stages, clustered_reduction_fits),
    "steqr_lane": Space("syevd", ql_stages, ql_fits),
    "lasr_rows": Space("syevd", rotation_stages, rotation_fits),
    "stedc_leaf": Space("syevd", leaf_of_tree_stages, leaf_of_tree_fits, (128, 256), True,
                        smallest=33),
    "stedc_merge": Space("syevd", merge_stages, merge_fits, (128, 256), True, smallest=33),
    "gemm_thread": Space("gemm_batched", thread_stages, thread_fits, (4, 8, 16), True),
    "gemm_lines": Space("gemm_batched", line_stages, line_fits,
                        (17, 24, 33, 40, 49, 65, 72, 97, 112, 129, 144, 161, 193, 225, 321, 449),
                        True, largest=639),
    "gemm_warp": Space("gemm_batched", warp_stages, warp_fits, (4, 8, 16, 24, 32), True, True),
    "gemm_split": Space("gemm_batched", split_stages, tile_fits(split=True),
                        (48, 64, 96, 128, 256), True, letters="sc"),
    "gemm_block": Space("gemm_batched", tile_stages, tile_fits(), (24, 32, 48, 64, 96, 128, 256),
                        True, True, letters="sdczhb"),
    "symm_lines": Space("symm", symmetric_line_stages, symmetric_line_fits,
                        (9, 16, 17, 24, 32, 33, 40, 48, 49, 64, 65, 72, 80, 96, 97, 112, 129, 144),
                        True, largest=160),
    "symm_block": Space("symm", square_stages, tile_fits(symmetric=True), (32, 64, 128, 256), True),
    "other_triangle": Space("symm", mirror_stages, mirror_fits, (8, 16, 64)),
    "syrk_lines": Space("syrk", circle_stages, circle_fits,
                        (9, 17, 32, 33, 49, 64, 65, 81, 96, 97, 113, 128, 129, 145, 160, 161, 177,
                         192, 193, 225), True, smallest=5, largest=256),
    "syrk_block": Space("syrk", tile_stages, tile_fits(half=True), (32, 64, 128, 256)),
    "syrk_split": Space("syrk", split_stages, tile_fits(half=True, split=True), (64, 128, 256, 512),
                        True, letters="sc"),
    "gemv_batched": Space("gemv", vector_stages, vector_fits),
    "gemm_small": Space("gemm", one_product_stages, one_product_fits),
    "gemm_naive": Space("gemm_naive", element_stages, element_fits, largest=2048),
    "gemm_tiled": Space("gemm", ladder_stages, ladder_fits, (128, 256, 512), True, True,
                        largest=4096),
    "gemm_digits": Space("gemm", half_product_stages, digit_products_fit, (4096, 8192, 16384), True,
                         letters="s", smallest=1024, largest=16384),
    "gemm_wgmma": Space("gemm", wgmma_stages, wgmma_fits, (1024, 2048, 4096, 8192), True,
                        letters="s", smallest=512, largest=8192),
    "gemm_half": Space("gemm", half_product_stages, half_product_fits, (1024, 2048, 4096, 8192),
                       True, True, letters="hb", smallest=256, largest=8192),
    "gemm_int8": Space("igemm", half_product_stages, crt_fits, (1024, 2048, 4096, 8192), True,
                       letters="i", smallest=256, largest=8192),
    "gemm_crt": Space("gemm", half_product_stages, crt_fits, (4096, 8192, 16384), True, True,
                      letters="dz", smallest=1024, largest=16384),
    "crt_split": Space("crt", crt_split_stages, crt_split_fits, letters="dz", smallest=1024,
                       largest=16384),
    "crt_join": Space("crt", crt_join_stages, crt_join_fits, letters="dz", smallest=1024,
                      largest=16384),
    "split_lines": Space("split", pair_stages, pair_fits, letters="s", smallest=1024,
                         largest=8192),
    "split_digits": Space("split", digit_stages, digit_fits, (8192, 12288), True, letters="s",
                          smallest=6144, largest=24576),
    "getrf_panel": Space("getrf_large", cluster_stages, cluster_fits, optional=True, smallest=33,
                         largest=32768),
    "getrf_rows": Space("getrf_large", rows_stages, rows_fits, optional=True, smallest=33,
                        largest=32768),
    "getrf_top": Space("getrf_large", top_stages, top_fits, optional=True, smallest=33,
                       largest=32768),
    "getrf_order": Space("getrf_large", order_stages, host_fits, optional=True, smallest=33,
                         letters="s", largest=32768),  # the row for all types
    "getrf_moved": Space("getrf_large", moved_stages, moved_fits, optional=True, smallest=33,
                         largest=32768),
    "getrf_columns": Space("getrf_large", columns_of_l_stages, columns_of_l_fits, optional=True,
                           smallest=33, largest=32768),
    "potrf_panel": Space("potrf_large", potrf_panel_stages, potrf_panel_fits,
                         (512, 1024, 2048, 4096, 8192), True, smallest=65, largest=8192),
    "trsv_blocks": Space("mixed", large_triangle_stages, large_triangle_fits, (1024, 4096), True,
                         smallest=257, largest=4096),
    "permutation": Space("mixed", permutation_stages, permutation_fits, (1024, 4096), letters="s",
                         largest=4096),
    "lag2s": Space("mixed", lag2s_stages, lag2s_fits, (1024, 4096), letters="dz", largest=4096),
    "gerbt": Space("mixed_rbt", butterfly_stages, lag2s_fits, (8192, 16384), letters="d",
                   smallest=8192, largest=16384),
    "gerbt_rows": Space("mixed_rbt", permutation_stages, permutation_fits, (8192, 16384),
                        letters="s", smallest=8192, largest=16384),
    "getrf_window": Space("mixed_rbt", shared_stages, shared_fits(0), (256,), optional=True,
                          letters="s", smallest=256, largest=256),
    "getrf_below": Space("mixed_rbt", rows_stages, rows_fits, (8192, 16384), optional=True,
                         letters="s", smallest=8192, largest=16384),
    "getrf_wide": Space("mixed_rbt", wide_stages, wide_fits, (1024,), optional=True, letters="s",
                        smallest=1024, largest=1024),
    "getrf_windows": Space("mixed_rbt", window_stages, host_fits, (8192, 16384), True,
                           compiled=False, letters="s", smallest=8192, largest=16384),
    "geqrf_leaf": Space("geqrf_large", qr_leaf_stages, qr_leaf_fits, optional=True, smallest=33,
                        largest=16384),
    "geqrf_apply": Space("geqrf_large", qr_apply_stages, qr_apply_fits, optional=True, smallest=33,
                         largest=16384),
    "geqrf_t": Space("geqrf_large", qr_t_stages, qr_t_fits, optional=True, smallest=33,
                     largest=16384),
    "geqp3_panel": Space("geqp3", pivoted_stages, pivoted_fits, (1024, 4096, 8192), smallest=33,
                         largest=8192),
    "hetrf_panel": Space("sysv", indefinite_stages, indefinite_fits, (1024, 4096, 8192), True, True,
                         smallest=33, largest=8192),
    **{name: Space("sysv", interchange_stages, interchange_fits, smallest=33, largest=8192)
       for name in ("hetrf_undo", "hetrs_rows", "hetrs_diagonal")},
    "orhr_top": Space("gels_tall", top_of_tall_stages, top_of_tall_fits, (64,), True, largest=128),
    **{f"{routine}_hybrid": Space(f"{routine}_hybrid", width_stages, host_fits,
                                  (1024, 4096, 8192, 16384), compiled=False, smallest=33,
                                  largest=16384) for routine in ("getrf", "potrf", "geqrf")},
    "gesdd_polar": Space("gesdd", polar_stages, polar_fits, (512, 1024, 2048), True, compiled=False,
                         smallest=65, largest=2048),
    "level3_halves": Space("trsm_large", leaf_stages, leaf_fits, (2048, 4096, 8192), True,
                           compiled=False, smallest=513, largest=16384),
    "ragged_classes": Space("gesv_vbatched", class_stages, class_fits, (128,), compiled=False),
    "host_copies": Space("host", copy_stages, host_fits, compiled=False, letters="d",
                         smallest=8192, largest=8192),  # the row for all types
    "norm_rows": Space("norm", row_stages, row_fits(1), letters="sdhb", largest=16384),
    "norm_rows_backward": Space("norm", row_stages, row_fits(5, True), optional=True,
                                letters="sdhb", largest=8192),
    "column_sums": Space("norm", interchange_stages, interchange_fits, letters="sdhb"),
    "embedding_sums": Space("embedding", interchange_stages, interchange_fits, letters="sdhb"),
    "softmax_rows": Space("softmax", row_stages, row_fits(1, more=24), letters="sdhb",
                          largest=65536),
    "softmax_rows_backward": Space("softmax", part_stages, row_fits(2), letters="sdhb",
                                   largest=65536),
    "cross_entropy_rows": Space("cross_entropy", row_stages, row_fits(1), letters="sdhb",
                                largest=65536),
    "softmax_chunks": Space("softmax", chunk_stages, chunk_fits(1), optional=True,
                            letters="sdhb", largest=65536),
    "softmax_chunks_backward": Space("softmax", chunk_stages, chunk_fits(2), optional=True,
                                     letters="sdhb", largest=65536),
    "cross_entropy_chunks": Space("cross_entropy", chunk_stages, chunk_fits(1), optional=True,
                                  letters="sdhb", largest=65536),
    "cross_entropy_mean": Space("cross_entropy", interchange_stages, interchange_fits,
                                letters="sd"),
    "adam_step": Space("adam", pack_stages, pack_fits, letters="sdhb"),
    "add": Space("add", pack_stages, pack_fits, letters="hb"),
    "activation": Space("activation", pack_stages, pack_fits, letters="sdhb"),
    "dropout": Space("dropout", pack_stages, pack_fits, letters="sdhb"),
    **{f"attention_{part}": Space("attention", attention_stages(across),
                                  attention_fits(f"attention_{part}", across), optional=True,
                                  letters="shb", largest=128)
       for part, across in (("forward", "KEYS"), ("queries", "LINES"), ("keys", "LINES"))},
    **{name: Space("attention", attention_wgmma_stages(name), attention_wgmma_fits(name),
                   optional=True, vendor=True, letters="hb", largest=128)
       for name in ("attention_wgmma", "attention_wgmma_queries", "attention_wgmma_keys")},
    "attention_pairs": Space("attention", line_pair_stages, line_pair_fits, optional=True,
                             letters="s", largest=128),
    "attention_sums": Space("attention", interchange_stages, interchange_fits, letters="shb",
                            largest=128),
    "pair_words": Space("convolution", pack_stages, pack_fits, letters="s"),
    "convolve": Space("convolution", convolution_stages, convolution_fits(False),
                      (16, 32, 64, 256), letters="sd", largest=256),
    "convolve_weights": Space("convolution", convolution_stages, convolution_fits(True),
                              (16, 32, 64, 256), letters="sd", largest=256),
    "split_sums": Space("convolution", interchange_stages, interchange_fits, letters="s"),
    "channel_pairs": Space("convolution", channel_stages, channel_fits, letters="s"),
    **{name: Space("convolution", convolution_wgmma_stages(across), convolution_wgmma_fits(across),
                   (64, 256), optional=True, letters="s", largest=256)
       for name, across in (("convolve_wgmma", False), ("convolve_wgmma_weights", True))},
    "recurrent_steps": Space("lstm", lstm_stages, lstm_fits, optional=True, letters="s"),
    "recurrent_unsteps": Space("lstm", lstm_back_stages, lstm_back_fits, optional=True,
                               letters="s"),
    "recurrent_unsteps_cluster": Space("lstm", unsteps_cluster_stages, unsteps_cluster_fits,
                                       optional=True, letters="s", largest=128),
}
