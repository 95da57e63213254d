"""Eigenvalues and -vectors, singular values and vectors of many matrices on the GPU.

Peers, out of place: torch.linalg.eigh and svd, cupy.linalg.eigh and svd (thin). Those that take
members above order 32 one by one, which is all of them but cupy.linalg.eigh, are timed on few of
those.
"""

from functools import partial

from . import timing
from .batched import problem
from .timing import Row, Side

SIZES = {"syevd": ((8, 100_000), (16, 50_000), (32, 20_000), (64, 5000), (64, 100), (100, 500),
                   (128, 1000), (128, 50), (256, 132), (256, 20), (512, 50), (512, 10)),
         "gesvd": ((8, 20_000), (16, 5000), (32, 2000), (64, 500), (64, 40), (100, 40),
                   (128, 40), (256, 40), (512, 10), (1024, 4))}
TOGETHER, FEW = 32, 100  # the order up to which peers take all at once; members above that


def rows(letters, quick, family=None):
    """The rows of the family; their kernels are compiled first, several at once."""
    timing.gpu()
    orders = {n for sizes in SIZES.values() for n, _ in sizes}
    timing.compile_ahead(letters, orders, {*SIZES, "gemm", "syrk", "potrf", "trsm", "ormqr"})
    for routine, sizes in SIZES.items():
        for letter in letters:
            for n, batch in sizes:
                yield row(routine, letter, n, batch // 10 if quick else batch)


def row(routine, letter, n, batch):
    a, _ = problem(routine, letter, n, batch)
    if routine == "syevd":
        a = (a + a.conj().swapaxes(1, 2)) / 2
    peers = {}
    if n <= TOGETHER or batch <= FEW:
        peers["torch"] = partial(torch_side, routine, a)
    if peers or routine == "syevd":
        peers["cupy"] = partial(cupy_side, routine, a)
    name = "heevd" if routine == "syevd" and letter in "cz" else routine
    ours = {"out of place": partial(blasx_side, name, letter, a)}
    return Row(name, letter, f"{batch}x{n}x{n}", ours, peers, partial(ERRORS[routine], a),
               timing.gpu_clock(a.nbytes))


def blasx_side(name, letter, a):
    import blasx
    run = getattr(blasx, f"{letter}{name}_batched")
    if name == "gesvd":
        return Side(lambda: (a.copy(),), lambda a: run(a, 1, 0), lambda r: r[:3])
    return Side(lambda: (a.copy(),), run, lambda r: r[:2])


def torch_side(routine, a):
    import cupy
    import torch
    run = (torch.linalg.eigh if routine == "syevd"
           else partial(torch.linalg.svd, full_matrices=False))
    return Side(lambda: (torch.from_dlpack(a.copy()),), run,
                lambda r: tuple(map(cupy.from_dlpack, r)))


def cupy_side(routine, a):
    import cupy
    run = (cupy.linalg.eigh if routine == "syevd"
           else partial(cupy.linalg.svd, full_matrices=False))
    return Side(lambda: (a.copy(),), run, tuple)


def eigen_error(a, answer):
    """max |A - V W V^H| / (n eps max |A|)"""
    w, v = answer
    return in_eps(a, (v * w[:, None, :]) @ v.conj().swapaxes(1, 2))


def singular_error(a, answer):
    """max |A - U S V^H| / (n eps max |A|)"""
    u, s, vh = answer
    return in_eps(a, (u * s[:, None, :]) @ vh)


def in_eps(a, found):
    import cupy
    error = abs(found - a).max() / abs(a).max()
    return float(error) / (a.shape[-1] * float(cupy.finfo(a.dtype).eps))


ERRORS = {"syevd": eigen_error, "gesvd": singular_error}
