// other_triangle.cu: X := every member of a batch of symmetric or Hermitian matrices, of which A has
// the lower triangle.
//
// A team takes a tile of TILE x TILE of the triangle through shared memory, so that both are read
// and written along what is next to each other, X in two places.
//
// The floor: n^2 / 2 numbers of A read and n^2 of X written.
#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int TILE = 16;
#endif
#include "block.cuh"
#include "launch.cuh"

constexpr int TEAM = TILE * TILE < THREADS ? TILE * TILE : THREADS, TEAMS = THREADS / TEAM;
constexpr int OWN = TILE * TILE / TEAM;
static_assert(TEAM * TEAMS == THREADS && TEAM * OWN == TILE * TILE);

// use(row, column) for this thread's part of a tile, of which neighbours are side by side
template <class Use> __device__ void each(bool by_rows, Use use)
{
    #pragma unroll
    for (int q = 0; q < OWN; ++q) {
        const int e = thread() % TEAM + q * TEAM;
        if (by_rows) use(e / TILE, e % TILE);
        else use(e % TILE, e / TILE);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
other_triangle(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* X,
               size x_row, size x_col, size x_next, size hermitian, size n, size batch)
{
    wait_for_stream();
    __shared__ scalar_t room[TEAMS][TILE][TILE + 1];
    auto& tile = room[thread() / TEAM];
    const int down = (int(n) + TILE - 1) / TILE, tiles = down * (down + 1) / 2;
    const size work = size(blockIdx.x) * TEAMS + thread() / TEAM, b = work / tiles;
    const int order = b < batch ? int(n) : 0;
    int I = 0, J = int(work - b * tiles);
    while (J > I) J -= ++I;
    const Strided<const scalar_t> a{A + b * a_next, a_row, a_col};
    const Strided<scalar_t> x{X + b * x_next, x_row, x_col};
    each(a.cs == 1, [&](int r, int c) {
        const int i = TILE * I + r, j = TILE * J + c;
        if (i >= order || j > i) return;
        tile[r][c] = hermitian && i == j ? scalar_t(real(a(i, j))) : a(i, j);
    });
    __syncthreads();
    each(x.cs == 1, [&](int r, int c) {
        const int i = TILE * I + r, j = TILE * J + c;
        if (i < order && j <= i) x(i, j) = tile[r][c];
    });
    each(x.rs == 1, [&](int r, int c) {
        const int i = TILE * I + r, j = TILE * J + c;
        if (i < order && j < i) x(j, i) = hermitian ? conj(tile[r][c]) : tile[r][c];
    });
}
