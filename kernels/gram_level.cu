// gram_level.cu: H = X^H X of every member of a batch, but 0 where X's columns are not level.
//
// The squares of their lengths are on H's diagonal: columns are level if the least of these is more
// than the largest over `apart`. Where they are not the eigenvectors of H are not worth having, and
// 0 has those of the identity (blasx/batched/_gpu_svd.py). Where what X was made of was not finite,
// X begins with nan.
//
// A warp has a member. The floor: n sectors of 32 bytes.
#include "block.cuh"
#include "launch.cuh"
#include "lost.cuh"
#include "qr.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
gram_level(scalar_t* H, size h_row, size h_col, size h_next, scalar_t* X, size x_next,
           const int* kept, size apart, size n, size batch)
{
    wait_for_stream();
    const size b = size(blockIdx.x) * WARPS + warp();
    if (b >= batch) return;
    const int lane = thread() % 32;
    const Strided<scalar_t> h{H + b * h_next, h_row, h_col};
    real_t most = 0;
    for (size j = lane; j < n; j += 32) most = larger(most, real(h(j, j)));
    most = most_of_lanes(most);
    bool level = true;
    for (size j = lane; j < n; j += 32) level = level && real(h(j, j)) > most / real_t(apart);
    if (!__all_sync(ALL, level))
        for (size e = lane; e < n * n; e += 32) h(e / n, e % n) = scalar_t{};
    if (lane == 0 && kept[b] == LOST) X[b * x_next] = scalar_t(real_t(__int_as_float(0x7fc00000)));
}
