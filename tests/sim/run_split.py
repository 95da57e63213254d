"""Runs line_maxima and split_lines, built by `build`, through their problems; for a process that
has the sanitizers:  python -m tests.sim.run_split MAXIMA SPLIT CONSTANTS(json, of split_lines)

Both operands of a product at once, any strides, special values: halves, scales and counts are those
of a model in NumPy, bit for bit, under four schedules.
"""

import json
import sys

import numpy as np
from cffi import FFI

from .run import SCHEDULES, Memory

NOT_FINITE = 1 << 29
LINE = np.dtype([("down", "f4"), ("rest", "f4"), ("lost", "i4"), ("none", "i4")])


def split(x):
    """(halves [2][lines][k], exponents, lost) of the lines of x (kernels/pairs.cuh)."""
    largest = np.abs(x).max(1, initial=0).astype(float)
    finite = np.isfinite(largest)
    exponent = np.where(finite & (largest > 0), 15 - np.frexp(np.where(finite, largest, 1))[1], 0)
    scaled = np.ldexp(np.where(finite[:, None], x, 0).astype(float), exponent[:, None])
    scaled = scaled.astype(np.float32)  # exact, but where it is far below the smallest half
    high = scaled.astype(np.float16)
    rest = scaled - high.astype(np.float32)
    low = rest.astype(np.float16)
    error = np.abs(rest - low.astype(np.float32))
    with np.errstate(under="ignore"):
        lost = (error > np.float32(2**-22) * np.abs(scaled)) | ((scaled == 0) & (x != 0))
    return np.stack([high, low]), exponent, np.where(finite, lost.sum(1), NOT_FINITE)


def problem(rng, lines, k):
    """Numbers of all sizes, a line each of zeros, subnormals, with an inf and with a nan."""
    x = rng.standard_normal((lines, k)) * 2.0 ** rng.integers(-30, 31, (lines, 1))
    x[rng.random(x.shape) < 0.1] *= 2.0**-20
    x[rng.random(x.shape) < 0.05] = 0
    x = x.astype(np.float32)
    special = rng.permutation(lines)[:6]
    for line, with_ in zip(special, (0, 1e-42, 3e38, np.inf, np.nan, 1e-45)):
        if with_ == 0:
            x[line] = 0
        elif with_ < 1e-30:
            x[line] = rng.integers(-3, 4, k) * np.float32(with_)
        else:
            x[line, rng.integers(k)] = with_
    return x


def laid_out(x, layout):
    """`x` in memory of exactly its size, and the strides of its lines and along them."""
    if layout == "spread":
        memory = Memory(np.repeat(np.repeat(x, 3, 0), 2, 1)[None])
        return memory, 6 * x.shape[1], 2
    memory = Memory(x[None], layout)
    return (memory, *(s // 4 for s in memory.array.strides[1:]))


def run(maxima, launch, values, rng, shapes, k, layouts):
    given = [problem(rng, lines, k) for lines in shapes]
    room, results = -(-k // 8) * 8, []
    for schedule in SCHEDULES:
        sides = []
        for x, layout in zip(given, layouts):
            memory, next_, step = laid_out(x, layout)
            lines, chunks = len(x), 0 if next_ >= step else int(rng.integers(1, -(-k // 8) + 1))
            sides.append((memory, lines, next_, step, chunks,
                          Memory(np.full((1, 2 * lines, room), 0xffff, np.uint16)),
                          Memory(np.full((1, lines, 16), 0xff, np.uint8)),
                          Memory(np.full((1, max(chunks, 1), lines), 0xff, np.uint32))))
        across = [s for s in sides if s[4]]
        if across:
            blocks = [-(-s[1] // 128) * s[4] for s in across]
            of = [(s[0].address, s[1], k, s[2], s[3], s[6].address, s[7].address, s[4])
                  for s in (across[0], across[-1])]
            del_k = of[1][:2] + of[1][3:]
            maxima(sum(blocks), 256, schedule, ffi.new("uint64_t[]", [blocks[0], *of[0], *del_k]))
        warps = values["WARPS"]
        blocks = [(-(-lines // 64) * -(-k // (64 * values["TILES"])) if chunks else
                   lines if k > 32 * values["HELD"] else -(-lines // warps))
                  for _, lines, _, _, chunks, *_ in sides]
        (a, m, an, as_, ac, ap, aa, al), (b, n, bn, bs, bc, bp, ba, bl) = sides
        launch(sum(blocks), 32 * warps, schedule, ffi.new("uint64_t[]", [
            blocks[0], a.address, m, k, an, as_, ap.address, room, aa.address,
            al.address if ac else 0, ac, b.address, n, bn, bs, bp.address, ba.address,
            bl.address if bc else 0, bc]))
        results.append([(p.array.copy(), about.array.copy())
                        for _, _, _, _, _, p, about, _ in sides])
    for found in results:
        for x, (pairs, about) in zip(given, found):
            halves, exponent, lost = split(x)
            got = pairs.reshape(2, len(x), room)[:, :, :k]
            assert np.array_equal(got, halves.view(np.uint16)), "halves"
            about = np.ascontiguousarray(about).view(LINE).reshape(-1)
            assert np.array_equal(about["lost"], lost), (about["lost"], lost)
            scale = about["down"].astype(float) * about["rest"]
            assert np.array_equal(scale, 2.0 ** -exponent), "scales"


if __name__ == "__main__":
    maxima, library, values = *sys.argv[1:3], json.loads(sys.argv[3])
    ffi = FFI()
    ffi.cdef("""void sim_line_maxima(unsigned, unsigned, int, const uint64_t *);
                void sim_split_lines(unsigned, unsigned, int, const uint64_t *);""")
    maxima = ffi.dlopen(maxima).sim_line_maxima
    launch = ffi.dlopen(library).sim_split_lines
    rng = np.random.default_rng(0)
    for shapes, k in (((20, 33), 40), ((7, 131), 69), ((1, 64), 128), ((9, 8), 600),
                      ((3, 5), 9000)):
        for layouts in ("CC", "FF", "CF", ("F", "spread")):
            if k * sum(shapes) < 30_000 or layouts == "CC":
                run(maxima, launch, values, rng, shapes, k, layouts)
    print("ok")
