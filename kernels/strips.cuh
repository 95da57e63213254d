// strips.cuh: the order in which tiles of C, HIGH x ACROSS elements, are taken: in strips WIDE tiles
// high, along which blocks that run at a time share lines of both operands; all of C, or the tiles
// that have some of the half that is asked for.
#pragma once

using size = long long;

template <int HIGH, int ACROSS> struct Strips {
    int down, across, half, tiles;

    // `half` 1: of the elements those not right of the diagonal, 2: those not left of it
    __device__ Strips(size m, size n, int half = 0)
        : down(int((m + HIGH - 1) / HIGH)), across(int((n + ACROSS - 1) / ACROSS)), half(half),
          tiles(down * across)
    {
        if (!half) return;
        tiles = 0;
        for (int i = 0; i < down; i += WIDE) tiles += high(i) * (end(i) - begin(i));
    }
    // What is to be counted through; of half of C a few more tiles than have some of it
    __device__ int count() const { return tiles; }
    // Of the strip whose first row of tiles is i: how many rows, and from which column to which
    __device__ int high(int i) const { return down - i < WIDE ? down - i : WIDE; }
    __device__ int begin(int i) const
    {
        const int first = i * HIGH / ACROSS;
        return half != 2 ? 0 : first < across ? first : across;
    }
    __device__ int end(int i) const
    {
        const int last = ((i + high(i)) * HIGH + ACROSS - 1) / ACROSS;
        return half == 1 && last < across ? last : across;
    }
    // Where a tile is; whether it is asked for
    __device__ bool place(int tile, int& i, int& j) const
    {
        i = j = 0;
        if (!half) {
            i = tile / (WIDE * across) * WIDE;
            tile -= i * across;
        } else {
            for (int some; tile >= (some = high(i) * (end(i) - begin(i))); i += WIDE) tile -= some;
            j = begin(i);
        }
        const int rows = high(i);
        j += tile / rows;
        i += tile % rows;
        return half == 0 || (half == 1 ? j * ACROSS < (i + 1) * HIGH : i * HIGH < (j + 1) * ACROSS);
    }
};
