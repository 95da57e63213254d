// steqr_lane.cu: eigenvalues of real tridiagonal matrices, T = G diag(w) G^T, for a batch.
//
// Implicit QL with Wilkinson's shift is one chain of dependent rotations, so a lane has a matrix
// and LANES lanes of a warp have one; d and e lie in shared memory. Where vectors are asked for
// the rotations of a sweep, (c, s) of columns i and i + 1 for i = m - 1 ... l, follow each other
// in `turns`, and `sweeps` says m and l; lasr_rows applies them. About 1.2 n^2 rotations: 2.4 n^2
// numbers to memory. When their room is full the pass ends, and the next one goes on from the
// states `before` it, while lasr_rows works on what this one has left.
//
// What a chain costs is the wait for each operation of the next, so it is made short: with f, g the
// bulge and the element beside it, h = f^2 + g^2 and w = f (d_i - d_i+1) + 2 b g, the next ones are
// g w / h - b and f w / h, one reciprocal after h; the root of h, and with it c and s, are needed
// only by w of the rotation after, and f^2 is made of the last one.
//
// While it chases the bulge up a sweep sees every finished element below the diagonal, and so
// knows the smallest two places where T has come apart: only then, after two, is it searched.
// A shift need not be exact, and is found in float32. QL keeps small eigenvalues accurate where
// large elements come last: T is turned end for end where they come first, and Q's columns with it.
// (LAPACK's dsteqr; Wilkinson, Reinsch, II/4.)
#include "block.cuh"
#include "launch.cuh"
#include "reciprocal.cuh"
#include "tridiagonal.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int LANES = 4;    // of a warp that have a matrix
constexpr int PARTS = 2;    // passes, with room for 4 n^2 rotations together
#endif
static_assert(WARPS == 1, "a block is a warp");
constexpr int STEPS = 8;    // rotations of a lane between two looks at the others
constexpr int IN_LINE = LANES == 1 ? 4 : 1;  // of them: numbers then move less between registers
// Squares that are nothing beside the largest element's: of what joins two parts of T, and of a
// bulge; products of both in double precision are still in range
constexpr bool WIDE = sizeof(real_t) == 8;
constexpr real_t FLOOR = WIDE ? real_t(0x1p-200) : real_t(0x1p-100),
                 NOTHING = WIDE ? real_t(0x1p-400) : real_t(0x1p-100);
constexpr real_t EPS = WIDE ? real_t(0x1p-53) : real_t(0x1p-24);

struct alignas(2 * sizeof(real_t)) Pair { real_t d, e; };  // T(i, i), T(i + 1, i)

// A lane's matrix and where its QL is. The block l ... m is at work; its bulge is to pass i.
struct Lane {
    Pair* t;                // elements LANES apart
    int n, l, m, i;
    bool search;            // nothing is known of where the block ends
    bool chasing;
    int first, second;      // the smallest places where T has come apart in this sweep, or -1
    real_t f, g, q, last_g;        // c = last_g q, s = f q are the last rotation's
    real_t squared, p;             // f^2 of the next; in float32 it is not in range
    real_t diagonal, next, below;  // d[i + 1], d[i], e[i] as they were
    real_t finished;               // d[i + 2] as it has become
    real_t kept;                   // e[m], not this block's

    __device__ Pair& at(int k) { return t[k * LANES]; }
    __device__ bool apart(real_t squared, real_t a, real_t b) const
    {
        return squared <= fma(EPS * fabs(a), EPS * fabs(b), FLOOR);
    }
    __device__ bool apart(int k)
    {
        return apart(at(k).e * at(k).e, at(k).d, at(k + 1).d);
    }
    __device__ bool done() const { return l >= n - 1; }

    // Turns T end for end if its largest element is in the first half; whether it was
    __device__ bool turn_round()
    {
        real_t front = 0, back = 0;
        for (int k = 0; k < n / 2; ++k) {
            front = fmax(front, fabs(at(k).d));
            back = fmax(back, fabs(at(n - 1 - k).d));
        }
        if (!(front > back)) return false;
        for (int k = 0; k < n / 2; ++k) {
            const Pair low = at(k), high = at(n - 1 - k);
            at(k).d = high.d;
            at(n - 1 - k).d = low.d;
            if (k < n - 2 - k) {   // e[k] and e[n - 2 - k] are neighbours of other elements
                const real_t e = at(n - 2 - k).e;
                at(n - 2 - k).e = low.e;
                at(k).e = e;
            }
        }
        return true;
    }

    // Moves l and m to the next block that is no single element
    __device__ void find_block()
    {
        while (search && l < n - 1) {
            m = l;
            while (m < n - 1 && !apart(m)) ++m;
            if (m == l) ++l;
            else search = false;
        }
    }

    __device__ void begin_sweep()
    {
        const real_t a = at(l).d, x = at(l).e, half = (at(l + 1).d - a) * real_t(0.5);
        const real_t unit = mirror(fabs(half) > fabs(x) ? fabs(half) : fabs(x));
        const float u = float(half * unit), v = float(x * unit);
        const float both = fmaf(u, u, v * v), root = both * approximate_rsqrt(both);
        const float below_a = v * v * approximate_reciprocal(u + copysignf(root, u));
        i = m - 1;
        diagonal = at(m).d;
        kept = at(m).e;
        next = at(i).d;
        below = at(i).e;
        g = diagonal - (a - real_t(below_a) * mirror(unit));
        f = q = last_g = 1;
        squared = below * below;
        p = 0;
        first = second = -1;
        chasing = true;
    }

    __device__ Turn turn() const { return {last_g * q, f * q}; }

    // Finds the rotation of columns i and i + 1; `turn` is then that one.
    __device__ void step()
    {
        const Pair ahead = at(i > l ? i - 1 : l);
        const Turn before = turn();
        f = before.s * below;
        const real_t h = fma(g, g, WIDE ? squared : f * f);
        const real_t inverse = near_reciprocal(h), ff = f * f, ee = ahead.e * ahead.e;
        last_g = g;
        q = near_rsqrt(h);
        const real_t b = before.c * below, shifted = diagonal - p;
        const real_t w = fma(f, (next - diagonal) + p, 2 * (b * g));
        real_t root = h * q;
        p = WIDE ? f * w * inverse : w * inverse * f;
        g = WIDE ? fma(g * w, inverse, -b) : fma(w * inverse, g, -b);
        squared = ff * ee * inverse;
        if (!(h >= NOTHING)) {
            root = last_g;
            g = b;
            f = p = squared = 0;
            q = last_g = 1;
        }
        const real_t settled = shifted + p;
        const bool inside = i < m - 1, parted = inside && apart(h, settled, finished);
        at(i + 1) = {settled, inside ? root : kept};
        second = parted ? first : second;
        first = parted ? i + 1 : first;
        finished = settled;
        diagonal = next;
        next = ahead.d;
        below = ahead.e;
        --i;
    }

    __device__ void end_sweep()
    {
        const real_t settled = diagonal - p;
        at(l) = {settled, g};
        if (apart(g * g, settled, finished)) {
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
        chasing = false;
    }
};

// w := the eigenvalues of a finished member, rising, as those of A; order := where they were. By
// the warp.
__device__ inline void sorted(const Pair* t, real_t most, real_t* w, int* order, int n)
{
    const bool finite = most - most == 0;
    const Power back = scale_of(finite ? most : real_t(0)).inverse();
    for (int i = threadIdx.x; i < n; i += 32) {
        const real_t x = t[i * LANES].d;
        int rank = finite ? 0 : i;
        for (int j = 0; j < n && finite; ++j) {
            const real_t y = t[j * LANES].d;
            rank += y < x || (y == x && j < i);
        }
        w[rank] = finite ? back.times(x) : most - most;
        order[rank] = i;
    }
}

extern "C" __global__ void __launch_bounds__(32)
steqr_lane(real_t* D, real_t* E, const real_t* most, Turn* turns, size rooms, int* sweeps,
           size sweeps_of, const State* before, State* states, size vectors, size first_pass,
           size last_pass, real_t* w, int* order, int* info, size ns, size batch)
{
    wait_for_stream();
    const int lane = threadIdx.x;
    const size b0 = size(blockIdx.x) * LANES;
    Pair* const t = reinterpret_cast<Pair*>(dynamic_shared);
    const int members = int(batch - b0 < LANES ? batch - b0 : LANES);
    const auto take = [=](const real_t* d, const real_t* e, int k, int i, int n) {
        t[i * LANES + k] = {d[i], i < n - 1 ? e[i] : real_t(0)};
    };
    if (RAGGED) {
        for (int k = 0; k < members; ++k) {
            const int n = size_of(ns, b0 + k);
            for (int i = lane; i < n; i += 32)
                take(array_of(D, n, b0 + k), array_of(E, n, b0 + k), k, i, n);
        }
    } else {
        const int n = int(ns);
        for (int at = lane; at < n * members; at += 32) {
            const int k = at / n;
            take(D + (b0 + k) * n, E + (b0 + k) * n, k, at - k * n, n);
        }
    }
    __syncwarp();

    const bool mine = lane < members;
    const size b = b0 + (mine ? lane : 0);
    const int n = size_of(ns, b), room = size_of(rooms, b), most_sweeps = size_of(sweeps_of, b);
    const real_t size_of_a = *array_of(most, 1, b);
    int* const sweep = array_of(sweeps, most_sweeps, b);
    State state{0, 0, RUNNING, 0};
    if (mine && !first_pass) state = *array_of(before, 1, b);
    if (state.stage != RUNNING) state.stage = FINISHED_BEFORE;
    state.sweeps = 0;
    Lane ql;
    ql.t = t + (mine ? lane : 0);
    ql.n = n;
    ql.l = state.low;
    ql.i = -1;
    ql.search = true;
    ql.chasing = false;
    const bool works = mine && state.stage == RUNNING;
    if (works && first_pass) state.turned = ql.turn_round();
    if (works && !(size_of_a - size_of_a == 0)) ql.l = n;
    bool active = works && !ql.done();
    Turn* turn = array_of(turns, room, b);
    int left = room;
    while (__any_sync(ALL, active)) {
        if (active && ql.i < ql.l) {
            if (ql.chasing) {
                if (vectors) *turn++ = ql.turn();
                ql.end_sweep();
            }
            ql.find_block();
            if (ql.done() || state.sweeps == most_sweeps
                || (vectors && left < ql.m - ql.l)) {
                active = false;
            } else {
                if (vectors) sweep[state.sweeps] = ql.m << 16 | ql.l;
                left -= ql.m - ql.l;
                ++state.sweeps;
                ql.begin_sweep();
                ql.step();
            }
        }
        #pragma unroll IN_LINE
        for (int k = 0; k < STEPS && active && ql.i >= ql.l; ++k) {
            if (vectors) *turn++ = ql.turn();
            ql.step();
        }
    }
    if (works) {
        state.low = ql.l;
        if (ql.done()) state.stage = FINISHED;
        int found = 0;
        if (state.stage == FINISHED) found = !(size_of_a - size_of_a == 0);
        else if (last_pass)
            for (int k = ql.l; k < n - 1; ++k) found += !ql.apart(k);
        if (state.stage == FINISHED || last_pass) *array_of(info, 1, b) = found;
        if (state.stage == RUNNING && !last_pass)
            for (int k = 0; k < n; ++k) {
                array_of(D, n, b)[k] = ql.at(k).d;
                if (k < n - 1) array_of(E, n, b)[k] = ql.at(k).e;
            }
    }
    if (mine) *array_of(states, 1, b) = state;
    __syncwarp();
    for (int k = 0; k < members; ++k) {
        const int stage = __shfl_sync(ALL, state.stage, k);
        const int own = size_of(ns, b0 + k);
        if (stage == FINISHED || (stage == RUNNING && last_pass))
            sorted(t + k, *array_of(most, 1, b0 + k), array_of(w, own, b0 + k),
                   array_of(order, own, b0 + k), own);
    }
}
