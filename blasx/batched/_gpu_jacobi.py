"""What the kernels of svd.cuh need of the host, and batches in parts that share a workspace."""

from functools import cache

import cupy

from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, looked_up, row
from ._block import svd_room, teams_of

MEMORY = 2**32  # bytes of workspace at a time


def parts(batch, nbytes):
    """Slices of a batch whose members need `nbytes` of workspace each."""
    some = max(1, min(batch, MEMORY // nbytes)) if nbytes else batch
    return [slice(first, min(first + some, batch)) for first in range(0, batch, some)]


def in_parts(batch, nbytes):
    """(slice, address) of the parts of a batch; they have the workspace in turn."""
    slices = parts(batch, nbytes)
    memory = cupy.cuda.alloc(slices[0].stop * nbytes) if nbytes else None
    for part in slices:
        yield part, memory.ptr if memory else 0


class Jacobi:
    """A kernel of svd.cuh with one set of constants."""

    def __init__(self, kernel, letter, values):
        self.kernel, self.values = Kernel(kernel, letter, **values), values
        self.threads = 32 * values["WARPS"]
        self.members = teams_of(values)  # to a block
        self.vectors = kernel == "gesvd_vectors"

    def __call__(self, batch, n, itemsize, parameters):
        """Launches the kernel on the parts of a batch of members of n columns;
        `parameters(part, work)` are those before the batch."""
        for part, work in in_parts(batch, self.nbytes(n, itemsize)):
            self.launch(part.stop - part.start, n, *parameters(part, work))

    def nbytes(self, n, itemsize):
        """Of workspace for each member of n columns."""
        return 0 if self.values["SHARED"] else itemsize * self.room(n)[0]

    def launch(self, members, n, *parameters):
        """For members of at most n columns."""
        self.kernel.launch(-(-members // self.members), 1, self.threads, 1,
                           pack(*parameters, members), self.room(n)[1])

    def room(self, n):
        return svd_room(self.kernel.letter, n, self.vectors, self.values)


@cache
def _jacobi(kernel, letter, values):
    """One object for all orders that are served by the same constants."""
    return Jacobi(kernel, letter, dict(values))


@looked_up
def _kernel_on(kernel, letter, n, device):
    found = row(kernel, letter, n, gpu(device))
    return found and _jacobi(kernel, letter, tuple(capitals(found).items()))


def jacobi(kernel, me, n):
    """The kernel for members of at most n rows and columns, or None where it does not serve."""
    return _kernel_on(kernel, me.letter, n, current_device())
