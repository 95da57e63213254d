// lines.cuh: matrices that lie by rows without gaps, as lines: what is between memory and the
// shared memory of a team of TEAM warps, the whole of a block if there are more than one.
//
// A line begins anywhere in 16 bytes. All copies are 16 bytes, from the last multiple before it on,
// so it lies in shared memory as far past such a multiple as in memory. Threads copy 16 bytes each or,
// BULK, the hardware does all of a line (Hopper's), which a thread asks for.
#pragma once
#include "async.cuh"
#include "barriers.cuh"
#include "block.cuh"

constexpr int MEET = 32 * TEAM;                   // threads of a team
constexpr int PACK = 16 / sizeof(scalar_t);       // numbers to 16 bytes
constexpr int QUARTER = 32 / sizeof(scalar_t), CHUNK = 4 * QUARTER;  // of 128 bytes
static_assert(DEEP % CHUNK == 0);

__device__ inline int in_team() { return TEAM == 1 ? threadIdx.x % 32 : threadIdx.x; }
__device__ inline void meet()
{
    if (TEAM == 1) __syncwarp();
    else __syncthreads();
}

// The room of a line of so many numbers, wherever it begins in 16 bytes
__host__ __device__ constexpr int room(int count) { return (count + 2 * PACK - 2) / PACK * PACK; }
// How far past a multiple of 16 bytes p is
__device__ inline int past(const scalar_t* p) { return int(size(p) % 16 / sizeof(scalar_t)); }

// `to` := the line of `count` numbers at `from`, which is as far past a multiple of 16 bytes
__device__ inline void bring(scalar_t* to, const scalar_t* from, int count)
{
    const int before = past(from), end = count + before;
    #pragma unroll 2
    for (int e = in_team() * PACK; e < end; e += MEET * PACK)
        copy_async<16, true>(to - before + e, from - before + e,
                             min(PACK, end - e) * int(sizeof(scalar_t)));
}

// From a row of a slice, DEEP columns of rows of k, to the next: as many past a multiple of 16 bytes
// as in memory, and what else is in 16 bytes with a row's ends is in none with another's
__host__ __device__ constexpr int slice_pitch(int k)
{
    return DEEP + PACK - 1 + (k + PACK * CHUNK - DEEP - PACK + 1) % PACK;
}

// `to` := the slice of these rows of k that is `depth` columns from column p on, a line each
__device__ inline void bring_slice(scalar_t* to, const scalar_t* from, int rows, int k, int p,
                                   int depth)
{
    constexpr int PACKS = DEEP / PACK + 1;  // of a row at most
    #pragma unroll 2
    for (int e = in_team(); e < rows * PACKS; e += MEET) {
        const int row = e / PACKS, begin = row * k;
        const int before = (past(from) + begin) % PACK, at = e % PACKS * PACK - before;
        if (at < depth)
            copy_async<16, true>(to + row * slice_pitch(k) + at, from + begin + p + at,
                                 min(PACK, depth - at) * int(sizeof(scalar_t)));
    }
}

// The barrier on which what the hardware brings to a stage of this team completes
__device__ inline unsigned barrier_of(int stage)
{
    __shared__ word barriers[WARPS / TEAM][STAGES];
    return shared_address(&barriers[TEAM == 1 ? warp() : 0][stage]);
}
__device__ inline void make_barriers()
{
    if (in_team() == 0) {
        for (int s = 0; s < STAGES; ++s) make_barrier(barrier_of(s), 1);
        show_barriers();
    }
    meet();
}

// A line that the hardware brings; `end` is that of the array, past which nothing is read: what of
// the line is in 16 bytes with it is copied number by number.
struct Line {
    scalar_t* to;
    const scalar_t* from;
    int before, count, whole;  // from a multiple of 16 bytes on

    __device__ Line() : count(0), whole(0) {}
    __device__ Line(scalar_t* at, const scalar_t* line, int numbers, const scalar_t* end)
        : to(at - past(line)), from(line - past(line)), before(past(line)), count(before + numbers),
          whole((count + PACK - 1) / PACK * PACK)
    {
        if (whole > end - from) whole = count / PACK * PACK;
    }
    __device__ unsigned bytes() const { return whole * unsigned(sizeof(scalar_t)); }
    __device__ void copy_rest() const
    {
        for (int e = max(whole, before); e < count; ++e) to[e] = from[e];
    }
    __device__ void copy(unsigned barrier) const
    {
        if (whole) copy_bytes(shared_address(to), from, bytes(), barrier);
    }
};
// Has them brought to a stage: all that is to come is told before any of it comes.
__device__ inline void deliver(int stage, const Line& x, const Line& y)
{
    x.copy_rest(), y.copy_rest();
    expect(barrier_of(stage), x.bytes() + y.bytes());
    x.copy(barrier_of(stage)), y.copy(barrier_of(stage));
}

// From a row of n to the next in shared memory: as in memory or, PADDED, an odd number of times
// `unit` numbers
__host__ __device__ constexpr int row_pitch(int n, int unit)
{
    return PADDED ? unit * ((n + unit - 1) / unit | 1) : n;
}

// f(row, at) for every 16 bytes of rows of n, a multiple of 16 bytes, that begin `before` numbers past
// one: where in a row they begin
template <class F> __device__ void each_pack(int rows, int n, int before, F f)
{
    const int packs = n / PACK + (before > 0), down = MEET / packs, along = MEET % packs;
    int row = in_team() / packs, pack = in_team() % packs;
    #pragma unroll 2
    while (row < rows) {
        f(row, pack * PACK - before);
        row += down, pack += along;
        if (pack >= packs) pack -= packs, ++row;
    }
}

// `to` := the rows of n at `from`, from one of which to the next there it is `pitch`
__device__ inline void bring(scalar_t* to, int pitch, const scalar_t* from, int rows, int n)
{
    if (!PADDED || pitch == n) return bring(to, from, rows * n);
    each_pack(rows, n, past(from), [=](int row, int at) {
        copy_async<16, true>(to + row * pitch + at, from + row * n + at,
                             min(PACK, n - at) * int(sizeof(scalar_t)));
    });
}

struct alignas(16) Pack { scalar_t x[PACK]; };

// The 16 bytes at `to`, number e and those after it, := f of those of `image`, where they are from
// number `first` to `end`
template <class F>
__device__ void send_pack(scalar_t* to, const scalar_t* image, int e, int first, int end, F f)
{
    Pack pack = *reinterpret_cast<const Pack*>(image);
    #pragma unroll
    for (int u = 0; u < PACK; ++u) pack.x[u] = f(pack.x[u]);
    if (e >= first && e + PACK <= end) {
        *reinterpret_cast<Pack*>(to) = pack;
    } else {
        #pragma unroll
        for (int u = 0; u < PACK; ++u)
            if (e + u >= first && e + u < end) to[u] = pack.x[u];
    }
}

// The line of `count` numbers at `to` := f of those of `image`, which is as far past a multiple of
// 16 bytes
template <class F> __device__ void send(scalar_t* to, const scalar_t* image, int count, F f)
{
    const int before = past(to), end = count + before;
    to -= before, image -= before;
    for (int e = in_team() * PACK; e < end; e += MEET * PACK)
        send_pack(to + e, image + e, e, before, end, f);
}

// The rows of n at `to` likewise, of those of `image`, from one of which to the next it is `pitch`
template <class F>
__device__ void send(scalar_t* to, const scalar_t* image, int pitch, int rows, int n, F f)
{
    if (!PADDED || pitch == n) return send(to, image, rows * n, f);
    each_pack(rows, n, past(to), [=](int row, int at) {
        send_pack(to + row * n + at, image + row * pitch + at, at, 0, n, f);
    });
}
