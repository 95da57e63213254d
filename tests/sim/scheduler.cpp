// scheduler.cpp: the turns that fibers take, and products of the tensor cores (cuda_sim.h). It is
// compiled once, and optimized, and is part of every kernel's library.
#include <algorithm>
#include <vector>

#include "cuda_sim.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

// Where we know the registers we change over ourselves: swapcontext, which asks the system for the
// signal mask and has AddressSanitizer clear its shadow of the stack every time, took four fifths of
// a run.
#if defined(__x86_64__)
asm(".pushsection .text\n"
    "sim_switch:\n"  // (Context* from, const Context* to): what a callee keeps goes on the stack
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, (%rdi)\n mov (%rsi), %rsp\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    "ret\n.popsection\n");
extern "C" void sim_switch(sim::Context* from, const sim::Context* to);
#else
static void sim_switch(sim::Context* from, const sim::Context* to) { swapcontext(from, to); }
#endif

namespace sim {

Fiber *fibers, *current;
size_t threads_of_block;
unsigned cluster = 1;
char *dynamic, **memories;
size_t part = 0;
bool gave_way = false;

constexpr size_t STACK = 1 << 17;  // bytes of a fiber's
static Context scheduler;
static void (*body)();
static size_t dynamic_size = 0;
static unsigned first_block = 0;  // of those that run together
static size_t all = 0;            // fibers of theirs
static std::vector<char*> spare;  // stacks
static uintptr_t lowest = UINTPTR_MAX, highest = 0;  // where stacks are
static size_t idle = 0;  // how often a group gave way since one got past a barrier, or to its end

void fail(const char* what, int line)
{
    std::fprintf(stderr, "cuda_sim: %s, line %d, block %u\n", what, line, blockIdx.x);
    std::abort();
}

void wait(State state, int line)
{
    Fiber& me = *current;
    me.state = state;
    me.line = line;
    sim_switch(&me.context, &scheduler);
}

static void start()
{
    body();
    wait(ENDED, 0);
}

static char* new_stack()
{
    char* const made = (char*)std::malloc(STACK);
    lowest = std::min(lowest, uintptr_t(made));
    highest = std::max(highest, uintptr_t(made) + STACK);
    return made;
}

// While it lives AddressSanitizer takes the place of all stacks for that of one: to tell it of
// every change took a sixth of a run.
class OnFibers {
    const void* stack = nullptr;
    size_t size = 0;

    static void change(const void* to, size_t size, const void** from, size_t* size_of_it)
    {
        void* shadow = nullptr;
        __sanitizer_start_switch_fiber(&shadow, to, size);
        __sanitizer_finish_switch_fiber(shadow, from, size_of_it);
    }

public:
    OnFibers() { change((const void*)lowest, highest - lowest, &stack, &size); }
    ~OnFibers() { change(stack, size, nullptr, nullptr); }
};

static void prepare(Fiber& f)
{
#if defined(__x86_64__)
    void** top = (void**)((uintptr_t)(f.stack + STACK) & ~uintptr_t(15));
    top[-2] = (void*)start;  // sim_switch returns to it, on a stack as after a call
    top[-3] = nullptr;       // no frame is outside of start's
    f.context.top = top - 8;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = nullptr;
    makecontext(&f.context, start, 0);
#endif
}

static void resume(Fiber& f)
{
    current = &f;
    const unsigned of = f.number / threads_of_block, block = first_block + of;
    threadIdx = {f.number % blockDim.x, f.number / blockDim.x % blockDim.y, 0};
    blockIdx = {block % gridDim.x, block / gridDim.x, 0};
    dynamic = memories[of];
    sim_switch(&scheduler, &f.context);
}

// Lets a group go on if all of it waits in `state` at one place. False if it does not all wait.
static bool release(size_t first, size_t last, State state, const char* what)
{
    size_t waiting = 0, ended = 0;
    for (size_t i = first; i < last; ++i) {
        waiting += fibers[i].state == state;
        ended += fibers[i].state == ENDED;
    }
    if (!waiting || waiting + ended < last - first) return false;
    for (size_t i = first; i < last; ++i) {
        if (fibers[i].state == ENDED) fail(what, fibers[first].line);
        if (fibers[i].line != fibers[first].line) fail(what, fibers[i].line);
        fibers[i].state = RUNNING;
    }
    return true;
}

// A cluster, or a block, and what it has while others run that it waits for.
struct Group {
    unsigned first;            // of its blocks
    uint64_t random;
    std::vector<size_t> turn;
    std::vector<Fiber> fibers;
    std::vector<std::vector<char>> memories;
};

static void begin(Group& group, int schedule)
{
    const size_t shared = __stop_shared_memory - __start_shared_memory;
    if (cluster > 1 && shared) fail("blocks of a cluster have dynamic shared memory only", 0);
    if (shared) std::memset(__start_shared_memory, 0xff, shared);
    for (unsigned b = 0; b < cluster; ++b) std::memset(memories[b], 0xff, dynamic_size);
    group.random = schedule;
    group.turn.resize(all);
    group.fibers.resize(all);
    for (size_t i = 0; i < all; ++i) {
        Fiber& f = group.fibers[i];
        group.turn[i] = schedule == 1 ? all - 1 - i : i;
        if (spare.empty()) spare.push_back(new_stack());
        f.stack = spare.back();
        spare.pop_back();
        f.state = RUNNING;
        f.count = 0;
        f.number = i;
        prepare(f);
    }
}

// Its memory, out of the way or back
static void change_over(Group& group, bool back)
{
    group.memories.resize(cluster + 1);
    const auto copy = [=](char* memory, size_t size, std::vector<char>& kept) {
        kept.resize(size);
        if (back) std::copy(kept.begin(), kept.end(), memory);
        else std::copy(memory, memory + size, kept.begin());
    };
    for (unsigned b = 0; b < cluster; ++b) copy(memories[b], dynamic_size, group.memories[b]);
    if (const size_t size = __stop_shared_memory - __start_shared_memory)
        copy(__start_shared_memory, size, group.memories.back());
}

// Until its end, or, false, until it has given way a few times
static bool run(Group& group, int schedule)
{
    const size_t threads = threads_of_block, warps = (all + 31) / 32;
    std::vector<size_t>& turn = group.turn;
    fibers = group.fibers.data();
    first_block = group.first;
    const OnFibers on_fibers;
    std::vector<size_t> order, blocks;   // in the order of their first threads' turns
    std::vector<std::vector<size_t>> of(warps);  // threads of each warp, in their order
    for (int turns = 0;;) {
        for (size_t i = schedule > 1 ? turn.size() : 0; i > 1; --i) {
            group.random = group.random * 6364136223846793005u + 1442695040888963407u;
            std::swap(turn[i - 1], turn[(group.random >> 33) % i]);
        }
        bool moved = false;
        auto one_turn = [&](auto first, auto last) {
            for (auto i = first; i < last; ++i)
                if (fibers[*i].state == RUNNING) resume(fibers[*i]);
        };
        auto go_on = [](size_t w) {
            return release(32 * w, std::min(all, 32 * w + 32), AT_WARP, "a warp is split");
        };
        auto release_block = [=](size_t b) {
            return release(b * threads, (b + 1) * threads, AT_BLOCK,
                           "a barrier is not reached by all");
        };
        if (schedule % 2) {
            order.clear(), blocks.clear();
            for (auto& threads : of) threads.clear();
            for (size_t i : turn) {
                if (of[i / 32].empty()) order.push_back(i / 32);
                of[i / 32].push_back(i);
            }
            for (size_t w : order)
                if (std::find(blocks.begin(), blocks.end(), 32 * w / threads) == blocks.end())
                    blocks.push_back(32 * w / threads);
            for (size_t b : blocks)
                do
                    for (size_t w : order)
                        if (32 * w / threads == b)
                            do one_turn(of[w].begin(), of[w].end());
                            while (go_on(w));
                while (release_block(b));
        } else {
            one_turn(turn.begin(), turn.end());
            for (size_t w = 0; w < warps; ++w) moved |= go_on(w);
        }
        for (size_t b = 0; b < all; b += threads)
            moved |= part && release(b, b + part, AT_PART,
                                     "a barrier of some warps is not reached by all");
        for (size_t b = 0; b + 128 <= all; b += 128)
            moved |= release(b, b + 128, AT_GROUP, "four warps do not meet");
        for (Fiber& f : group.fibers)
            if (f.state == AT_PHASE && f.barrier->phase != f.phase) f.state = RUNNING, moved = true;
        if (gave_way) {  // to its own others first
            gave_way = false;
            if (++turns > 2) return false;
            continue;
        }
        if (moved) continue;
        idle = 0;
        if (std::all_of(group.fibers.begin(), group.fibers.end(),
                        [](auto& f) { return f.state == ENDED; })) {
            for (Fiber& f : group.fibers) spare.push_back(f.stack);
            return true;
        }
        for (size_t b = 0; b < cluster; ++b) moved |= release_block(b);
        moved |= release(0, all, AT_CLUSTER, "a cluster's barrier is not reached by all");
        if (!moved) fail("threads wait for each other", 0);
    }
}

void launch(void (*what)(), dim3 blocks, dim3 threads, int schedule, size_t shared,
            unsigned blocks_of_cluster)
{
    const size_t room = (shared + 127) / 128 * 128;  // what is past `shared` in it nobody may touch
    std::vector<char*> made(blocks_of_cluster);
    for (char*& memory : made) {
        memory = (char*)std::aligned_alloc(128, room);
        ASAN_POISON_MEMORY_REGION(memory + shared, room - shared);
    }
    memories = made.data();
    cluster = blocks_of_cluster;
    dynamic_size = shared;
    body = what;
    gridDim = blocks;
    blockDim = threads;
    threads_of_block = threads.x * threads.y;
    all = threads_of_block * cluster;
    std::vector<Group> waiting;
    for (unsigned b = 0; b < blocks.x * blocks.y; b += cluster) {
        Group group{b};
        begin(group, schedule);
        if (run(group, schedule)) continue;
        change_over(group, false);
        waiting.push_back(std::move(group));
    }
    while (!waiting.empty())
        for (size_t g = 0; g < waiting.size();) {
            if (++idle > 20000) fail("what nobody writes is awaited", 0);
            change_over(waiting[g], true);
            if (run(waiting[g], schedule)) {
                waiting.erase(waiting.begin() + g);
            } else {
                change_over(waiting[g], false);
                ++g;
            }
        }
    for (char* memory : made) {
        ASAN_UNPOISON_MEMORY_REGION(memory, room);
        std::free(memory);
    }
}

// -- Products of the tensor cores

// What a lane has of a product's operands
template <class T, int A, int B> struct Operands { T a[A], b[B]; };

void mma_m8n8k4(double& c0, double& c1, double a, double b, int line)
{
    const int g = lane() / 4, t = lane() % 4;
    const Posted<Operands<double, 1, 1>> all({{a}, {b}}, line);
    for (int k = 0; k < 4; ++k) {
        const double row = all[4 * g + k].a[0];
        c0 = fma(row, all[8 * t + k].b[0], c0);
        c1 = fma(row, all[8 * t + 4 + k].b[0], c1);
    }
}

void mma_m16n8k8(float (&c)[4], const float (&a)[4], const float (&b)[2], int line)
{
    const auto rough = [](float x) {
        uint32_t bits;
        std::memcpy(&bits, &x, 4);
        bits &= 0xffffe000;
        std::memcpy(&x, &bits, 4);
        return x;
    };
    const int g = lane() / 4, t = lane() % 4;
    const Posted<Operands<float, 4, 2>> all({{rough(a[0]), rough(a[1]), rough(a[2]), rough(a[3])},
                                             {rough(b[0]), rough(b[1])}}, line);
    double sum[4] = {c[0], c[1], c[2], c[3]};
    for (int k = 0; k < 2; ++k)
        for (int p = 0; p < 4; ++p)
            for (int half = 0; half < 2; ++half)
                for (int e = 0; e < 2; ++e)
                    sum[2 * half + e] += double(all[4 * g + p].a[2 * k + half])
                                         * all[4 * (2 * t + e) + p].b[k];
    for (int e = 0; e < 4; ++e) c[e] = float(sum[e]);
}

void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                  const float* values, int line)
{
    const auto number = [=](unsigned pair, int i) -> double {
        return values[pair >> 16 * i & 0xffff];
    };
    const int g = lane() / 4, t = lane() % 4;
    const Posted<Operands<unsigned, 4, 2>> all({{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, line);
    for (int half = 0; half < 2; ++half)
        for (int e = 0; e < 2; ++e) {
            double sum = c[2 * half + e];
            for (int k = 0; k < 4; ++k) {
                const auto row = all[4 * g + k];
                const auto column = all[4 * (2 * t + e) + k];
                for (int pair = 0; pair < 2; ++pair)
                    for (int i = 0; i < 2; ++i)
                        sum += number(row.a[half + 2 * pair], i) * number(column.b[pair], i);
            }
            c[2 * half + e] = float(sum);
        }
}

}  // namespace sim
