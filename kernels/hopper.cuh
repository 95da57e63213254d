// hopper.cuh: barriers that count bytes, boxes of a tensor copied by the hardware, clusters of
// blocks, and products of a group of four warps whose operands stay in shared memory. sm_90a only,
// inline PTX.
//
// The ring that these are for: a thread (the producer) waits until a stage of shared memory is
// empty, says how many bytes are to come (`expect`) and has boxes copied there (`load_box`); groups
// of four warps wait until the stage is full, issue products that read it (`multiply`), close and
// await them, and then say that it is empty (`arrive`). Who waits keeps the phase of each barrier,
// 0 or 1, which changes whenever the ring begins anew: of a barrier that nobody has completed yet
// phase 1 has passed.
#pragma once
#include "barriers.cuh"
#include "half.cuh"

// What the driver makes of an address, extents, strides and the shape of a box, and copies obey
// (blasx/_kernel.py: TensorMap). It is a parameter of the kernel: __grid_constant__.
#ifndef BLASX_SIM           // tests/sim/cuda_sim.h has what attention needs of this, here and below
struct alignas(64) TensorMap { char bytes[128]; };

// Arrives at the barrier at the same place in another block of the cluster. It publishes no writes:
// with .release.cluster every arrival would wait for all of the thread's memory operations.
__device__ inline void arrive_in(unsigned block, unsigned at)
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}"
                 :: "r"(at), "r"(block) : "memory");
}

// -- copies

// The box at (x, y, z) of a tensor, x along its rows, to shared memory; its bytes, all of them,
// complete on the barrier. Zeros stand for what is outside of the tensor.
__device__ inline void load_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                                int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}

// The same to all blocks of the cluster that `blocks` has a bit for, at the same place in each, and
// to the barriers of each
__device__ inline void load_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                                int z, unsigned short blocks)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;"
                 :: "r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
                 : "memory");
}

// The same of a tensor of four axes
__device__ inline void load_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                                int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// -- turns: groups of four warps that go one after the other, `wait_turn` and `give_turn` naming
// whose turn it is; the last one gives the first turn

__device__ inline void wait_turn(int group)
{
    asm volatile("bar.sync %0, 256;" :: "r"(group + 1) : "memory");
}
__device__ inline void give_turn(int group)
{
    asm volatile("bar.arrive %0, 256;" :: "r"(group + 1) : "memory");
}

// A group of four warps meets. any_of_group: whether x is true for any of its threads.
__device__ inline void meet(int group)
{
    asm volatile("bar.sync %0, 128;" :: "r"(group + 8) : "memory");
}
__device__ inline bool any_of_group(bool x, int group)
{
    int any;
    asm volatile("{\n.reg .pred mine, all;\nsetp.ne.b32 mine, %2, 0;\n"
                 "barrier.cta.red.or.pred all, %1, 128, mine;\nselp.b32 %0, 1, 0, all;\n}"
                 : "=r"(any) : "r"(group + 8), "r"(int(x)) : "memory");
    return any;
}

// -- products

// A group of four warps gives registers back, or takes them: of all threads 65536 at most
template <int REGISTERS> __device__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(REGISTERS));
}
template <int REGISTERS> __device__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(REGISTERS));
}
#endif

// A tile in shared memory: rows of 128 bytes, as a box of that width with the hardware's swizzle of
// 128 bytes leaves them (chunk c of 16 bytes of row r is at c ^ (r % 8)), named as products want
// it. It begins at a multiple of 1024 bytes. A row is a line, along k, or, ACROSS, 64 numbers of
// two bytes of as many lines; `next` bytes further are then the rows of the next 64 lines.
constexpr int TILE_ROW = 128;
template <int ACROSS> __device__ word tile_at(unsigned at, unsigned next = 16)
{
    constexpr word next_rows = word(8 * TILE_ROW >> 4) << 32, swizzle = word(1) << 62;
    return swizzle | next_rows | word(next >> 4) << 16 | (at & 0x3ffff) >> 4;
}
// + this is the k of one product, 32 bytes of it, further
template <int ACROSS> constexpr int ONE_PRODUCT = ACROSS ? 16 * TILE_ROW >> 4 : 2;

// Products run while their warps go on. begin_products(): the sums' registers are theirs from now
// on; end_products() closes a group of those since; await_products<later>() returns when at most
// `later` groups still run, and then the registers of the others are the program's again, whose
// compiler `keep` tells so.
#ifndef BLASX_SIM
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int later> __device__ void await_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(later) : "memory");
}
// Products are not awaited before x >= 0 is there; else the compiler, which sees no reason for it,
// may compute x afterwards, when nothing runs beside.
__device__ inline void compute_first(float x)
{
    if (x < 0) __nanosleep(1);
}
template <int R> __device__ void keep(float (&sums)[R])
{
    #pragma unroll
    for (int i = 0; i < R; ++i) asm volatile("" : "+f"(sums[i]) :: "memory");
}
template <int R> __device__ void keep(int (&sums)[R])
{
    #pragma unroll
    for (int i = 0; i < R; ++i) asm volatile("" : "+r"(sums[i]) :: "memory");
}
#endif

// multiply(sums, a, b, T()): sums += A B^T, and multiply<FRESH>, sums := A B^T, for 64 rows of A, N
// of B, 32 bytes of k, numbers of type T in tiles as above, of A or B across its lines where flags
// say so. Warp w of the four has rows 16 w ... of the sums, lane (g, t) = (lane / 4, lane % 4) of
// them (g, 8 j + 2 t), (g, 8 j + 2 t + 1), (g + 8, ...), (g + 8, ...) in sums[4 j ...], j < N / 8.
constexpr int FRESH = 1;  // no number is given to the sums before, which would be waited for
#ifndef BLASX_SIM
//
// The text for one N: the sums' registers are the first N / 2 operands of the statement, the tiles
// the next two. REGISTERS_n and SUMS_n name the first n of them.
#define REGISTERS_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,"  \
                     "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGISTERS_52 REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,"  \
                     "%47,%48,%49,%50,%51"
#define REGISTERS_64 REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,"  \
                     "%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define REGISTERS_96 REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,"  \
                     "%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGISTERS_100 REGISTERS_96 ",%96,%97,%98,%99"
#define REGISTERS_128 REGISTERS_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"     \
                      "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,"     \
                      "%122,%123,%124,%125,%126,%127"
#define SUMS_4(F, i) F(sums[i]), F(sums[i + 1]), F(sums[i + 2]), F(sums[i + 3])
#define SUMS_16(F, i) SUMS_4(F, i), SUMS_4(F, i + 4), SUMS_4(F, i + 8), SUMS_4(F, i + 12)
#define SUMS_32(F) SUMS_16(F, 0), SUMS_16(F, 16)
#define SUMS_52(F) SUMS_32(F), SUMS_16(F, 32), SUMS_4(F, 48)
#define SUMS_64(F) SUMS_32(F), SUMS_16(F, 32), SUMS_16(F, 48)
#define SUMS_96(F) SUMS_64(F), SUMS_16(F, 64), SUMS_16(F, 80)
#define SUMS_100(F) SUMS_96(F), SUMS_4(F, 96)
#define SUMS_128(F) SUMS_96(F), SUMS_16(F, 96), SUMS_16(F, 112)
#define OF_FLOAT(x) "+f"(x)
#define OF_INT(x) "+r"(x)
#define NEW_OF_FLOAT(x) "=f"(x)
#define NEW_OF_INT(x) "=r"(x)

// N rows of B, R = N / 2 registers; the operands of A, B, whether there are sums, whether A and B
// are across; SUM, OF its kind of register; T, K of it in 32 bytes, and its name; LAST(..) what
// follows: signs, and transposes where the type has them
#define MULTIPLY(N, R, A, B, D, TA, TB, SUM, OF, T, K, TYPES, LAST)                                \
    template <int fresh = 0, int a_across = 0, int b_across = 0>                                   \
    __device__ void multiply(SUM (&sums)[R], word a, word b, T)                                    \
    {                                                                                              \
        if constexpr (fresh)                                                                       \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k" #K "." TYPES " {"              \
                         REGISTERS_##R "}, %" #A ", %" #B ", %" #D LAST(TA, TB) ";"                \
                         : SUMS_##R(NEW_##OF) : "l"(a), "l"(b), "n"(0), "n"(a_across),             \
                           "n"(b_across));                                                         \
        else                                                                                       \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k" #K "." TYPES " {"              \
                         REGISTERS_##R "}, %" #A ", %" #B ", %" #D LAST(TA, TB) ";"                \
                         : SUMS_##R(OF) : "l"(a), "l"(b), "n"(1), "n"(a_across), "n"(b_across));   \
    }
#define MULTIPLY_ALL(SUM, OF, T, K, TYPES, LAST)                                                   \
    MULTIPLY(64, 32, 32, 33, 34, 35, 36, SUM, OF, T, K, TYPES, LAST)                               \
    MULTIPLY(104, 52, 52, 53, 54, 55, 56, SUM, OF, T, K, TYPES, LAST)                              \
    MULTIPLY(128, 64, 64, 65, 66, 67, 68, SUM, OF, T, K, TYPES, LAST)                              \
    MULTIPLY(192, 96, 96, 97, 98, 99, 100, SUM, OF, T, K, TYPES, LAST)                             \
    MULTIPLY(200, 100, 100, 101, 102, 103, 104, SUM, OF, T, K, TYPES, LAST)                        \
    MULTIPLY(256, 128, 128, 129, 130, 131, 132, SUM, OF, T, K, TYPES, LAST)
#define OF_TWO_BYTES(TA, TB) ", 1, 1, %" #TA ", %" #TB
#define OF_ONE_BYTE(TA, TB) ""

MULTIPLY_ALL(float, OF_FLOAT, half, 16, "f32.f16.f16", OF_TWO_BYTES)
MULTIPLY_ALL(float, OF_FLOAT, bfloat16, 16, "f32.bf16.bf16", OF_TWO_BYTES)
MULTIPLY_ALL(int, OF_INT, signed char, 32, "s32.s8.s8", OF_ONE_BYTE)

// The same, 16 of k, where A is in registers, as that of half.cuh's products in each warp
#define MULTIPLY_HELD(N, R, A0, A1, A2, A3, B, D, TB, T, TYPES)                                    \
    template <int fresh = 0, int b_across = 0>                                                     \
    __device__ void multiply_held(float (&sums)[R], const int* a, word b, T)                       \
    {                                                                                              \
        if constexpr (fresh)                                                                       \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16." TYPES " {" REGISTERS_##R    \
                         "}, {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #B ", %" #D                 \
                         ", 1, 1, %" #TB ";"                                                       \
                         : SUMS_##R(NEW_OF_FLOAT)                                                  \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(0),             \
                           "n"(b_across));                                                         \
        else                                                                                       \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16." TYPES " {" REGISTERS_##R    \
                         "}, {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #B ", %" #D                 \
                         ", 1, 1, %" #TB ";"                                                       \
                         : SUMS_##R(OF_FLOAT)                                                      \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1),             \
                           "n"(b_across));                                                         \
    }
MULTIPLY_HELD(64, 32, 32, 33, 34, 35, 36, 37, 38, half, "f32.f16.f16")
MULTIPLY_HELD(128, 64, 64, 65, 66, 67, 68, 69, 70, half, "f32.f16.f16")
MULTIPLY_HELD(64, 32, 32, 33, 34, 35, 36, 37, 38, bfloat16, "f32.bf16.bf16")
MULTIPLY_HELD(128, 64, 64, 65, 66, 67, 68, 69, 70, bfloat16, "f32.bf16.bf16")
#endif
