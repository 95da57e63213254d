// interchanges.cuh: the interchanges of LU, in their order, followed.
#pragma once

// The place to which they bring a row
__device__ inline int brought(const int* pivots, int n, int row)
{
    #pragma unroll 4
    for (int k = 0; k < n; ++k) {
        const int p = pivots[k];
        row = row == k ? p : row == p ? k : row;
    }
    return row;
}
