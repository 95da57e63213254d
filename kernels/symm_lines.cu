// symm_lines.cu: C := alpha A B + beta C or alpha B A + beta C of every member of a batch whose
// matrices lie by rows without gaps, A symmetric or Hermitian, of which one triangle is seen
// (line_products.cuh).
//
// A team owns a member, and all of A comes as a line, of which half is not wanted: lines are read
// whole, and rows of a triangle would begin anywhere. In shared memory the other triangle is then
// written over with the mirror image. On the right A is a single slice (STAGES 1).
//
// m, n > 0. The floor is (k^2 / 2 + 2 m n) elements a member, k the order of A, and 2 m n k
// operations; k^2 + 2 m n elements are moved.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int DOWN = 1, ACROSS = 1;  // warps of a team; of a team of one a block has WARPS
constexpr int RM = 3, RN = 5;        // tiles of a warp
constexpr int DEEP = 64;             // of k in a slice
constexpr int STAGES = 1;            // slices in shared memory; 1: there is one in all
constexpr int RESIDENT = 1;          // the left operand comes as a whole
constexpr int ADJACENT = 0;          // 1: of k the lanes of a group take neighbours
constexpr int PADDED = 0;            // 1: and rows are apart in shared memory
constexpr int BULK = 0;              // 1: the hardware brings lines (lines.cuh)
constexpr int BLOCKS = 1;            // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "line_products.cuh"

static_assert(RESIDENT);

struct Symmetric {
    static constexpr bool COMPLETES = true;
    bool right, lower, hermitian;  // A is on the right; its lower triangle is seen

    // Any two of n rows meet once: each is paired with itself and those after it in a circle, half
    // the way round.
    __device__ void complete(const Part& w, const Slices& slices) const
    {
        constexpr int UNDER_WAY = 4;  // numbers of a thread
        scalar_t* const x = right ? slices.b : slices.a;
        const int pitch = right ? pitch_of_b(w.n) : pitch_of_a(w.k);
        const int n = w.k, width = n / 2 + 1, rows = MEET / width, columns = MEET % width;
        int r = in_team() / width, c = in_team() % width;
        while (r < n) {
            scalar_t y[UNDER_WAY];
            int to[UNDER_WAY];
            #pragma unroll
            for (int u = 0; u < UNDER_WAY; ++u) {
                const int q = r + c < n ? r + c : r + c - n;
                const bool seen = (r < q) != lower;  // is row r, column q
                to[u] = r < n && (2 * c < n || 2 * r < n) ? seen ? q * pitch + r : r * pitch + q : -1;
                if (to[u] >= 0) {
                    y[u] = turned(x[seen ? r * pitch + q : q * pitch + r], hermitian);
                    if (hermitian && c == 0) y[u] = real_part(y[u]);
                }
                r += rows, c += columns;
                if (c >= width) c -= width, ++r;
            }
            #pragma unroll
            for (int u = 0; u < UNDER_WAY; ++u)
                if (to[u] >= 0) x[to[u]] = y[u];
        }
    }

    // Element (i, j) of A, from memory
    __device__ scalar_t element(const scalar_t* x, int n, int i, int j) const
    {
        const bool seen = i == j || (i < j) != lower;
        const scalar_t y = seen ? x[i * n + j] : turned(x[j * n + i], hermitian);
        return hermitian && i == j ? real_part(y) : y;
    }
    __device__ scalar_t a(const Part& w, int i, int p) const
    {
        return right ? w.a[i * w.k + p] : element(w.a, w.k, i, p);
    }
    __device__ scalar_t b(const Part& w, int p, int j) const
    {
        return right ? element(w.b, w.k, p, j) : w.b[p * w.n + j];
    }
};

enum How { ON_THE_RIGHT = 1, OF_LOWER = 2, IS_HERMITIAN = 4 };

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
symm_lines(size m, size n, size k, size, size how, size shared, const scalar_t* A, size a_next,
           const scalar_t* B, size b_next, const scalar_t* C, size c_row, size c_col, size c_next,
           scalar_t* O, size o_next, size alpha_re, size alpha_im, size beta_re, size beta_im,
           size batch)
{
    wait_for_stream();
    const Symmetric kind{(how & ON_THE_RIGHT) != 0, (how & OF_LOWER) != 0,
                         (how & IS_HERMITIAN) != 0};
    product(kind, m, n, k, 1, shared, A, a_next, B, b_next, C, c_row, c_col, c_next, O, o_next,
            alpha_re, alpha_im, beta_re, beta_im, batch);
}
