// split_digits.cu: both operands of a product of single precision, line by line, as digits
// (digits.cuh): three planes of bytes, k along their rows, and how lines are scaled; and whether all
// lines are even.
//
// A cluster has LINES lines, each of its blocks `part` of k, which it keeps in shared memory, four
// numbers at a time, of line l at place g ^ l % 8, and the largest of each line: threads with
// neighbours in the order of memory, be they numbers of a line or of neighbouring lines, write to
// different banks, and lanes read there what they have of a line. The largest number of a line is that
// of all blocks.
//
// Floor: 7 bytes an entry, read and written once: 0.22 ms for two operands of 8192 at 4.3 TB/s.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int LINES = 16;    // of a cluster
constexpr int WARPS = 16;    // of a block
constexpr int CLUSTER = 8;
constexpr int BLOCKS = 2;    // per multiprocessor for which registers are rationed
#endif
#include "cluster.cuh"
#include "digits.cuh"
#include "fours.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

using size = long long;

constexpr int THREADS = 32 * WARPS;
static_assert(THREADS % LINES == 0 && LINES % 8 == 0);

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif

struct Operand {
    const float* X;
    size lines, k;
    size next, step;        // from a line to the next, and along it
    unsigned char* planes;  // [DIGITS][lines][room]
    Scaled* about;

    // Four numbers of a line from p on; zeros where there is nothing, which is not asked for INSIDE.
    template <bool INSIDE> __device__ Four read(size line, size p, bool whole) const
    {
        const float* const x = X + line * next + p * step;
        const size left = INSIDE ? 4 : line < lines ? k - p : 0;
        if (INSIDE && whole) return *reinterpret_cast<const Four*>(x);
        Four v;
        #pragma unroll
        for (int e = 0; e < 4; ++e) v.x[e] = e < left ? x[e * step] : 0;
        return v;
    }
};

__device__ inline unsigned larger_pattern(unsigned most, const Four& v)
{
    #pragma unroll
    for (float x : v.x) {
        const unsigned u = pattern(x);
        most = most < u ? u : most;
    }
    return most;
}

// A block's part of the lines, in shared memory
struct Part {
    const Operand& of;
    size line, first;   // where it begins
    int groups;         // of four numbers, of each line
    Four* held;
    unsigned* found;    // the largest number of each line, as a pattern

    __device__ Four& at(int l, int g) const { return held[l * groups + (g ^ l % 8)]; }

    // Lines side by side: neighbouring threads have neighbouring lines.
    template <bool INSIDE> __device__ void bring_across() const
    {
        const int l = threadIdx.x % LINES;
        unsigned largest = 0;
        #pragma unroll 4
        for (int g = threadIdx.x / LINES; g < groups; g += THREADS / LINES) {
            const Four v = of.read<INSIDE>(line + l, first + 4 * g, false);
            largest = larger_pattern(largest, v);
            at(l, g) = v;
        }
        atomicMax(&found[l], largest);
    }
    // Each warp has a line.
    template <bool INSIDE> __device__ void bring_along(bool whole) const
    {
        for (int l = threadIdx.x / 32; l < LINES; l += WARPS) {
            unsigned largest = 0;
            #pragma unroll 8
            for (int g = threadIdx.x % 32; g < groups; g += 32) {
                const Four v = of.read<INSIDE>(line + l, first + 4 * g, whole);
                largest = larger_pattern(largest, v);
                at(l, g) = v;
            }
            largest = __reduce_max_sync(ALL, largest);
            if (threadIdx.x % 32 == 0) found[l] = largest;
        }
    }
    __device__ void bring() const
    {
        const bool inside = line + LINES <= of.lines && first + 4 * groups <= of.k;
        if (llabs(of.next) < llabs(of.step)) {
            if (inside) bring_across<true>();
            else bring_across<false>();
        } else if (inside && of.step == 1 && (size(of.X) | 4 * of.next) % 16 == 0) {
            bring_along<true>(true);
        } else {
            bring_along<false>(false);
        }
    }
};

// sum + the bytes of x, which have signs
__device__ inline int plus_digits(int sum, unsigned x)
{
#ifndef BLASX_SIM
    return __dp4a(int(x), 0x01010101, sum);
#else
    for (int e = 0; e < 32; e += 8) sum += static_cast<signed char>(x >> e);
    return sum;
#endif
}

// Bytes `which` of four words
__device__ inline unsigned bytes_of(const unsigned (&x)[4], unsigned which)
{
    const unsigned select = which | (which + 4) << 4;
    return __byte_perm(__byte_perm(x[0], x[1], select), __byte_perm(x[2], x[3], select), 0x5410);
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS)
split_digits(size blocks, size k, size part, size room, const float* A, size m, size a_next,
             size a_step, unsigned char* a_planes, Scaled* a_about, const float* B, size n,
             size b_next, size b_step, unsigned char* b_planes, Scaled* b_about, unsigned* uneven)
{
    wait_for_stream();
    const bool left = blockIdx.x < blocks;
    const Operand of{left ? A : B, left ? m : n, k, left ? a_next : b_next, left ? a_step : b_step,
                     left ? a_planes : b_planes, left ? a_about : b_about};
    const int rank = blockIdx.x % CLUSTER, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size line = (blockIdx.x - (left ? 0 : blocks)) / CLUSTER * LINES, first = rank * part;
    const int groups = int(part) / 4;
    Four* const held = reinterpret_cast<Four*>(dynamic_shared);
    unsigned* const found = reinterpret_cast<unsigned*>(held + LINES * groups);
    unsigned* const most = found + LINES;
    const Part mine{of, line, first, groups, held, found};
    // Once a line is known not to be even, nothing is needed but that all blocks end.
    const bool needed = !*static_cast<const volatile unsigned*>(uneven);

    for (int l = threadIdx.x; l < LINES; l += THREADS) found[l] = 0;
    __syncthreads();
    if (needed) mine.bring();
    meet_cluster<CLUSTER>();
    for (int l = threadIdx.x; l < LINES; l += THREADS) {
        unsigned largest = 0;
        #pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {
            const unsigned other = in_cluster<CLUSTER>(found[l], b);
            largest = largest < other ? other : largest;
        }
        most[l] = largest;
    }
    __syncthreads();  // what was read of other blocks has come: it is in `most`
    done_in_cluster<CLUSTER>();

    const size there = k - first < part ? k - first : part;  // numbers of a line, none if below 1
    for (int l = warp; needed && l < LINES && line + l < of.lines; l += WARPS) {
        const bool finite = most[l] < 0x7f800000;
        const DigitScale scale(finite ? most[l] : 0);
        unsigned char* const to = of.planes + (line + l) * room + first;
        const size plane = of.lines * room;
        int lowest = 0;
        float remains = 0, sum = 0;
        bool even = finite;
        #pragma unroll 2
        for (int g = lane; 4 * (g - lane) < there; g += 32) {
            const Four v = mine.at(l, g);
            unsigned words[4], small = 0;
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float x = finite ? scale.of(v.x[e]) : 0;
                const int q = __float2int_rn(x);
                if (e == 0) remains += x - float(q);
                words[e] = unsigned(q) + 0x8080;
                sum += fabsf(x);
                small += fabsf(x) < 0x1p18f;
            }
            const bool whole = 4 * (g - lane) + 128 <= there;
            even = even && !(whole && __reduce_add_sync(ALL, small) > 64);
            const unsigned z = bytes_of(words, 0) ^ 0x80808080;
            lowest = plus_digits(lowest, z);
            *reinterpret_cast<unsigned*>(to + 4 * g) = bytes_of(words, 2);
            *reinterpret_cast<unsigned*>(to + plane + 4 * g) = bytes_of(words, 1) ^ 0x80808080;
            *reinterpret_cast<unsigned*>(to + 2 * plane + 4 * g) = z;
        }
        lowest = int(__reduce_add_sync(ALL, unsigned(lowest)));
        for (int step = 16; step; step /= 2) {
            remains += across(remains, step);
            sum += across(sum, step);
        }
        if (lane == 0) {
            even = even && sum >= float(there) * (0x1p23f / 12) && by_chance(lowest, remains, there);
            if (there > 0 && most[l] > 0 && !even) *uneven = 1;
            if (rank == 0) of.about[line + l] = scale.undone();
        }
    }
    await_all_done<CLUSTER>();
}
