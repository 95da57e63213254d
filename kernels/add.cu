// add.cu: Z := X + Y, number by number. Floor: both read, Z written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 2;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
add(const scalar_t* X, const scalar_t* Y, scalar_t* Z, size count)
{
    wait_for_stream();
    map(Z, X, Y, count, [](real_t x, real_t y, size) { return x + y; });
}
