// potri_small.cu: the inverses of a batch of positive definite n x n matrices, n <= N <= 96, from
// their Cholesky factors: the lower triangle of inv(A) from that of L. An upper triangle comes with
// swapped strides, and the inverse is conj(inv(A)), which by its rows is inv(A) again.
//
// Columns of X are dealt to the lanes of a block, C to a lane (dealt_columns.cuh), as getri_small's
// are. A column begins as that of the identity and is solved with L, of which a column at a time is
// taken off it, then with L^H, whose rows are the same columns: nothing waits for another lane, and
// what is above the diagonal takes part in nothing. In place it is neither read nor written, else
// copied.
//
// The floor: a triangle read and written, n^2 numbers, out of place 2 n^2; 2 n^3 operations. A
// member with a zero on L's diagonal, whose first is `info`, keeps its factor.
#include "compiling.cuh"
#include "dealt_columns.cuh"
#include "launch.cuh"

// x := L^-1 x, C columns; on the diagonal of L are reciprocals
__device__ inline void solve_lower(scalar_t (&x)[C][N], const scalar_t* L, int n)
{
    #pragma unroll
    for (int j = 0; j < N; ++j) {
        if (j >= n) break;
        look_no_further_back();
        #pragma unroll
        for (int q = j / VECTOR * VECTOR; q < N; q += VECTOR) {
            const Vector l = *reinterpret_cast<const Vector*>(L + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                if (q <= j) x[c][j] = mul(l.x[j % VECTOR], x[c][j]);
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e > j) x[c][q + e] = minus_product(x[c][q + e], l.x[e], x[c][j]);
            }
        }
    }
}

// x := L^-H x; rows of L from n on are zero, and those of x
__device__ inline void solve_adjoint(scalar_t (&x)[C][N], const scalar_t* L, int n)
{
    #pragma unroll
    for (int j = N - 1; j >= 0; --j) {
        if (j >= n) continue;
        look_no_further_back();
        const scalar_t inverse = conj(L[j * (DOWN + 1)]);
        #pragma unroll
        for (int q = 0; q < N; q += VECTOR) {  // a count that does not depend on j is unrolled
            if (q + VECTOR <= j) continue;
            const Vector l = *reinterpret_cast<const Vector*>(L + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c)
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e > j) x[c][j] = minus_product(x[c][j], conj(l.x[e]), x[c][q + e]);
        }
        #pragma unroll
        for (int c = 0; c < C; ++c) x[c][j] = mul(inverse, x[c][j]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potri_small(const scalar_t* L, size l_row, size l_col, size l_next,
            scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns, size lanes,
            size batch)
{
    wait_for_stream();
    const Team team(int(lanes), batch);
    const size b = team.here ? team.number : batch - 1;
    const int n = team.here ? int(ns) : 0;
    const Strided<const scalar_t> in{L + b * l_next, l_row, l_col};
    const Strided<scalar_t> out{X + b * x_next, x_row, x_col};
    scalar_t* const square = team.square();
    const bool apart = X != L;

    Diagonal diagonal(square, team);
    each_at_of_team<DOWN>(in, square, n, n, team.t, team.lanes,
                          [=](const scalar_t& from, scalar_t& to, int i, int j) {
                              if (i >= j || apart)
                                  copy_async<sizeof(scalar_t)>(&to, &from, sizeof(scalar_t));
                          });
    end_group();
    #pragma unroll
    for (int c = 0; c < C; ++c)
        if (team.column(c) < n)
            for (int i = n; i < N; ++i) square[team.column(c) * DOWN + i] = scalar_t{};
    await_groups<0>();
    team.sync();
    diagonal.look(n);
    team.sync();
    const int zero = diagonal.zero();
    if (team.t == 0) info[b] = zero;
    scalar_t x[C][N];
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = team.column(c);
        #pragma unroll
        for (int i = 0; i < N; ++i) x[c][i] = scalar_t(real_t(i == j));
        if (zero && j < n)
            #pragma unroll
            for (int i = 0; i < N; ++i) x[c][i] = square[j * DOWN + i];
        if (!zero && j < n) {
            scalar_t& d = square[j * (DOWN + 1)];
            d = reciprocal(d);
        }
    }
    team.sync();
    if (!zero) {
        solve_lower(x, square, n);
        look_no_further_back();
        solve_adjoint(x, square, n);
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i)  // real, but for how it was rounded
                if (i == team.column(c)) x[c][i] = scalar_t(real(x[c][i]));
    }
    if (by_rows(out)) {
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = team.column(c);
            scalar_t* p = &out(0, j);
            #pragma unroll
            for (int i = 0; i < N; ++i, p += out.rs) {
                scalar_t v = x[c][i];
                if (i >= n || j >= n || (i < j && !apart)) continue;
                if (i < j) v = square[j * DOWN + i];
                *p = v;
            }
        }
        return;
    }
    team.sync();
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = team.column(c);
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (j < n && i >= j) square[j * DOWN + i] = x[c][i];
    }
    team.sync();
    each_at_of_team<DOWN>(out, square, n, n, team.t, team.lanes,
                          [=](scalar_t& to, const scalar_t& from, int i, int j) {
                              if (i >= j || apart) to = from;
                          });
}
