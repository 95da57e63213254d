"""Builds blasx._batch, the one compiled file of blasx: batches on the CPU, and the threads that
copy between the caller's memory and a GPU's, from core/*.c.

A Python loop costs a microsecond per call, more than the factorization of an 8 x 8 matrix; LAPACK
itself is made for larger ones. Without a compiler at installation the extension is left out, and
`batched/_cpu.py` loops over LAPACK in Python: right results, slower at n < 64.
"""

from pathlib import Path

from cffi import FFI

CORE = Path(__file__).resolve().parent / "core"
FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]

DECLARATIONS = """
    void lapack(uintptr_t routine, int arguments, void **pointers, const ptrdiff_t *steps,
                int count, const ptrdiff_t *turned, const ptrdiff_t *turned_steps,
                ptrdiff_t batch, ptrdiff_t share, ptrdiff_t *next);
    int widest(void);
    int within(const void *rows, ptrdiff_t count, ptrdiff_t n);
    int own(int width, int routine, int type, const ptrdiff_t *sizes, void *a, void *f, void *b,
            void *x, void *piv, void *info, ptrdiff_t batch, ptrdiff_t share, ptrdiff_t *next);

    typedef struct { int server; double times[3]; ...; } piece;
    typedef struct { ...; } queue;
    void open_queue(queue *, int to_device, const uintptr_t *driver);
    void close_queue(queue *);
    void offer(queue *, piece *, uint32_t *there, char *host, ptrdiff_t host_step, char *device,
               ptrdiff_t device_step, ptrdiff_t bytes, ptrdiff_t columns, ptrdiff_t high,
               ptrdiff_t wide, void *after);
    int awaited(queue *, const piece *, ptrdiff_t count);
    int joined(queue *, const piece *, ptrdiff_t count, void *stream);
    void withdraw(queue *, const piece *, ptrdiff_t count);
    void serve(queue *, char *room, ptrdiff_t half, void *stream, int server);
"""

ffi = FFI()
ffi.cdef(DECLARATIONS)
ffi.set_source("blasx._batch", '#include "batch.c"\n#include "copies.h"', optional=True,
               include_dirs=[str(CORE)], depends=sorted(map(str, CORE.iterdir())),
               libraries=["m", "pthread"], extra_compile_args=FLAGS)
