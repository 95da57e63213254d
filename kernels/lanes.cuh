// lanes.cuh: small matrices on the lanes of a warp.
//
// A team of LR x LC lanes holds one matrix of up to N x N in registers; a warp has 32 / (LR LC)
// teams. Lane (g, t) of a team, t running first, holds RN rows and CN columns:
//
//     row(i) = g + LR i          i < RN = N / LR
//     col(s) = CV (LC j + t) + e s = CV j + e < CN = N / LC
//
// so that CV neighbouring columns are one load where a matrix lies by rows, a team's loads fill
// whole sectors, and a rank-one update needs RN + CN numbers from other lanes for RN CN products.
// A team with whole rows (LC = 1) may have any number of lanes, so that none of its rows is past a
// small odd N and few lanes of a warp are left over: those have no matrix.
// STAGED, what all lanes of such a team want of a row or a column goes by shared memory, 16 bytes
// to a load where a shuffle brings 4; and where packs are of 16 bytes members come and go that way,
// too. STAGED of 2, in LU, the pivot's reciprocal and tag go with its row.
// Every loop is unrolled: an array that is indexed by constants alone stays in registers.
// No lane ever leaves early: the shuffles want the full warp. A team past the end of the batch
// works on a matrix of zero rows and columns.
#pragma once
#include "async.cuh"
#include "barriers.cuh"
#include "memory.cuh"
#include "panel_rows.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int LR = 8;       // lanes down the rows
constexpr int LC = 4;       // lanes across the columns
constexpr int CV = 2;       // neighbouring columns in a lane
constexpr int WARPS = 1;    // warps per block
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
constexpr int ONE_LINE = 0;  // 1: a block's members are stored as one line; 2: loaded, too
constexpr int STAGED = 0;    // 1: teams with whole rows tell each other by shared memory; 2: LU's
                             // pivots with their reciprocals and tags
#endif
constexpr int TEAM = LR * LC, TEAMS = 32 / TEAM, RN = (N + LR - 1) / LR, CN = N / LC;
constexpr int KEEP = (N + TEAM - 1) / TEAM;
constexpr int MEMBERS = WARPS * TEAMS;          // of a block
constexpr bool FULL = TEAMS * TEAM == 32;       // each lane is of a team
constexpr bool TILES = LR == 8 && LC == 4 && CV == (sizeof(scalar_t) == 16 ? 1 : 2);  // tiles.cuh
static_assert(!STAGED || LC == 1);
static_assert(STAGED < 2 || TEAM > 1);
static_assert((FULL ? (LR & (LR - 1)) == 0 && N % LR == 0 : LC == 1) && N % (LC * CV) == 0
              && CV * sizeof(scalar_t) <= 16);

using Block = scalar_t[RN][CN];   // a lane's part of a matrix
using Column = scalar_t[RN];      // a lane's part of a column

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline int team() { return lane() / TEAM; }    // the team's number in its warp
__device__ inline int member() { return lane() % TEAM; }  // the lane's number in its team
__device__ inline int g() { return member() / LC; }
__device__ inline int t() { return member() % LC; }
__device__ inline int row(int i) { return g() + LR * i; }
__device__ inline int col(int s) { return CV * (LC * (s / CV) + t()) + s % CV; }

// The lanes and the slot of column k
__host__ __device__ constexpr int slot_of(int k) { return k / (CV * LC) * CV + k % CV; }
__host__ __device__ constexpr int t_of(int k) { return k / CV % LC; }
// The least and the largest column in slot s, whatever the lane
__host__ __device__ constexpr int first_col(int s) { return CV * LC * (s / CV) + s % CV; }
__host__ __device__ constexpr int last_col(int s) { return first_col(s) + CV * (LC - 1); }

// The number of the team's matrix in the batch. A team past the end, or of lanes left over, looks
// at another's, has `here` false, and neither loads nor stores.
struct Place {
    size b;
    bool here;
};
__device__ inline Place team_matrix(size batch)
{
    const size b = size(blockIdx.x) * MEMBERS + threadIdx.x / 32 * TEAMS + team();
    return {b < batch ? b : batch - 1, b < batch && (FULL || team() < TEAMS)};
}


// -- what crosses between lanes

template <class T> __device__ T from(T x, int source)  // of a member of the team
{
    if constexpr (TEAM == 1) return x;
    else if constexpr (FULL) return of_lane<TEAM>(x, source);
    else return of_lane(x, lane() - member() + source);
}

// Column k, from the lanes that hold it to all lanes of their rows
__device__ inline void column(const Block& a, int k, Column& c)
{
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        c[i] = a[i][slot_of(k)];
        if (LC > 1) c[i] = from(c[i], g() * LC + t_of(k));
    }
}

// The largest or least over the rows of a team. All t hold the same.
__device__ inline unsigned team_max(unsigned x)
{
    if (TEAM == 32) return __reduce_max_sync(ALL, x);
    #pragma unroll
    for (int d = LC; d < TEAM; d *= 2) {
        unsigned y;
        if constexpr (FULL) {
            y = __shfl_xor_sync(ALL, x, d);
        } else {  // x is of the d members from this one on, after the last the first
            const int next = member() + (2 * d < TEAM ? d : TEAM - d);
            y = from(x, next < TEAM ? next : next - TEAM);
        }
        x = x < y ? y : x;
    }
    return x;
}
// The sum over the rows of a team
template <class T> __device__ T team_sum(T x)
{
    if constexpr (FULL) {
        #pragma unroll
        for (int d = LC; d < TEAM; d *= 2) x = add(x, from(x, member() ^ d));
        return x;
    } else {
        T s = from(x, 0);
        #pragma unroll
        for (int d = 1; d < TEAM; ++d) s = add(s, from(x, d));
        return s;
    }
}
// The members of the team for which x holds, one bit each; of those that share rows only t = 0
__host__ __device__ constexpr unsigned first_in_rows(int g)
{
    return g < LR ? 1u << g * LC | first_in_rows(g + 1) : 0;
}
__device__ inline unsigned team_ballot(bool x)
{
    return TEAM == 1 ? x : __ballot_sync(ALL, x) >> (lane() - member()) & first_in_rows(0);
}
__device__ inline unsigned team_min(unsigned x) { return ~team_max(~x); }

// x[i] for an i known only at run time
template <class T> __device__ T pick(const T (&x)[RN], int i)
{
    T r = x[0];
    #pragma unroll
    for (int q = 1; q < RN; ++q) r = q == i ? x[q] : r;
    return r;
}

// One number for each k of a sweep, spread over the members of the team
template <class T> __device__ void keep(T (&x)[KEEP], int k, T value)
{
    if (member() == k % TEAM) x[k / TEAM] = value;
}
template <class T> __device__ T kept(const T (&x)[KEEP], int k)
{
    return from(x[KEEP == 1 ? 0 : k / TEAM], k % TEAM);
}
__device__ inline void store_kept(const int (&x)[KEEP], int* to, int count)
{
    #pragma unroll
    for (int q = 0; q < KEEP; ++q)
        if (member() + TEAM * q < count) to[member() + TEAM * q] = x[q];
}

// -- memory

struct alignas(CV * sizeof(scalar_t)) Pack { scalar_t x[CV]; };

// a := A where wanted(row, col), else zero. A pack is loaded whole if its first column is wanted.
template <class Wanted>
__device__ void load(Block& a, const Strided<const scalar_t>& A, bool packs, Wanted wanted)
{
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; ++s) a[i][s] = scalar_t{};
    if (packs) {
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            #pragma unroll
            for (int s = 0; s < CN; s += CV)
                if (wanted(row(i), col(s))) {
                    const Pack pack = *reinterpret_cast<const Pack*>(&A(row(i), 0) + col(s));
                    #pragma unroll
                    for (int e = 0; e < CV; ++e) a[i][s + e] = pack.x[e];
                }
    } else {
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            #pragma unroll
            for (int s = 0; s < CN; ++s)
                if (wanted(row(i), col(s))) a[i][s] = A(row(i), col(s));
    }
}

// A := a where wanted(place, col), row i of the lane to row place[i]. Of a pack whose last column
// is wanted all are. A may be where the team loaded from: no lane stores before all have loaded.
template <class Wanted>
__device__ void store(const Block& a, const Strided<scalar_t>& A, bool packs,
                      const int (&place)[RN], Wanted wanted)
{
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; s += CV) {
            if (packs && wanted(place[i], col(s + CV - 1))) {
                Pack pack;
                #pragma unroll
                for (int e = 0; e < CV; ++e) pack.x[e] = a[i][s + e];
                *reinterpret_cast<Pack*>(&A(place[i], 0) + col(s)) = pack;
            } else {
                #pragma unroll
                for (int e = 0; e < CV; ++e)
                    if (wanted(place[i], col(s + e))) A(place[i], col(s + e)) = a[i][s + e];
            }
        }
}

// STAGED, what a team's lanes all want of row or column k: N numbers in shared memory, for one k
// and the next, teams 16 bytes further apart so that they meet no bank twice. STAGED of 2, in these
// is what LU tells beside a row, z's in 32.
constexpr bool TOLD = STAGED && TEAM > 1;
constexpr int BESIDE = STAGED == 2 && PAD == 1 ? 2 : 1;
__device__ inline scalar_t* staged(int k)
{
    __shared__ Quad of_block[WARPS][2][TEAMS + !FULL][TOLD ? (N - 1) / PAD + 1 + BESIDE : 1];
    return of_block[threadIdx.x / 32][k % 2][team()]->x;
}

// Members that follow each other without gaps are one line of memory. ONE_LINE, where their numbers
// do not come in packs, those of a block are taken from shared memory by the hardware, in one copy:
// it meets every sector once, where a number stored alone is a sector of its own. The line must
// begin and end at multiples of 16 bytes, and no member of the block be missing. ONE_LINE of 2,
// they come that way, too, where lanes with whole rows would ask for a line of memory each, and, in
// packs or not, where rows of a tile begin within 32 bytes of memory.
#if defined(BLASX_SIM) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
constexpr int LINES = RAGGED ? 0 : ONE_LINE;
#else
constexpr int LINES = 0;
#endif
struct alignas(16) Line {
    scalar_t x[LINES ? MEMBERS * N * N + (RN * LR - N) * N : 1];
    word arrived;  // a barrier
};

// STAGED, those of a warp that are N x N by rows come and go in packs, side by side. In shared
// memory the rows of a lane lie together, and lanes a pack more than their rows apart: they meet no
// bank twice.
constexpr bool BY_WARPS = STAGED && FULL && CV == PAD && !RAGGED;
struct alignas(16) Apart { scalar_t x[BY_WARPS ? TEAMS * N * N + 32 * CV : 1]; };
__device__ inline scalar_t* apart()
{
    __shared__ Apart of_block[WARPS];
    return of_block[threadIdx.x / 32].x;
}
// Where row r of the warp's begins, the members' one after the other
__device__ inline int apart_row(int r)
{
    return (r / N * LR + r % LR) * (RN * N + CV) + r % N / LR * N;
}

struct Whole {  // the line of a block's members of A, m x n each; none if bytes is 0
    size first = 0, bytes = 0;
    int next = 0, numbers = 0;  // those of the warp's members, if they are STAGED
    bool lower = false;         // of these what is right of the diagonal is not to be stored

    __device__ Whole(const scalar_t* A, size row, size col, size next, int m, int n, size batch)
        : next(int(next))
    {
        if (BY_WARPS) {
            const size b = size(blockIdx.x) * MEMBERS + threadIdx.x / 32 * TEAMS, left = batch - b;
            first = size(A + b * next);
            if (left > 0 && m == N && n == N && row == N && col == 1 && next == N * N
                && first % 16 == 0)
                numbers = (left < TEAMS ? int(left) : TEAMS) * N * N;
        }
        if (!LINES) return;
        first = size(A + blockIdx.x * MEMBERS * next);
        const size all = MEMBERS * next * size(sizeof(scalar_t));
        const bool dense = (col == 1 && row == n) || (row == 1 && col == m);
        const bool missing = (size(blockIdx.x) + 1) * MEMBERS > batch;
        const bool packs = !TILES && CV > 1
                           && Strided<const scalar_t>{A, row, col}.in_packs<CV>(n, next);
        if (dense && next == m * n && !packs && !missing && (first | all) % 16 == 0) bytes = all;
    }
    // Where the line has the team's member; for lanes left over another's
    __device__ int of_member() const
    {
        return (threadIdx.x / 32 * TEAMS + (FULL || team() < TEAMS ? team() : 0)) * next;
    }
};

__device__ inline Line& line()
{
    __shared__ Line of_block;
    return of_block;
}

// a := A where wanted(row, col), else zero, of members that are STAGED
template <class Wanted> __device__ void load_staged(Block& a, const Whole& whole, Wanted wanted)
{
    const scalar_t* const A = reinterpret_cast<const scalar_t*>(whole.first);
    #pragma unroll 4
    for (int e = CV * lane(); e < whole.numbers; e += 32 * CV)
        copy_async<16, true>(apart() + apart_row(e / N) + e % N, A + e, 16);
    end_group();
    await_groups<0>();
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; s += CV) {
            const Pack pack = *reinterpret_cast<const Pack*>(
                apart() + apart_row(team() * N + row(i)) + s);
            #pragma unroll
            for (int e = 0; e < CV; ++e)
                a[i][s + e] = wanted(row(i), s + e) ? pack.x[e] : scalar_t{};
        }
}

// A := a, row i of the lane to row place[i], of members that are STAGED and wanted
template <class Wanted>
__device__ void store_staged(const Block& a, const Whole& whole, const int (&place)[RN],
                             Wanted wanted)
{
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; s += CV) {
            if (!wanted(place[i], s)) continue;
            Pack pack;
            #pragma unroll
            for (int e = 0; e < CV; ++e) pack.x[e] = a[i][s + e];
            *reinterpret_cast<Pack*>(apart() + apart_row(team() * N + place[i]) + s) = pack;
        }
    __syncwarp();
    scalar_t* const A = reinterpret_cast<scalar_t*>(whole.first);
    #pragma unroll 4
    for (int e = CV * lane(); e < whole.numbers; e += 32 * CV) {
        const Pack pack = *reinterpret_cast<const Pack*>(apart() + apart_row(e / N) + e % N);
        const int right = whole.lower ? e % N - e / N % N : -N;  // of the diagonal
        if (right + CV <= 1)
            *reinterpret_cast<Pack*>(A + e) = pack;
        else
            #pragma unroll
            for (int q = 0; q < CV; ++q)
                if (right + q <= 0) A[e + q] = pack.x[q];
    }
}

// a := A where wanted(row, col), zero elsewhere; but by way of the line, where there is one, teams
// without tiles have what means nothing there.
template <class Wanted>
__device__ void load(Block& a, const Strided<const scalar_t>& A, const Whole& whole, bool packs,
                     Wanted wanted)
{
    if constexpr (BY_WARPS)
        if (whole.numbers) return load_staged(a, whole, wanted);
    if (LINES < 2 || !whole.bytes) {
        load(a, A, packs, wanted);
        return;
    }
    const unsigned arrived = shared_address(&line().arrived);
    if (threadIdx.x == 0) {
        make_barrier(arrived, 1);
        show_barriers();
        expect(arrived, unsigned(whole.bytes));
        copy_bytes(shared_address(line().x), reinterpret_cast<const void*>(whole.first),
                   unsigned(whole.bytes), arrived);
    }
    __syncthreads();
    await(arrived, 0);
    const int rs = int(A.rs), cs = int(A.cs);
    const scalar_t* const p = line().x + whole.of_member();
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; ++s) {
            const bool there = !TILES || wanted(row(i), col(s));
            a[i][s] = there ? p[row(i) * rs + col(s) * cs] : scalar_t{};
        }
    if (WARPS > 1) __syncthreads();  // rows past a member are the next one's, whose warp may store
}

// A := a where wanted(place, col), by way of the line where there is one and all of it is wanted
template <class Wanted>
__device__ void store(const Block& a, Strided<scalar_t> A, const Whole& whole, bool packs,
                      const int (&place)[RN], Wanted wanted)
{
    if constexpr (BY_WARPS)
        if (whole.numbers) return store_staged(a, whole, place, wanted);
    const bool at_once = LINES && whole.bytes;
    if (at_once) A.p = line().x + whole.of_member();
    store(a, A, packs, place, wanted);
    if (at_once)
        return_bytes(reinterpret_cast<void*>(whole.first), shared_address(line().x),
                     unsigned(whole.bytes));
}
