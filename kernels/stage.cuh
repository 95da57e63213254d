// stage.cuh: the matrices of a warp whose lanes have one each, through shared memory.
//
// They follow each other in memory, so a warp moves them in one sweep, 16 bytes to a lane, and a
// lane finds its own in shared memory. Matrices of order N get 16 bytes more there, so that no
// two of 8 lanes meet in a bank; smaller ones lie as they do in memory.
#pragma once

struct alignas(16) Chunk { scalar_t x[16 / sizeof(scalar_t)]; };
constexpr int CHUNK = 16 / sizeof(scalar_t), CHUNKS = N * N / CHUNK, STAGE = N * N + CHUNK;

__device__ inline scalar_t* stage()
{
    __shared__ Chunk memory[WARPS][TEAM == 1 ? 32 * (CHUNKS + 1) : 1];
    return memory[threadIdx.x / 32]->x;
}

// The first matrix of the warp, of which lane 0 has the address
template <class T> __device__ T* first_of_warp(T* p)
{
    return reinterpret_cast<T*>(__shfl_sync(ALL, reinterpret_cast<size>(p), 0));
}

// Between memory and shared memory: the matrices of the first `count` lanes, of order N or n
template <bool IN> __device__ void sweep_chunks(scalar_t* s, scalar_t* memory, int count)
{
    #pragma unroll
    for (int q = 0; q < CHUNKS; ++q) {
        const int c = 32 * q + lane(), m = c / CHUNKS;
        Chunk* const there = reinterpret_cast<Chunk*>(memory) + c;
        Chunk* const here = reinterpret_cast<Chunk*>(s + m * STAGE) + c % CHUNKS;
        if (m < count) *(IN ? here : there) = *(IN ? there : here);
    }
}

// Elements (i, j) that are `wanted`, i running last in memory
template <bool IN, class Wanted>
__device__ void sweep(scalar_t* s, scalar_t* memory, int count, int n, int gap, Wanted wanted)
{
    for (int e = lane(); e < count * n * n; e += 32) {
        const int at = e % (n * n);
        scalar_t* const here = s + e / (n * n) * gap + at;
        if (wanted(at / n, at % n)) *(IN ? here : memory + e) = *(IN ? memory + e : here);
    }
}

// `mine`: whether there is a matrix for this lane
__device__ inline void load_staged(Block& a, const Strided<const scalar_t>& A, int n, bool mine)
{
    scalar_t* const s = stage();
    scalar_t* const from = const_cast<scalar_t*>(first_of_warp(A.p));
    const int count = __popc(__ballot_sync(ALL, mine));
    if (n == N) sweep_chunks<true>(s, from, count);
    else sweep<true>(s, from, count, n, n * n, [](int, int) { return true; });
    __syncwarp();
    const scalar_t* const own = s + lane() * (n == N ? STAGE : n * n);
    if (mine && n == N && A.cs == 1) {
        #pragma unroll
        for (int i = 0; i < N; ++i)
            #pragma unroll
            for (int j = 0; j < N; j += CHUNK) {
                const Chunk chunk = *reinterpret_cast<const Chunk*>(own + i * N + j);
                #pragma unroll
                for (int e = 0; e < CHUNK; ++e) a[i][j + e] = chunk.x[e];
            }
    } else if (mine) {
        #pragma unroll
        for (int i = 0; i < N; ++i)
            #pragma unroll
            for (int j = 0; j < N; ++j)
                if (i < n && j < n) a[i][j] = own[A.cs == 1 ? i * n + j : j * n + i];
    }
}

// All elements are wanted, or the lower triangle.
template <class Wanted>
__device__ void store_staged(const Block& a, const Strided<scalar_t>& A, int n, bool mine,
                             const int (&place)[RN], Wanted wanted)
{
    scalar_t* const s = stage();
    scalar_t* const to = first_of_warp(A.p);
    const int count = __popc(__ballot_sync(ALL, mine)), gap = n == N ? STAGE : n * n;
    // the first lane has a matrix, and tells for all of them
    const bool whole = __shfl_sync(ALL, int(wanted(0, n - 1)), 0), by_rows = A.cs == 1;
    scalar_t* const own = s + lane() * gap;
    if (mine && n == N && by_rows) {
        #pragma unroll
        for (int i = 0; i < N; ++i)
            #pragma unroll
            for (int j = 0; j < N; j += CHUNK) {
                Chunk chunk;
                #pragma unroll
                for (int e = 0; e < CHUNK; ++e) chunk.x[e] = a[i][j + e];
                *reinterpret_cast<Chunk*>(own + place[i] * N + j) = chunk;
            }
    } else if (mine) {
        #pragma unroll
        for (int i = 0; i < N; ++i)
            #pragma unroll
            for (int j = 0; j < N; ++j)
                if (i < n && j < n) own[by_rows ? place[i] * n + j : j * n + place[i]] = a[i][j];
    }
    __syncwarp();
    if (n == N && whole) sweep_chunks<false>(s, to, count);
    else sweep<false>(s, to, count, n, gap,
                      [=](int i, int j) { return whole || (by_rows ? j <= i : i <= j); });
}
