// getrf_columns.cu: columns of a large matrix whose rows are put in order, in place: those of L to the
// left of later interchanges, once, at the end of the factorization.
//
// A block has a column in its shared memory, or one word after the other of its numbers where they do
// not fit, which touches nothing but these words. They come as they lie, are taken from where they are
// to be, and only what moves is written. Where few rows do, getrf_moved.cu has less to read.
//
// The floor: m numbers of a column each way.
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BYTES = 4;    // of a word
#endif
constexpr int TURN = 8;     // rows of a thread that are under way together
constexpr int WORDS = sizeof(scalar_t) / BYTES;

template <int> struct word_of;
template <> struct word_of<2> { using type = unsigned short; };
template <> struct word_of<4> { using type = unsigned; };
template <> struct word_of<8> { using type = unsigned long long; };
template <> struct word_of<16> { struct alignas(16) type { unsigned long long x, y; }; };
using piece_t = word_of<BYTES>::type;

// Row i takes what is in row order[i]; or, with `columns`, as the list says whose number is there for
// the column, from the row on that is there, too.
extern "C" __global__ void __launch_bounds__(THREADS)
getrf_columns(scalar_t* A, size lda, size ms, const int* order, const int* columns)
{
    wait_for_stream();
    piece_t* const held = reinterpret_cast<piece_t*>(dynamic_shared);
    const int column = int(blockIdx.x), m = int(ms);
    const int top = columns ? columns[2 * column + 1] : 0;
    if (columns) order += columns[2 * column] * ms;
    for (int w = 0; w < WORDS; ++w) {
        piece_t* const p = reinterpret_cast<piece_t*>(A + column * lda) + w;
        for (int i = top + thread(); i < m; i += TURN * THREADS) {
            piece_t x[TURN];
            #pragma unroll
            for (int t = 0; t < TURN; ++t)
                if (i + t * THREADS < m) x[t] = p[size(i + t * THREADS) * WORDS];
            #pragma unroll
            for (int t = 0; t < TURN; ++t)
                if (i + t * THREADS < m) held[i + t * THREADS - top] = x[t];
        }
        __syncthreads();
        for (int i = top + thread(); i < m; i += TURN * THREADS) {
            int from[TURN];
            #pragma unroll
            for (int t = 0; t < TURN; ++t) from[t] = i + t * THREADS < m ? order[i + t * THREADS] : -1;
            #pragma unroll
            for (int t = 0; t < TURN; ++t)
                if (from[t] >= 0 && from[t] != i + t * THREADS)
                    p[size(i + t * THREADS) * WORDS] = held[from[t] - top];
        }
        __syncthreads();
    }
}
