// attention_gradients.cuh: attention_backward.cuh on Hopper's tensor cores (attention_boxes.cuh). A
// group has 64 of the block's lines X and Y, and goes through those of the other side, U and W, in
// tiles of LINES:
//
//     S = c X U^T,    P = 2^(S + L),    dP = Y W^T,    dS = P (dP - D)
//
// By queries X = Q, Y = dY, U = K, W = V, and dQ = dS U. By keys all that is transposed: X = K,
// Y = V, U = Q, W = dY, and dK = dS U, dV = P W. S and dP stay in the registers in which the
// products leave them, P and dS are taken from there.
//
// Both products of a tile are asked for together: dP runs while S becomes P, dV while dP becomes dS,
// and dS U with the next S. It is awaited with that one. Seven products where five would do, as dQ has
// a kernel of its own: what blocks of keys would add to it has to be added in one order.
#pragma once
#include "attention_boxes.cuh"

using Sums = float[WIDTH / 2];
using Numbers = float[LINES / 2];
using Factors = int[LINES / 4];
constexpr bool HALF = IS_HALF<scalar_t>;

__device__ inline void pack(Factors& to, const Numbers& x)
{
    #pragma unroll
    for (int i = 0; i < LINES / 4; ++i) to[i] = int(two_of(x[2 * i], x[2 * i + 1], scalar_t()));
}

// The exponent by which dS of a warp's 16 lines is scaled where it is to be half precision: the
// largest number of the first tile that has any gets below 2^TOP, and where a later one would not, dS
// and the sums are scaled down. 60 at most, so that nothing overflows that is.
struct Lift {
    int e = 0;
    float up = 1;
    bool some = false;

    __device__ void fit(Numbers& ds, Sums& sums)
    {
        float largest = 0;
        #pragma unroll
        for (int i = 0; i < LINES / 2; ++i) largest = fmaxf(largest, fabsf(ds[i]));
        const unsigned most = __reduce_max_sync(ALL, __float_as_uint(largest));
        if (most == 0 || (some && most < (127u + TOP) << 23)) return;
        const int now = min(e + scale_of(most), 60);
        const float by = near_power(now - e);
        #pragma unroll
        for (int i = 0; i < LINES / 2; ++i) ds[i] *= by;
        #pragma unroll
        for (int i = 0; i < WIDTH / 2; ++i) sums[i] *= by;
        e = now, up = near_power(e), some = true;
    }
};

template <bool KEYED> struct Walk {
    static_assert(!KEYED || LINES <= 96);  // a thread of the producer has one
    static constexpr unsigned STAGE = 2 * PART<LINES>;

    const Looks& looks;
    const float *L, *D;
    int first, head, batch;
    // Tiles of the other side from here on, up to there
    int begin = KEYED ? looks.first_query(first) / LINES : 0, end = tiles(first + ROWS);
    unsigned barriers = shared_address(dynamic_shared);
    unsigned x = boxes_from(barriers + 8 + 16 * STAGES), y = x + PART<ROWS>;
    Ring<STAGE, 1 + KEYED * LINES> ring{y + PART<ROWS>, barriers + 8, barriers + 8 + 8 * STAGES};

    // How many there are for rows before this one
    __device__ int tiles(int row) const
    {
        return ((KEYED ? looks.m : looks.keys(row - 1)) + LINES - 1) / LINES;
    }
    // L, then D, of a stage's queries
    __device__ float* numbers(Place<> of) const
    {
        return reinterpret_cast<float*>(dynamic_shared + (ring.stages + STAGES * STAGE
                                                          - shared_address(dynamic_shared)))
               + of.stage * 2 * LINES;
    }
    __device__ void make() const
    {
        if (thread() == 0) {
            make_barrier(barriers, 1);
            ring.make();
            show_barriers();
        }
        __syncthreads();
    }

    __device__ void produce(const TensorMap& X, const TensorMap& Y, const TensorMap& U,
                            const TensorMap& W) const
    {
        give_registers<GIVEN>();
        const int mine = thread() - 128 * GROUPS;
        Place<> at;
        if (mine == 0 && begin < end) {
            expect(barriers, 2 * PART<ROWS>);
            load_lines<ROWS>(x, X, barriers, first, head, batch);
            load_lines<ROWS>(y, Y, barriers, first, head, batch);
            #pragma unroll 1
            for (int tile = begin; tile < end; ++tile, at.next()) {
                const unsigned to = ring.at(at), full = ring.full + 8 * at.stage;
                ring.emptied(at);
                expect(full, STAGE);
                load_lines<LINES>(to, U, full, tile * LINES, head, batch);
                load_lines<LINES>(to + PART<LINES>, W, full, tile * LINES, head, batch);
            }
        }
        if (KEYED && mine >= 32 && mine < 32 + LINES)
            #pragma unroll 1
            for (int tile = begin; tile < end; ++tile, at.next()) {
                const int query = tile * LINES + mine - 32;
                const bool there = query < looks.m;
                const float l = there ? L[query] : NOTHING, d = there ? D[query] : 0.0f;
                ring.emptied(at);
                float* const to = numbers(at) + mine - 32;
                to[0] = l, to[LINES] = d;
                arrive(ring.full + 8 * at.stage);
            }
    }

    // of_p += P W if KEYED, of_ds += dS U, for the group's lines; both scaled by 2^UP, and of_ds by
    // 2^e, too, for the e that is returned
    __device__ int multiply(Sums& of_p, Sums& of_ds, float c) const
    {
        take_registers<TAKEN>();
        const int lines = 64 * group(), mine = first + 16 * uniform_warp();
        const int t = lane() % 4;
        const unsigned at_x = x + lines * TILE_ROW, at_y = y + lines * TILE_ROW;
        float l[2], d[2];
        if (!KEYED)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = mine + 8 * h + lane() / 4;
                l[h] = row < looks.m ? L[row] : NOTHING;
                d[h] = row < looks.m ? D[row] : 0.0f;
            }
        Numbers s, dp;
        Factors p, ds;
        Lift lift;
        Place<> at;
        // The group's own lines may look at less than the block's.
        int tile = begin;
        const int from = KEYED ? looks.first_query(first + lines) / LINES : 0;
        const int to = KEYED ? end : tiles(first + lines + 64);
        #pragma unroll 1
        for (; tile < end && tile < from; ++tile) ring.filled(at), ring.done(at);
        if (tile < to) await(barriers, 0);
        keep(of_p), keep(of_ds);
        begin_products();  // the zeros are there before
        #pragma unroll 1
        for (; tile < to; ++tile) {
            ring.filled(at);
            const unsigned u = ring.at(at), w = u + PART<LINES>;
            begin_products();
            ask_along<LINES>(s, at_x, u);
            ask_along<LINES>(dp, at_y, w);
            await_products<1>();
            keep(s), keep(ds);
            if (KEYED && !HALF && WIDTH == 64) keep(of_p), keep(p);
            if (tile > begin && tile > from) ring.done_before(at);
            const float* const of = numbers(at);
            if (!(KEYED ? looks.all(tile * LINES, mine + 15)
                        : looks.all(mine, tile * LINES + LINES - 1)))
                looks.template hide<KEYED, 1, LINES / 8>(
                    [&](int, int j, int e) -> float& { return s[4 * j + e]; }, mine, tile * LINES);
            #pragma unroll
            for (int j = 0; j < LINES / 8; ++j) {
                Neighbours more{};
                if (KEYED) more = *reinterpret_cast<const Neighbours*>(of + 8 * j + 2 * t);
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float by = !KEYED ? l[e / 2] : e % 2 ? more.second : more.first;
                    s[4 * j + e] = power_of(fmaf(s[4 * j + e], c, by));
                }
            }
            if (KEYED) {
                pack(p, s);
                keep(p), keep(of_p);
                begin_products();
                ask_across<LINES>(of_p, p, w);
                await_products<1>();
            } else {
                await_products<0>();
            }
            keep(dp), keep(of_ds);
            #pragma unroll
            for (int j = 0; j < LINES / 8; ++j) {
                Neighbours less{};
                if (KEYED) less = *reinterpret_cast<const Neighbours*>(of + LINES + 8 * j + 2 * t);
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float by = !KEYED ? d[e / 2] : e % 2 ? less.second : less.first;
                    float& to = dp[4 * j + e];
                    to = s[4 * j + e] * (HALF ? fmaf(to, lift.up, -by * lift.up) : to - by);
                }
            }
            if (HALF) lift.fit(dp, of_ds);
            pack(ds, dp);
            keep(ds), keep(of_ds);
            begin_products();
            ask_across<LINES>(of_ds, ds, u);
            if (HALF) await_products<0>(), keep(of_ds), keep(ds);  // fit() may multiply these
            else if (KEYED && WIDTH > 64) await_products<1>();     // registers are short
            if (KEYED && (HALF || WIDTH > 64)) keep(of_p), keep(p);
            at.next();
        }
        await_products<0>();
        keep(of_ds), keep(ds);
        if (KEYED) keep(of_p), keep(p);
        if (tile > begin && tile > from) ring.done_before(at);
        #pragma unroll 1
        for (; tile < end; ++tile) ring.filled(at), ring.done(at);
        return lift.e;
    }
};

__device__ inline void put_gradient(scalar_t* to, size next, const Sums& x, int first, int count,
                                    int width, float factor)
{
    put_lines<1, WIDTH / 8>(to, next, [&](int, int j, int e) { return x[4 * j + e]; },
                            first + 16 * warp(), count, width,
                            [=](int, int) { return factor; });
}
