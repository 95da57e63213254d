// getri_small.cu: the inverses of a batch of n x n matrices, n <= N <= 96, from their LU factors.
//
// Columns of X are dealt to the lanes of a block as one line, C to a lane, in registers: a team of
// `lanes` lanes, any number that has n columns, has a member, its factors in shared memory, and
// teams lie side by side, across warps where that leaves fewer lanes without work (33 columns in
// whole warps leave every second). Column j of X begins as that of the identity, its one where the
// interchanges bring it, and is solved with L, then U, a column of the factors at a time, 16 bytes
// of it at once: nothing waits for another lane.
//
// The floor: the factors read and X written once, 2 n^2 numbers; 2 n^3 operations. A member with a
// zero on U's diagonal, whose first is `info`, keeps its factors.
#include "compiling.cuh"
#include "dealt_columns.cuh"
#include "launch.cuh"

// x := L^-1 x, C columns; L has ones on its diagonal
__device__ inline void solve_lower(scalar_t (&x)[C][N], const scalar_t* LU, int n)
{
    #pragma unroll
    for (int j = 0; j < N - 1; ++j) {
        if (j >= n - 1) break;
        look_no_further_back();
        #pragma unroll
        for (int q = (j + 1) / VECTOR * VECTOR; q < N; q += VECTOR) {
            const Vector l = *reinterpret_cast<const Vector*>(LU + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c)
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e > j) x[c][q + e] = minus_product(x[c][q + e], l.x[e], x[c][j]);
        }
    }
}

// x := U^-1 x, C columns; on the diagonal of U are reciprocals, of numbers lifted where `tiny`
__device__ inline void solve_upper(scalar_t (&x)[C][N], const scalar_t* LU, Bits tiny, int n)
{
    #pragma unroll
    for (int j = N - 1; j >= 0; --j) {
        if (j >= n) continue;
        look_no_further_back();
        #pragma unroll
        for (int q = j / VECTOR * VECTOR; q >= 0; q -= VECTOR) {
            const Vector u = *reinterpret_cast<const Vector*>(LU + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                if (q + VECTOR > j) {
                    if (has(tiny, j)) x[c][j] = mul(x[c][j], LIFT);
                    x[c][j] = mul(u.x[j % VECTOR], x[c][j]);
                }
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e < j) x[c][q + e] = minus_product(x[c][q + e], u.x[e], x[c][j]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getri_small(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns, size lanes,
            size batch)
{
    wait_for_stream();
    const Team team(int(lanes), batch);
    const size b = team.here ? team.number : batch - 1;
    const int n = team.here ? int(ns) : 0;
    const Strided<const scalar_t> in{LU + b * lu_next, lu_row, lu_col};
    const Strided<scalar_t> out{X + b * x_next, x_row, x_col};
    scalar_t* const square = team.square();

    Diagonal diagonal(square, team);
    each_of_team<DOWN>(in, square, n, n, team.t, team.lanes, [](const scalar_t& from, scalar_t& to) {
        copy_async<sizeof(scalar_t)>(&to, &from, sizeof(scalar_t));
    });
    end_group();
    int one[C];
    #pragma unroll
    for (int c = 0; c < C; ++c) one[c] = team.column(c);
    for (int k = 0; k < n; ++k) {
        const int p = piv[b * n + k];
        #pragma unroll
        for (int c = 0; c < C; ++c) one[c] = one[c] == k ? p : one[c] == p ? k : one[c];
    }
    await_groups<0>();
    team.sync();
    diagonal.look(n);
    team.sync();
    const int zero = diagonal.zero();
    const Bits tiny = diagonal.tiny();
    if (team.t == 0) info[b] = zero;
    scalar_t x[C][N];
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = team.column(c);
        #pragma unroll
        for (int i = 0; i < N; ++i) x[c][i] = scalar_t(real_t(i == one[c]));
        if (zero && j < n)
            #pragma unroll
            for (int i = 0; i < N; ++i) x[c][i] = square[j * DOWN + i];
        if (!zero && j < n) {
            scalar_t& d = square[j * (DOWN + 1)];
            d = reciprocal(has(tiny, j) ? mul(d, LIFT) : d);
        }
    }
    team.sync();
    if (!zero) {
        solve_lower(x, square, n);
        look_no_further_back();
        solve_upper(x, square, tiny, n);
    }
    if (by_rows(out)) return store_columns(out, x, n, n, team.t, team.lanes);
    team.sync();
    #pragma unroll
    for (int c = 0; c < C; ++c)
        if (team.column(c) < n)
            #pragma unroll
            for (int i = 0; i < N; ++i) square[team.column(c) * DOWN + i] = x[c][i];
    team.sync();
    each_of_team<DOWN>(out, square, n, n, team.t, team.lanes, [](scalar_t& to, const scalar_t& from) {
        to = from;
    });
}
