// attention_sums.cu: D := dY . Y for every line of every member, of any strides: what each query's
// gradient of its scores has less (attention.cuh).
//
// Eight neighbouring threads have a line, 16 bytes at a time. Floor: dY and Y read once.
#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int WARPS = 8;    // of a block
#endif
#include "half.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

constexpr int TEAM = 8, V = 16 / sizeof(scalar_t);

struct alignas(16) Pack {
    scalar_t x[V];
};

extern "C" __global__ void __launch_bounds__(THREADS)
attention_sums(const scalar_t* dY, size dy_batch, size dy_head, size dy_next, const scalar_t* Y,
               size y_batch, size y_head, size y_next, float* D, size heads, size m, size count,
               size width)
{
    wait_for_stream();
    const size line = (size(blockIdx.x) * THREADS + thread()) / TEAM;
    float sum = 0;
    if (line < count) {
        const size member = line / m, batch = member / heads, head = member % heads, i = line % m;
        const scalar_t* const a = dY + batch * dy_batch + head * dy_head + i * dy_next;
        const scalar_t* const b = Y + batch * y_batch + head * y_head + i * y_next;
        for (int k = thread() % TEAM * V; k < width; k += TEAM * V) {
            const Pack x = *reinterpret_cast<const Pack*>(a + k);
            const Pack y = *reinterpret_cast<const Pack*>(b + k);
            #pragma unroll
            for (int e = 0; e < V; ++e) sum = fmaf(float(x.x[e]), float(y.x[e]), sum);
        }
    }
    #pragma unroll
    for (int d = 1; d < TEAM; d *= 2) sum += across(sum, d);
    if (line < count && thread() % TEAM == 0) D[line] = sum;
}
