// steqr_lane.cu: eigenvalues of real symmetric tridiagonal matrices, T = G diag(w) G^T, for a batch.
//
// Implicit QL with Wilkinson's shift is one chain of dependent rotations, so a lane has a matrix
// and LANES lanes of a warp have one; d and e lie in shared memory. Where vectors are asked for
// the rotations of a sweep, (c, s) of columns i and i + 1 for i = m - 1 ... l, follow each other
// in `turns`, and `sweeps` says m and l; lasr_rows applies them. About 1.2 n^2 rotations: 2.4 n^2
// numbers to memory. When their room is full the pass ends, and the next one goes on.
//
// While it chases the bulge up a sweep sees every finished element below the diagonal, and so
// knows the smallest two places where T has come apart: only then, after two, is it searched.
// A shift need not be exact, and is found in float32. (LAPACK's dsteqr; Wilkinson, Reinsch, II/4.)
#include "block.cuh"
#include "reciprocal.cuh"
#include "tridiagonal.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int LANES = 4;    // of a warp that have a matrix
#endif
static_assert(WARPS == 1, "a block is a warp");
constexpr unsigned ALL = 0xffffffffu;
constexpr int STEPS = 8;    // rotations of a lane between two looks at the others
constexpr real_t FLOOR = TINY * 0x1p26;  // a square that is nothing beside the largest element's
constexpr real_t EPS = sizeof(real_t) == 8 ? real_t(0x1p-53) : real_t(0x1p-24);

enum { RUNNING, FINISHED, FINISHED_BEFORE };
struct State { int sweeps, low, stage, total; };  // of this pass; the eigenvalues found; sweeps of all

// A lane's matrix and where its QL is. The block l ... m is at work; its bulge is to pass i.
struct Lane {
    real_t *d, *e;          // elements LANES apart
    int n, l, m, i;
    bool search;            // nothing is known of where the block ends
    int first, second;      // the smallest places where T has come apart in this sweep, or -1
    real_t c, s, p, g;
    real_t diagonal, next, below;  // d[i + 1], d[i], e[i] as they were
    real_t finished;               // d[i + 2] as it has become

    __device__ real_t& D(int k) { return d[k * LANES]; }
    __device__ real_t& E(int k) { return e[k * LANES]; }
    __device__ bool apart(real_t below, real_t a, real_t b) const
    {
        return below * below <= fma(EPS * fabs(a), EPS * fabs(b), FLOOR);
    }
    __device__ bool done() const { return l >= n - 1; }
    __device__ bool between_sweeps() const { return i < l; }

    // Moves l and m to the next block that is no single element
    __device__ void find_block()
    {
        while (search && l < n - 1) {
            m = l;
            while (m < n - 1 && !apart(E(m), D(m), D(m + 1))) ++m;
            if (m == l) ++l;
            else search = false;
        }
        i = l - 1;
    }

    __device__ void begin_sweep()
    {
        const real_t a = D(l), x = E(l), half = (D(l + 1) - a) * real_t(0.5);
        const real_t unit = mirror(fabs(half) > fabs(x) ? fabs(half) : fabs(x));
        const float u = float(half * unit), v = float(x * unit);
        const float q = v * v / (u + copysignf(sqrtf(fmaf(u, u, v * v)), u));
        const real_t shift = a - real_t(q) * mirror(unit);
        i = m - 1;
        diagonal = D(m);
        next = D(i);
        below = E(i);
        g = diagonal - shift;
        c = s = 1;
        p = 0;
        first = second = -1;
    }

    __device__ Turn step()
    {
        const real_t f = s * below, b = c * below, h = fma(g, g, f * f);
        const int ahead = i > 0 ? i - 1 : 0;
        const real_t d_ahead = D(ahead), e_ahead = E(ahead);
        const bool some = h >= 4 * TINY;   // else the bulge is nothing beside the largest element
        const real_t q = near_rsqrt(some ? h : real_t(1));
        const real_t root = some ? h * q : g;
        const Turn turn{some ? g * q : real_t(1), some ? f * q : real_t(0)};
        c = turn.c;
        s = turn.s;
        const real_t shifted = diagonal - p, r = fma(next - shifted, s, 2 * b * c);
        p = s * r;
        g = fma(c, r, -b);
        const real_t settled = shifted + p;
        D(i + 1) = settled;
        if (i < m - 1) {
            E(i + 1) = root;
            if (apart(root, settled, finished)) {
                second = first;
                first = i + 1;
            }
        }
        finished = settled;
        diagonal = next;
        next = d_ahead;
        below = e_ahead;
        if (--i < l) end_sweep();
        return turn;
    }

    __device__ void end_sweep()
    {
        const real_t settled = diagonal - p;
        D(l) = settled;
        E(l) = g;
        if (apart(g, settled, finished)) {
            second = first;
            first = l;
        }
        if (first == l) {
            ++l;
            if (second >= 0) m = second;
            if (l == m) {
                ++l;
                search = true;
            }
        } else if (first >= 0) {
            m = first;
        }
        i = l - 1;
    }
};

// w := the eigenvalues of a finished member, rising, as those of A; order := where they were. By
// the warp.
__device__ inline void sorted(const real_t* d, real_t most, real_t* w, int* order, int n)
{
    const bool finite = most - most == 0;
    const Power back = scale_of(finite ? most : real_t(0)).inverse();
    for (int i = threadIdx.x; i < n; i += 32) {
        const real_t x = d[i * LANES];
        int rank = finite ? 0 : i;
        for (int j = 0; j < n && finite; ++j) {
            const real_t y = d[j * LANES];
            rank += y < x || (y == x && j < i);
        }
        w[rank] = finite ? back.times(x) : most - most;
        order[rank] = i;
    }
}

extern "C" __global__ void __launch_bounds__(32)
steqr_lane(real_t* D, real_t* E, const real_t* most, Turn* turns, size room, int* sweeps,
           size most_sweeps, State* states, size vectors, size first_pass, size last_pass,
           real_t* w, int* order, int* info, size ns, size batch)
{
    const int n = int(ns), lane = threadIdx.x;
    const size b0 = size(blockIdx.x) * LANES, b = b0 + lane;
    real_t* const d = reinterpret_cast<real_t*>(dynamic_shared);
    real_t* const e = d + n * LANES;
    const int members = int(batch - b0 < LANES ? batch - b0 : LANES);
    for (int at = lane; at < n * members; at += 32) {
        const int k = at / n, i = at - k * n;
        d[i * LANES + k] = D[b0 * n + at];
        e[i * LANES + k] = i < n - 1 ? E[b0 * n + at] : real_t(0);
    }
    __syncwarp();

    const bool mine = lane < members;
    State state{0, 0, RUNNING, 0};
    if (mine && !first_pass) state = states[b];
    if (state.stage != RUNNING) state.stage = FINISHED_BEFORE;
    state.sweeps = 0;
    Lane ql;
    ql.d = d + (mine ? lane : 0);
    ql.e = e + (mine ? lane : 0);
    ql.n = n;
    ql.l = state.low;
    ql.search = true;
    ql.i = -1;
    const bool works = mine && state.stage == RUNNING;
    if (works && !(most[b] - most[b] == 0)) ql.l = n;
    bool active = works && !ql.done();
    Turn* turn = turns + (mine ? b : 0) * room;
    size left = room;
    while (__any_sync(ALL, active)) {
        if (active && ql.between_sweeps()) {
            if (ql.search) ql.find_block();
            if (ql.done() || state.sweeps == most_sweeps
                || (vectors && left < ql.m - ql.l)) {
                active = false;
            } else {
                if (vectors) sweeps[b * most_sweeps + state.sweeps] = ql.m << 16 | ql.l;
                left -= ql.m - ql.l;
                ++state.sweeps;
                ql.begin_sweep();
            }
        }
        #pragma unroll 1
        for (int k = 0; k < STEPS; ++k) {
            if (!active || ql.between_sweeps()) break;
            const Turn t = ql.step();
            if (vectors) *turn++ = t;
        }
    }
    if (works) {
        state.low = ql.l;
        if (ql.done()) state.stage = FINISHED;
        int found = 0;
        if (state.stage == FINISHED) found = !(most[b] - most[b] == 0);
        else if (last_pass)
            for (int k = ql.l; k < n - 1; ++k) found += !ql.apart(ql.E(k), ql.D(k), ql.D(k + 1));
        if (state.stage == FINISHED || last_pass) info[b] = found;
        if (state.stage == RUNNING && !last_pass)
            for (int k = 0; k < n; ++k) {
                D[b * n + k] = ql.D(k);
                if (k < n - 1) E[b * n + k] = ql.E(k);
            }
    }
    if (mine) states[b] = state;
    __syncwarp();
    for (int k = 0; k < members; ++k) {
        const int stage = __shfl_sync(ALL, state.stage, k);
        if (stage == FINISHED || (stage == RUNNING && last_pass))
            sorted(d + k, most[b0 + k], w + (b0 + k) * n, order + (b0 + k) * n, n);
    }
}
