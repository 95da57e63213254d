// cuda_sim.h: runs a CUDA kernel on the CPU, for AddressSanitizer and UBSan.
//
// Every thread of a block is a fiber. A fiber runs until it has to wait: at __syncthreads() for its
// block, at a warp's shuffle, vote or __syncwarp() for its warp. The order in which fibers get
// their turn is the schedule: 0 upwards, 1 downwards, 2 and more shuffled; in the odd ones a warp
// goes as far as it gets without the others before the next has its turn, and so does a block of a
// cluster. What a kernel computes must not depend on it. Shared memory starts as NaN; of dynamic
// shared memory there is what the launch asks for, to the byte. A fiber that waits where another fiber
// of its group waits elsewhere, or has ended, is an error. Blocks run one after the other; one that
// gives way, for it waits for what another writes, goes on when the others have had their turn.
#pragma once
#include <math.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
static inline void __sanitizer_start_switch_fiber(void**, const void*, size_t) {}
static inline void __sanitizer_finish_switch_fiber(void*, const void**, size_t*) {}
#endif

#define BLASX_SIM  // for the few lines of a kernel that are PTX
#define __global__
#define __device__
#define __noinline__
#define __constant__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __restrict__
#define __shared__ static __attribute__((section("shared_memory")))
extern "C" char __start_shared_memory[] __attribute__((weak));
extern "C" char __stop_shared_memory[] __attribute__((weak));

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

// Kernels are not optimized, for they are compiled more often than run; what they spend their time in
// here is. What they do not use is not compiled if it is inline.
#define OPTIMIZED __attribute__((optimize("O2")))
#define UNCHECKED OPTIMIZED __attribute__((no_sanitize("address", "undefined")))

namespace sim {

enum State { RUNNING, AT_BLOCK, AT_PART, AT_GROUP, AT_WARP, AT_CLUSTER, AT_PHASE, ENDED };

// Where a fiber, or the scheduler, has left off
#if defined(__x86_64__)
struct Context { void* top; };
#else
typedef ucontext_t Context;
#endif

struct Fiber {
    Context context;
    char* stack;
    State state;
    int line;                  // where it waits
    unsigned count;            // collective operations so far; its parity picks the mailbox
    uint64_t mailbox[2][3];
    unsigned number;
    const struct Barrier* barrier;  // for whose phase it waits
    int phase;
};

// What 8 bytes of shared memory are as a barrier: a phase ends when none is missing, arrivals or bytes
struct Barrier {
    int bytes;
    short missing;
    signed char arrivals, phase;
};

// What scheduler.cpp has, and does
extern Fiber *fibers, *current;      // of the blocks that run together; that which runs
extern size_t threads_of_block;
extern unsigned cluster;             // blocks that run together, each with dynamic shared memory
extern char *dynamic, **memories;    // that of the current one's block; all of them
extern size_t part;                  // fibers that wait for each other at a barrier of their own
extern bool gave_way;
[[noreturn]] void fail(const char* what, int line);
void wait(State state, int line);
void launch(void (*body)(), dim3 blocks, dim3 threads, int schedule, size_t shared,
            unsigned blocks_of_cluster);

static void (*kernel)();         // of the parameters' types, which its caller knows
static const uint64_t* parameters;

template <class P> P parameter(uint64_t word)
{
    if constexpr (std::is_same_v<P, float>) {
        float x;
        std::memcpy(&x, &word, 4);
        return x;
    } else {
        return (P)word;
    }
}

template <class... P, size_t... I>
void call(std::index_sequence<I...>)
{
    ((void (*)(P...))kernel)(parameter<P>(parameters[I])...);
}

// Parameters are addresses and sizes, 64 bits each, as the launcher passes them, and floats.
template <class... P>
void launch(void (*what)(P...), dim3 blocks, dim3 threads, int schedule,
            const uint64_t* numbers, size_t shared = 0, unsigned blocks_of_cluster = 1)
{
    kernel = (void (*)())what;
    parameters = numbers;
    launch([] { call<P...>(std::index_sequence_for<P...>{}); }, blocks, threads, schedule, shared,
           blocks_of_cluster);
}

// -- barriers at an offset in shared memory, that of block `rank` where it is address_in(.., rank)

static inline unsigned address_in(unsigned at, unsigned rank) { return rank + 1 << 24 | at; }
// Arrays of a block's own are none of that memory: they are named by where they lie among such. All
// blocks of a cluster have the same ones here.
constexpr unsigned OF_ARRAYS = 1 << 23;
static inline unsigned offset_of(const void* p)
{
    const char* const at = (const char*)p;
    if (at >= __start_shared_memory && at < __stop_shared_memory)
        return OF_ARRAYS | unsigned(at - __start_shared_memory);
    return unsigned(at - dynamic);
}
static inline char* place_of(unsigned at)
{
    if (at & OF_ARRAYS) return __start_shared_memory + (at & OF_ARRAYS - 1);
    const size_t mine = (current - fibers) / threads_of_block;
    return (at >> 24 ? memories[(at >> 24) - 1] : memories[mine]) + (at & 0xffffff);
}
template <class T> static inline T in_cluster(const T& mine, unsigned block)
{
    const size_t rank = (current - fibers) / threads_of_block;
    return *(const T*)(memories[block] + ((const char*)&mine - memories[rank]));
}
static inline Barrier& barrier_at(unsigned at) { return *(Barrier*)place_of(at); }
static inline void make_barrier(unsigned at, unsigned arrivals)
{
    barrier_at(at) = {0, short(arrivals), (signed char)(arrivals), 0};
}
static inline void count(Barrier& b, int arrivals, int bytes)
{
    b.missing -= arrivals, b.bytes += bytes;
    if (!b.missing && !b.bytes) b.missing = b.arrivals, b.phase ^= 1;
}
static inline void arrive(unsigned at, unsigned bytes)
{
    barrier_at(at).bytes += bytes;
    count(barrier_at(at), 1, 0);
}
static inline void send(unsigned to, const void* from, unsigned bytes, unsigned barrier)
{
    std::memcpy(place_of(to), from, bytes);
    count(barrier_at(barrier), 0, -int(bytes));
}
// cp.async.bulk of whole packs of 16 bytes
static inline void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier)
{
    if ((to | bytes | unsigned(uintptr_t(from))) % 16 || !bytes) fail("a copy of packs", __LINE__);
    send(to, from, bytes, barrier);
}
static inline void return_bytes(void* to, unsigned from, unsigned bytes)
{
    if ((from | bytes | unsigned(uintptr_t(to))) % 16 || !bytes) fail("a copy of packs", __LINE__);
    std::memcpy(to, place_of(from), bytes);
}
static inline void await_phase(const Barrier& b, int phase)
{
    current->barrier = &b, current->phase = phase;
    if (b.phase == phase) wait(AT_PHASE, 0);
}
static inline void await(unsigned at, int phase) { await_phase(barrier_at(at), phase); }

// What every lane of the warp has put up: each mailbox is read before it can be filled again.
template <class T> struct Posted {
    unsigned parity;
    size_t base;

    Posted(T x, int line) : parity(current->count++ % 2), base((current - fibers) & ~31)
    {
        static_assert(sizeof x <= sizeof current->mailbox[0]);
        std::memcpy(current->mailbox[parity], &x, sizeof x);
        wait(AT_WARP, line);
    }
    T operator[](int lane) const
    {
        T x;
        std::memcpy(&x, fibers[base + lane].mailbox[parity], sizeof x);
        return x;
    }
};

// Lets the others go on, of this block and then of the grid: what this fiber wants is not there yet.
static inline void give_way(int line = __builtin_LINE())
{
    gave_way = true;
    wait(RUNNING, line);
}

// A barrier of the first `threads` threads of the block
static inline void meet(size_t threads, int line = __builtin_LINE())
{
    part = threads;
    wait(AT_PART, line);
}

static inline int lane() { return (current - fibers) & 31; }

// ldmatrix: lane l names row l % 8 of tile l / 8; lane (g, t) gets (g, 2 t ..) or (2 t .., g)
template <bool TRANSPOSED>
static inline void load_tiles(unsigned (&x)[4], const void* row, int line = __builtin_LINE())
{
    const int g = lane() / 4, t = lane() % 4;
    const Posted<const void*> rows(row, line);
    for (int i = 0; i < 4; ++i) {
        unsigned short pair[2];
        for (int e = 0; e < 2; ++e) {
            const int r = TRANSPOSED ? 2 * t + e : g, c = TRANSPOSED ? g : 2 * t + e;
            pair[e] = static_cast<const unsigned short*>(rows[8 * i + r])[c];
        }
        std::memcpy(&x[i], pair, 4);
    }
}

// stmatrix, the reverse
static inline void store_tiles(void* row, const unsigned (&x)[4], int line = __builtin_LINE())
{
    const int g = lane() / 4, t = lane() % 4;
    const Posted<void*> rows(row, line);
    for (int i = 0; i < 4; ++i)
        std::memcpy(static_cast<char*>(rows[8 * i + g]) + 4 * t, &x[i], 4);
}

// mma.m8n8k4: lane (g, t) has A(g, t), B(t, g) and C(g, 2 t), C(g, 2 t + 1)
void mma_m8n8k4(double& c0, double& c1, double a, double b, int line = __builtin_LINE());
// mma.m16n8k8 of the first 11 bits of numbers of single precision
void mma_m16n8k8(float (&c)[4], const float (&a)[4], const float (&b)[2],
                 int line = __builtin_LINE());
// mma.m16n8k16 of 2-byte numbers, each of which is one of `values`, summed in single precision
void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                  const float* values, int line);

// All numbers of two bytes, by these
template <class T> const float* every()
{
    static_assert(sizeof(T) == 2);
    float* const values = new float[1 << 16];
    for (unsigned bits = 0; bits < 1 << 16; ++bits) {
        T x;
        std::memcpy(&x, &bits, 2);
        values[bits] = float(x);
    }
    return values;
}
template <class T>
static inline void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                int line = __builtin_LINE())
{
    static const float* const values = every<T>();
    mma_m16n8k16(c, a, b, values, line);
}

}  // namespace sim

#define dynamic_shared sim::dynamic

#define __syncthreads() sim::wait(sim::AT_BLOCK, __LINE__)

static inline int __syncthreads_or(int x, int line = __builtin_LINE())
{
    static int any;
    any |= x != 0;
    sim::wait(sim::AT_BLOCK, line);
    const int result = any;
    sim::wait(sim::AT_BLOCK, line);
    any = 0;
    sim::wait(sim::AT_BLOCK, line);
    return result;
}
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline void __syncwarp(unsigned = ~0u, int line = __builtin_LINE())
{
    sim::wait(sim::AT_WARP, line);
}
template <class T>
T __shfl_sync(unsigned, T x, int source, int width = 32, int line = __builtin_LINE())
{
    const int me = sim::lane();
    return sim::Posted<T>(x, line)[(me & ~(width - 1)) | (source & (width - 1))];
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int = 32, int line = __builtin_LINE())
{
    const int me = sim::lane();
    return sim::Posted<T>(x, line)[me ^ mask];
}
static inline unsigned __reduce_max_sync(unsigned, unsigned x, int line = __builtin_LINE())
{
    const sim::Posted<unsigned> all(x, line);
    for (int i = 0; i < 32; ++i) x = x < all[i] ? all[i] : x;
    return x;
}
static inline unsigned __reduce_add_sync(unsigned, unsigned x, int line = __builtin_LINE())
{
    const sim::Posted<unsigned> all(x, line);
    x = 0;
    for (int i = 0; i < 32; ++i) x += all[i];
    return x;
}
static inline unsigned __reduce_min_sync(unsigned m, unsigned x, int line = __builtin_LINE())
{
    return ~__reduce_max_sync(m, ~x, line);
}
static inline unsigned __ballot_sync(unsigned, bool x, int line = __builtin_LINE())
{
    const sim::Posted<int> all(x, line);
    unsigned bits = 0;
    for (int i = 0; i < 32; ++i) bits |= unsigned(all[i] != 0) << i;
    return bits;
}

static inline int atomicAdd(int* at, int x)  // fibers run by turns
{
    const int before = *at;
    *at += x;
    return before;
}
static inline unsigned atomicOr(unsigned* at, unsigned x)
{
    const unsigned before = *at;
    *at |= x;
    return before;
}
static inline unsigned atomicMax(unsigned* at, unsigned x)
{
    const unsigned before = *at;
    *at = x < before ? before : x;
    return before;
}
template <class T> static inline T atomicMin(T* at, T x)
{
    const T before = *at;
    *at = before < x ? before : x;
    return before;
}
static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline long long min(long long a, long long b) { return b < a ? b : a; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline bool __any_sync(unsigned m, bool x, int line = __builtin_LINE())
{
    return __ballot_sync(m, x, line) != 0;
}
static inline bool __all_sync(unsigned m, bool x, int line = __builtin_LINE())
{
    return __ballot_sync(m, x, line) == m;
}

static inline int __float_as_int(float x) { int i; std::memcpy(&i, &x, 4); return i; }
static inline unsigned __float_as_uint(float x) { return unsigned(__float_as_int(x)); }
static inline float __int_as_float(int i) { float x; std::memcpy(&x, &i, 4); return x; }
static inline int __double2hiint(double x) { int64_t i; std::memcpy(&i, &x, 8); return int(i >> 32); }
static inline int __double2loint(double x) { int64_t i; std::memcpy(&i, &x, 8); return int(i); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
static inline long long __double2ll_rn(double x) { return llrint(x); }
static inline int __float2int_rn(float x) { return int(lrintf(x)); }
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T> void __stcs(T* to, T x) { *to = x; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
static inline long long __double_as_longlong(double x)
{
    long long i;
    std::memcpy(&i, &x, 8);
    return i;
}
static inline double __longlong_as_double(long long i)
{
    double x;
    std::memcpy(&x, &i, 8);
    return x;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned select)
{
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i)
        result |= unsigned(bytes >> 8 * (select >> 4 * i & 7) & 255) << 8 * i;
    return result;
}
static inline double __hiloint2double(int hi, int lo)
{
    const int64_t i = int64_t(uint64_t(uint32_t(hi)) << 32 | uint32_t(lo));
    double x;
    std::memcpy(&x, &i, 8);
    return x;
}

// -- Hopper's copies of boxes and products of four warps (kernels/hopper.cuh), done when they are
// asked for: that who reads has waited is not seen here, that he waits for what comes is

// What a launch passes as an address (gpu.py)
struct alignas(64) TensorMap {
    uint64_t address, extents[4], strides[3], box[4], size, room[3];
    explicit TensorMap(uint64_t from) { std::memcpy(this, (const void*)from, sizeof *this); }
};

// The byte that hardware swizzles `at` to
OPTIMIZED static inline unsigned swizzled(unsigned at) { return at ^ (at >> 7 & 7) << 4; }

static inline void load_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                            int z, int w)
{
    const int size = int(map.size), lines = int(map.box[1] * map.box[2] * map.box[3]);
    if (to % 1024 || map.box[0] * size != 128) sim::fail("a box", __LINE__);
    for (int line = 0; line < lines; ++line)
        for (int i = 0; i < 128 / size; ++i) {
            const int of = line / int(map.box[1]);
            const int64_t at[] = {x + i, y + line % int(map.box[1]), z + of % int(map.box[2]),
                                  w + of / int(map.box[2])};
            int64_t from = size * at[0];
            bool inside = uint64_t(at[0]) < map.extents[0];
            for (int k = 1; k < 4; ++k)
                inside &= uint64_t(at[k]) < map.extents[k],
                from += at[k] * int64_t(map.strides[k - 1]);
            char* const place = sim::place_of(swizzled(to + 128 * line + size * i));
            if (inside) std::memcpy(place, (const char*)map.address + from, size);
            else std::memset(place, 0, size);
        }
    sim::count(sim::barrier_at(barrier), 0, -128 * lines);
}
static inline void load_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                            int z)
{
    load_box(to, map, barrier, x, y, z, 0);
}
static inline void load_box(unsigned, const TensorMap&, unsigned, int, int, int, unsigned short)
{
    sim::fail("boxes for all blocks of a cluster are not simulated", __LINE__);
}
static inline void arrive_in(unsigned, unsigned)
{
    sim::fail("barriers of a cluster's blocks are not simulated", __LINE__);
}

static inline void wait_turn(int) {}
static inline void give_turn(int) {}
static inline void meet(int, int line = __builtin_LINE()) { sim::wait(sim::AT_GROUP, line); }
static inline bool any_of_group(bool x, int group, int line = __builtin_LINE())
{
    static bool any[8];
    any[group] |= x;
    meet(group, line);
    const bool result = any[group];
    meet(group, line);
    any[group] = false;
    meet(group, line);
    return result;
}
template <int> void give_registers() {}
template <int> void take_registers() {}
static inline void begin_products() {}
static inline void end_products() {}

// A group's products are made when all of its warps have asked for them: who has awaited some knows
// that all have come so far.
template <int> void await_products(int line = __builtin_LINE())
{
    static sim::Barrier groups[8];
    sim::Barrier& group = groups[threadIdx.x / 128];
    if (!group.arrivals) group = {0, 4, 4, 0};
    const int phase = group.phase;
    __syncwarp(~0u, line);
    if (sim::lane() == 0) sim::count(group, 1, 0);
    sim::await_phase(group, phase);
}
static inline void compute_first(float) {}
template <class T, int R> void keep(T (&)[R]) {}

namespace sim {

template <class T> const float* const values = every<T>();

// Numbers k = 0 .. of a line of a tile that the word names in a block's memory, where the sanitizers
// look, 16 bytes that lie together at once
template <int ACROSS, class T, int K>
OPTIMIZED void fetch(T (&x)[K], const char* memory, uint64_t tile, int line)
{
    constexpr int TOGETHER = ACROSS ? 1 : 16 / sizeof(T);
    const unsigned at = (tile & 0x3fff) << 4, next = (tile >> 16 & 0x3fff) << 4;
    for (int k = 0; k < K; k += TOGETHER) {
        const unsigned from = ACROSS ? at + 128 * k + line / 64 * next + line % 64 * 2
                                     : at + 128 * line + sizeof(T) * k;
        std::memcpy(&x[k], memory + swizzled(from), TOGETHER * sizeof(T));
    }
}

// As numbers
template <int ACROSS, class T, int K>
UNCHECKED void fetch(double (&x)[K], const char* memory, uint64_t tile, int line, T)
{
    if constexpr (sizeof(T) == 2) {
        unsigned short bits[K];
        fetch<ACROSS>(bits, memory, tile, line);
        for (int k = 0; k < K; ++k) x[k] = values<T>[bits[k]];
    } else {
        T numbers[K];
        fetch<ACROSS>(numbers, memory, tile, line);
        for (int k = 0; k < K; ++k) x[k] = numbers[k];
    }
}

// Rows a[0], a[1] of A, 32 bytes of k, this lane's g and g + 8
template <class T, int FRESH, int ACROSS, class S, int R, int K>
UNCHECKED void multiply(S (&sums)[R], const double (&a)[2][K], uint64_t b)
{
    const char* const memory = place_of(0);
    const int first = lane() % 4 * 2;
    for (int j = 0; j < R / 4; ++j)
        for (int e = 0; e < 2; ++e) {
            double column[K], sum[2];
            fetch<ACROSS>(column, memory, b, 8 * j + first + e, T());
            for (int h = 0; h < 2; ++h) sum[h] = FRESH ? 0 : sums[4 * j + 2 * h + e];
            for (int k = 0; k < K; ++k)
                for (int h = 0; h < 2; ++h) sum[h] += a[h][k] * column[k];
            for (int h = 0; h < 2; ++h) {
                S& to = sums[4 * j + 2 * h + e];
                if constexpr (std::is_same_v<S, int>) to = int(unsigned(int64_t(sum[h])));
                else to = S(sum[h]);
            }
        }
}

}  // namespace sim

template <int FRESH = 0, int A_ACROSS = 0, int B_ACROSS = 0, class S, int R, class T>
OPTIMIZED void multiply(S (&sums)[R], uint64_t a, uint64_t b, T)
{
    constexpr int K = 32 / sizeof(T);
    const char* const memory = sim::place_of(0);
    double rows[2][K];
    for (int h = 0; h < 2; ++h)
        sim::fetch<A_ACROSS>(rows[h], memory, a,
                             threadIdx.x / 32 % 4 * 16 + 8 * h + sim::lane() / 4, T());
    sim::multiply<T, FRESH, B_ACROSS>(sums, rows, b);
}
template <int FRESH = 0, int B_ACROSS = 0, int R, class T>
void multiply_held(float (&sums)[R], const int* a, uint64_t b, T, int line = __builtin_LINE())
{
    double rows[2][16];
    for (int i = 0; i < 4; ++i) {
        const sim::Posted<int> pairs(a[i], line);
        for (int k = 0; k < 8; ++k) {
            T x;
            x.bits = (unsigned short)(pairs[sim::lane() / 4 * 4 + k / 2] >> k % 2 * 16);
            rows[i % 2][i / 2 * 8 + k] = double(float(x));
        }
    }
    sim::multiply<T, FRESH, B_ACROSS>(sums, rows, b);
}
