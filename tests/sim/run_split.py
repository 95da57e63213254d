"""Runs split_lines, built by `build` with clusters of one, through its problems; for a process that
has the sanitizers:  python -m tests.sim.run_split LIBRARY CONSTANTS(json)

Both operands of a product at once, any strides, special values: halves, scales and counts are those
of a model in NumPy, bit for bit, under four schedules.
"""

import json
import sys

import numpy as np
from cffi import FFI

from .run import SCHEDULES, Memory

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, unsigned shared, int schedule,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""

FEW, ONLY_FEW, NOT_FINITE, UNMARKED = 8, 1 << 27, 1 << 29, 2
SIZES = 16  # units of a sum of sizes in 2^15, which is above all scaled numbers
LINE = np.dtype({"names": ["down", "rest", "lost", "sizes", "few", "places"],
                 "formats": ["f4", "f4", "i4", "i4", "i4", ("i4", FEW)],
                 "offsets": [0, 4, 8, 12, 16, 20], "itemsize": 64})


def split(x):
    """(halves [2][lines][k], exponents, lost, sizes, which are lost) of the lines of x
    (kernels/pairs.cuh)."""
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
    some = (x != 0).sum(1)
    few = finite & (some > 0) & (some <= FEW)
    return (np.stack([high, low]), exponent,
            np.where(finite, lost.sum(1) + few * ONLY_FEW, NOT_FINITE),
            np.abs(scaled.astype(float)).sum(1) * SIZES / 2**15, lost & finite[:, None])


def good(sums, rows, columns, many=2.0**11):
    """The rule of gemm_wgmma, of (lost, sizes) of lines: which sums no lost number has harmed."""
    lost, of_column = (x[0] % ONLY_FEW for x in (rows, columns))
    sizes, its_sizes = (x[1] / SIZES for x in (rows, columns))
    always = (rows[0] >= ONLY_FEW)[:, None] | (columns[0] >= ONLY_FEW)
    damage = np.minimum(lost[:, None], its_sizes) + np.minimum(of_column, sizes[:, None])
    return ~always & (np.abs(sums) >= many * damage)


def problem(rng, lines, k):
    """Numbers of all sizes, a line each of zeros, subnormals, with an inf and with a nan, and as
    many that are zero but for as few numbers as make a difference, far from each other or not."""
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
    for line, many in zip(rng.permutation(lines)[:7], (1, FEW, FEW + 1, FEW, FEW + 1, 2, 20)):
        x[line] = 0
        at = rng.permutation(k)[:many] if many % 2 else (rng.integers(k) + np.arange(many)) % k
        x[line, at] = rng.choice([-1, 1e-45, 3.3], at.size)
    return x


def laid_out(x, layout):
    """`x` in memory of exactly its size, and the strides of its lines and along them."""
    if layout == "spread":
        memory = Memory(np.repeat(np.repeat(x, 3, 0), 2, 1)[None])
        return memory, 6 * x.shape[1], 2
    memory = Memory(x[None], layout)
    return (memory, *(s // 4 for s in memory.array.strides[1:]))


class Side:
    """An operand in memory, and room for what is made of it."""

    def __init__(self, x, layout, values):
        self.x, (self.memory, self.next, self.step) = x, laid_out(x, layout)
        lines, k = x.shape
        self.across = self.next < self.step
        self.rows, self.columns = (k, lines) if self.across else (lines, k)
        self.room = -(-self.columns // 8) * 8
        self.team, warps = int(not self.across), values["WARPS"]
        while 0 < self.team < warps and 128 * self.team * values["HELD"] < k:
            self.team *= 2
        self.blocks = (-(-lines // values["LINES"]) if self.across
                       else -(-lines // (warps // self.team)))
        self.pairs = Memory(np.full((1, 2 * self.rows, self.room), 0xffff, np.uint16))
        self.lost = lines, 8 * -(-k // 64)  # bytes of bits
        self.about = Memory(np.full((1, lines * (LINE.itemsize + self.lost[1])), 0xff, np.uint8))

    def numbers(self):
        return (self.memory.address, len(self.x), self.next, self.step, self.team, 0,
                self.pairs.address, self.room, self.about.address)

    def found(self):
        """What was made, as bytes; it is what the model makes."""
        halves, exponent, lost, sizes, which = split(self.x)
        got = self.pairs.array.reshape(2, self.rows, self.room)[:, :, :self.columns]
        got = got.swapaxes(1, 2) if self.across else got
        assert np.array_equal(got, halves.view(np.uint16)), "halves"
        about = np.ascontiguousarray(self.about.array).reshape(-1)
        about, bits = np.split(about, [LINE.itemsize * len(self.x)])
        about, some = about.view(LINE), which.sum(1) > UNMARKED
        bits = np.unpackbits(bits.reshape(self.lost), axis=1, bitorder="little")[some]
        assert np.array_equal(bits[:, :which.shape[1]], which[some]), "which are lost"
        assert not bits[:, which.shape[1]:].any()
        assert np.array_equal(about["lost"], lost), (about["lost"], lost)
        assert np.array_equal(about["down"].astype(float) * about["rest"], 2.0 ** -exponent)
        least, most = sizes, 1.0011 * sizes + 2 * (sizes > 0)
        assert ((least <= about["sizes"]) & (about["sizes"] <= most)).all(), about["sizes"]
        few = (lost >= ONLY_FEW) & (lost < NOT_FINITE)
        assert np.array_equal(about["few"][few], (self.x != 0).sum(1)[few])
        for places, x in zip(about["places"][few], self.x[few]):
            wanted = np.flatnonzero(x)
            assert np.array_equal(places[:wanted.size], wanted), (places, wanted)
        known = about[["down", "rest", "lost", "sizes"]]
        return got.tobytes() + b"".join(known[x].tobytes() for x in known.dtype.names)


def run(launch, values, rng, shapes, k, layouts):
    given, results = [problem(rng, lines, k) for lines in shapes], set()
    threads = 32 * values["WARPS"]
    for schedule in SCHEDULES:
        a, b = (Side(x, layout, values) for x, layout in zip(given, layouts))
        first, second = a.numbers(), b.numbers()
        launch(a.blocks + b.blocks, threads, 16 * threads * values["HELD"], schedule, ffi.new(
            "uint64_t[]", [a.blocks, *first[:2], k, *first[2:], *second, 0]))
        results.add(a.found() + b.found())
    assert len(results) == 1, "the result depends on the schedule"


if __name__ == "__main__":
    library, values = sys.argv[1], json.loads(sys.argv[2])
    ffi = FFI()
    ffi.cdef("void sim_split_lines(unsigned, unsigned, unsigned, int, const uint64_t *);")
    launch = ffi.dlopen(library).sim_split_lines
    rng = np.random.default_rng(0)
    for shapes, k in (((20, 33), 40), ((7, 131), 69), ((1, 64), 128), ((9, 8), 600),
                      ((3, 5), 9000)):
        for layouts in ("CC", "FF", "CF", ("F", "spread")):
            if k * sum(shapes) < 30_000 or layouts == "CC":
                run(launch, values, rng, shapes, k, layouts)
    print("ok")
