"""Singular values and vectors of many matrices on the GPU.

Peers: torch.linalg.svd and cupy.linalg.svd (thin, out of place).
"""

from functools import partial

from . import timing
from .batched import problem
from .timing import Row, Side

SIZES = ((8, 20_000), (16, 5_000), (32, 2_000), (64, 500), (100, 132), (256, 132))
LOOPED = 40  # members above order 100, which the peers take one by one


def rows(letters, quick, family=None):
    """The rows of the family."""
    timing.gpu()
    for letter in letters:
        for n, batch in SIZES:
            batch = batch // 10 if quick else batch
            yield row(letter, n, min(batch, LOOPED) if n > 100 else batch)


def row(letter, n, batch):
    a, _ = problem("gesvd", letter, n, batch)
    return Row("gesvd", letter, f"{batch}x{n}x{n}",
               {"out of place": partial(blasx_side, letter, a)},
               {"torch": partial(torch_side, a), "cupy": partial(cupy_side, a)},
               partial(residual, a), timing.gpu_clock(a.nbytes))


def blasx_side(letter, a):
    import blasx
    run = getattr(blasx, letter + "gesvd_batched")
    return Side(lambda: (a.copy(),), lambda a: run(a, 1, 0), lambda r: r[:3])


def torch_side(a):
    import cupy
    import torch
    return Side(lambda: (torch.from_dlpack(a.copy()),),
                lambda a: torch.linalg.svd(a, full_matrices=False),
                lambda r: tuple(map(cupy.from_dlpack, r)))


def cupy_side(a):
    import cupy
    return Side(lambda: (a.copy(),), lambda a: cupy.linalg.svd(a, full_matrices=False), tuple)


def residual(a, answer):
    """max |A - U S V^H| / (n eps max |A|)"""
    import cupy
    u, s, vh = answer
    error = abs((u * s[:, None, :]) @ vh - a).max() / abs(a).max()
    return float(error) / (a.shape[-1] * float(cupy.finfo(a.dtype).eps))
