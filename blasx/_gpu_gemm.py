"""Small products on the GPU: gemm_small, where cuBLAS would cost the host more than the product.

How small is a tuned row: rows of gemm_small name the TILE up to the largest of m, n, k; past the
last one cuBLAS takes over.
"""

import threading
from functools import cache
from struct import Struct

from . import _cuda
from ._kernel import Kernel, ffi, gpu
from ._tuned import capitals, looked_up, row

# The parameters of gemm_small, cell by cell: m n k alpha A(4) B(4) beta with_c C(3)
_SCALAR = {"s": "f4x", "d": "d", "c": "2f", "z": "2d"}
_PACK = {letter: Struct(f"<3q{s}8q{s}4q").pack_into for letter, s in _SCALAR.items()}
_SIDE = 16  # threads a side of a block
_LARGEST = 4096  # no row reaches so far


def _offsets(letter):
    """Where each of the 17 parameters begins."""
    scalar = 16 if letter == "z" else 8
    sizes = [8] * 3 + [scalar] + [8] * 8 + [scalar] + [8] * 4
    return [sum(sizes[:i]) for i in range(len(sizes))]


class _Local(threading.local):
    """Each thread's cells for the parameters, and where they are, by type."""

    def __init__(self):
        cells = ffi.new("char[]", 256)
        self.cells = ffi.buffer(cells)
        self.parameters = {letter: ffi.new("void *[]", [cells + i for i in _offsets(letter)])
                           for letter in _SCALAR}


_local = _Local()


@looked_up
def _kernel_on(letter, largest, device):
    """The kernel for products of that largest extent, or None past the last row."""
    found = row("gemm_small", letter, largest, gpu(device))
    return found and _kernel(letter, **capitals(found))


@cache
def _kernel(letter, **values):
    return Kernel("gemm_small", letter, **values)


def multiply(me, alpha, a, b, beta, c, trans_a, trans_b):
    """C := alpha op(A) op(B) + beta C by gemm_small if it is small enough; else returns False."""
    m, n = c.shape
    a_row, a_col = a.strides
    b_row, b_col = b.strides
    if trans_a:
        a_row, a_col = a_col, a_row
    if trans_b:
        b_row, b_col = b_col, b_row
    k = a.shape[0] if trans_a else a.shape[1]
    kernel = _kernel_on(me.letter, min(max(m, n, k), _LARGEST), _cuda.current_device())
    if kernel is None:
        return False
    tile = kernel.constants["TILE"]
    size = a.itemsize
    c_row, c_col = c.strides
    if me.is_complex:
        alpha, beta = complex(alpha), complex(beta)
        scalars = (alpha.real, alpha.imag), (beta.real, beta.imag)
    else:
        scalars = (alpha,), (beta,)
    _PACK[me.letter](
        _local.cells, 0, m, n, k, *scalars[0], a.data.ptr, a_row // size, a_col // size,
        trans_a == 2, b.data.ptr, b_row // size, b_col // size, trans_b == 2, *scalars[1],
        beta != 0, c.data.ptr, c_row // size, c_col // size)
    kernel.launch(-(-m // tile), -(-n // tile), _SIDE, _SIDE, _local.parameters[me.letter])
    return True
