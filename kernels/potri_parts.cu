// potri_parts.cu: the last step of inverses from Cholesky factors by parts, for a batch: what X has,
// below its diagonal and on it, becomes all of the result.
//
// The diagonal blocks of L, of `width` rows each but the last, were inverted one by one; `infos` has
// of every block where its diagonal has a zero, counted from 1, or 0. The first such place is the
// member's `info`, and it has no inverse: X gets its factor. Else X gets of C what lies above the
// diagonal, which is another's, and its diagonal becomes real, but for how it was rounded. Where the
// answer is to be C (`in_place`), C gets the triangle of X instead, of members that have an inverse.
//
// A block has LINES lines of a member, rows or columns, whichever are lines of memory; a warp goes
// along one at a time. The floor: n^2 / 2 numbers read and written.
#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int LINES = 16;
#endif
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
potri_parts(scalar_t* C, size c_row, size c_col, size c_next, scalar_t* X, size x_row, size x_col,
            size x_next, const int* infos, size parts, size width, int* info, size in_place,
            size ns, size batch)
{
    wait_for_stream();
    const int n = int(ns), lane = threadIdx.x % 32, shares = (n + LINES - 1) / LINES;
    const size b = blockIdx.x / shares;
    const int first = int(blockIdx.x - b * shares) * LINES;
    int zero = 0;
    for (size p = parts; p-- > 0;)
        if (const int found = infos[p * batch + b]) zero = int(p * width) + found;
    if (first == 0 && thread() == 0) info[b] = zero;
    if (in_place && zero) return;
    const Strided<scalar_t> c{C + b * c_next, c_row, c_col}, x{X + b * x_next, x_row, x_col};
    const bool by_rows = x_col == 1, after = by_rows != bool(in_place);
    const Strided<scalar_t> from = in_place ? x : c, to = in_place ? c : x;
    for (int i = first + warp(); i < first + LINES && i < n; i += WARPS) {
        const int begin = after && !zero ? i + !in_place : 0;
        const int end = after || zero ? n : i + int(in_place);
        #pragma unroll 4
        for (int j = begin + lane; j < end; j += 32) {
            if (by_rows) to(i, j) = from(i, j);
            else to(j, i) = from(j, i);
        }
        __syncwarp();
        if (lane == 0 && !zero) to(i, i) = scalar_t(real(to(i, i)));
    }
}
