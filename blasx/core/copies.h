/* Matrices between the caller's memory and a GPU's, by threads that never hold Python's lock: each
   time one takes it back, who launches the GPU's work waits.

   A thread that serves a queue takes its pieces in order. It has room for two in memory that the GPU
   reaches by itself, and a stream: while one piece is on its way there, the one before is scattered
   to the caller's matrix; while one is gathered, the one before is on its way. Behind a piece its
   stream writes a word there: for a thread to look at, which costs no call of the driver, and for
   other streams to wait for. */

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { WAITS, TAKEN, SENT, DONE, WITHDRAWN };
enum { NOT_READY = 600 };  /* cudaErrorNotReady */
enum { AT_ONCE = 64, LOOKS = 200, BETWEEN = 20000 };  /* looks at a word, nanoseconds */

typedef struct piece {
    int status, error, server;  /* of the driver; who has it */
    double times[3];            /* it began, was gathered or had come, was done */
    char *host, *device;
    ptrdiff_t host_step, device_step, bytes, columns;  /* bytes from column to column, and in one */
    void *after;                /* an event, or nothing */
    uint32_t *there;            /* the word, not 0 when it is */
    struct piece *next;
} piece;

typedef struct {
    int to_device, closed;
    int (*wait)(void *stream, void *event, unsigned flags);
    int (*copy)(const void *what, void *stream);
    int (*operate)(void *stream, unsigned count, void *operations, unsigned flags);
    int (*query)(void *stream);
    pthread_mutex_t lock;
    pthread_cond_t offered, done;
    piece *first, **last;
} queue;

typedef struct {  /* CUDA_MEMCPY2D, of which arrays are no part */
    struct place { size_t x, y; unsigned kind; const void *host; void *device, *array; size_t step; }
        from, to;
    size_t bytes, columns;
} both_ways;

typedef union {  /* CUstreamBatchMemOpParams: wait until a word is at least so much, or write it */
    struct { unsigned what; void *word; uint64_t value; unsigned flags; uint64_t alias; } of;
    uint64_t room[6];
} operation;

enum { WAIT = 1, WRITE = 2 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void open_queue(queue *q, int to_device, const uintptr_t *driver)
{
    q->to_device = to_device;
    q->closed = 0;
    q->wait = (int (*)(void *, void *, unsigned))driver[0];
    q->copy = (int (*)(const void *, void *))driver[1];
    q->operate = (int (*)(void *, unsigned, void *, unsigned))driver[2];
    q->query = (int (*)(void *))driver[3];
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->offered, NULL);
    pthread_cond_init(&q->done, NULL);
    q->first = NULL;
    q->last = &q->first;
}

/* A matrix in pieces of at most so many bytes of so many columns: as many as there are room for. */
void offer(queue *q, piece *p, uint32_t *there, char *host, ptrdiff_t host_step, char *device,
           ptrdiff_t device_step, ptrdiff_t bytes, ptrdiff_t columns, ptrdiff_t high, ptrdiff_t wide,
           void *after)
{
    pthread_mutex_lock(&q->lock);
    for (ptrdiff_t j = 0; j < columns; j += wide)
        for (ptrdiff_t i = 0; i < bytes; i += high, ++p) {
            *there = 0;
            *p = (piece){
                .there = there++,
                .host = host + i + j * host_step, .device = device + i + j * device_step,
                .host_step = host_step, .device_step = device_step, .after = after,
                .bytes = high < bytes - i ? high : bytes - i,
                .columns = wide < columns - j ? wide : columns - j};
            *q->last = p;
            q->last = &p->next;
        }
    pthread_cond_broadcast(&q->offered);
    pthread_mutex_unlock(&q->lock);
}

/* Wait for pieces; 0, or what the driver returned for one that failed. */
int awaited(queue *q, const piece *p, ptrdiff_t count)
{
    int error = 0;
    pthread_mutex_lock(&q->lock);
    for (const piece *end = p + count; p < end; ++p) {
        while (p->status < DONE) pthread_cond_wait(&q->done, &q->lock);
        if (!error) error = p->error;
    }
    pthread_mutex_unlock(&q->lock);
    return error;
}

/* Have a stream wait for pieces, as soon as they are on their way; returns as awaited. */
int joined(queue *q, const piece *p, ptrdiff_t count, void *stream)
{
    int error = 0;
    for (operation some[64]; count && !error;) {
        unsigned k = 0;
        pthread_mutex_lock(&q->lock);
        for (; count && k < 64; --count, ++p) {
            while (p->status < SENT) pthread_cond_wait(&q->done, &q->lock);
            if (!error) error = p->error;
            if (p->status == SENT)
                some[k++] = (operation){.of = {WAIT, p->there, 1, 0, 0}};
        }
        pthread_mutex_unlock(&q->lock);
        if (k && !error) error = q->operate(stream, k, some, 0);
    }
    return error;
}

/* Leave out what nobody has begun with. */
void withdraw(queue *q, const piece *p, ptrdiff_t count)
{
    pthread_mutex_lock(&q->lock);
    for (piece **at = &q->first; *at;) {
        piece *const x = *at;
        if (x < p || x >= p + count) {
            at = &x->next;
            continue;
        }
        x->status = WITHDRAWN;
        *at = x->next;
        if (!*at) q->last = at;
    }
    pthread_cond_broadcast(&q->done);
    pthread_mutex_unlock(&q->lock);
}

static piece *taken(queue *q, int patient, int server)
{
    pthread_mutex_lock(&q->lock);
    while (patient && !q->first && !q->closed) pthread_cond_wait(&q->offered, &q->lock);
    piece *const p = q->first;
    if (p) {
        q->first = p->next;
        if (!q->first) q->last = &q->first;
        p->status = TAKEN;
        p->server = server;
    }
    pthread_mutex_unlock(&q->lock);
    return p;
}

static void reached(queue *q, piece *p, int status)
{
    pthread_mutex_lock(&q->lock);
    p->status = status;
    pthread_cond_broadcast(&q->done);
    pthread_mutex_unlock(&q->lock);
}

/* `before` is not done, so that its event is kept, for which this stream has waited. */
static void begin(queue *q, piece *p, char *room, void *stream, const piece *before)
{
    ptrdiff_t bytes = p->bytes, columns = p->columns, step = p->device_step;
    if (bytes == step) {  /* on both sides in one */
        bytes = step = bytes * columns;
        columns = 1;
    }
    const struct place here = {0, 0, 1, room, NULL, NULL, (size_t)bytes};
    const struct place there = {0, 0, 2, NULL, p->device, NULL, (size_t)step};
    both_ways what = {there, here, (size_t)bytes, (size_t)columns};
    operation word = {.of = {WRITE, p->there, 1, 0, 0}};
    p->times[0] = now();
    if (q->to_device) {
        for (ptrdiff_t j = 0; j < p->columns; ++j)
            memcpy(room + j * p->bytes, p->host + j * p->host_step, (size_t)p->bytes);
        what.from = here;
        what.to = there;
        p->times[1] = now();
    }
    if (p->after && !(before && before->after == p->after)) p->error = q->wait(stream, p->after, 0);
    if (!p->error) p->error = q->copy(&what, stream);
    if (!p->error) p->error = q->operate(stream, 1, &word, 0);
    reached(q, p, SENT);
}

/* Wait until a stream has written a word, or has failed. */
static int written(queue *q, const uint32_t *word, void *stream)
{
    const struct timespec between = {0, BETWEEN};
    for (int looks = 0; !__atomic_load_n(word, __ATOMIC_ACQUIRE); ++looks) {
        if (looks < AT_ONCE) {
            sched_yield();
            continue;
        }
        nanosleep(&between, NULL);
        if (looks % LOOKS) continue;
        const int status = q->query(stream);
        if (status && status != NOT_READY) return status;
    }
    return 0;
}

static void finish(queue *q, piece *p, const char *room, void *stream)
{
    if (!p->error) p->error = written(q, p->there, stream);
    if (!q->to_device) {
        p->times[1] = now();
        for (ptrdiff_t j = 0; j < p->columns && !p->error; ++j)
            memcpy(p->host + j * p->host_step, room + j * p->bytes, (size_t)p->bytes);
    }
    p->times[2] = now();
    reached(q, p, DONE);
}

/* Those who serve a queue that is empty leave. */
void close_queue(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    pthread_cond_broadcast(&q->offered);
    pthread_mutex_unlock(&q->lock);
}

void serve(queue *q, char *room, ptrdiff_t half, void *stream, int server)
{
    char *const rooms[] = {room, room + half};
    piece *before = NULL;
    for (int turn = 0;; turn ^= 1) {
        piece *const p = taken(q, !before, server);
        if (!p && !before) return;
        if (p) begin(q, p, rooms[turn], stream, before);
        if (before) finish(q, before, rooms[turn ^ 1], stream);
        before = p;
    }
}
