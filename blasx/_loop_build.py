"""Builds blasx._loop, the one compiled file of blasx: LAPACK called over a batch from C.

A Python loop costs a microsecond per call, more than the factorization of a 8 x 8 matrix; NumPy
loops in C. Without a compiler at installation the extension is left out, and `batched/_cpu.py`
loops in Python: the same results, slower at n < 32.
"""

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    void each(uintptr_t routine, int arguments, uintptr_t *pointers, const ptrdiff_t *steps,
              ptrdiff_t count);
""")
ffi.set_source("blasx._loop", """
    #include <stddef.h>
    #include <stdint.h>
    typedef void *P;

    /* Call routine(p0, p1, ...) count times; after each call, pointer i moves by steps[i] bytes. */
    static void each(uintptr_t routine, int arguments, uintptr_t *pointers,
                     const ptrdiff_t *steps, ptrdiff_t count)
    {
        P *p = (P *)pointers;
        for (ptrdiff_t k = 0; k < count; ++k) {
            switch (arguments) {
            case 5:
                ((void (*)(P, P, P, P, P))routine)(p[0], p[1], p[2], p[3], p[4]);
                break;
            case 6:
                ((void (*)(P, P, P, P, P, P))routine)(p[0], p[1], p[2], p[3], p[4], p[5]);
                break;
            case 8:
                ((void (*)(P, P, P, P, P, P, P, P))routine)(p[0], p[1], p[2], p[3], p[4], p[5],
                                                            p[6], p[7]);
                break;
            case 9:
                ((void (*)(P, P, P, P, P, P, P, P, P))routine)(p[0], p[1], p[2], p[3], p[4], p[5],
                                                               p[6], p[7], p[8]);
                break;
            default:
                return;
            }
            for (int i = 0; i < arguments; ++i)
                pointers[i] += (uintptr_t)steps[i];
        }
    }
""", optional=True, extra_compile_args=["-O2"])
