"""Matrices of different sizes in one buffer: what the `_vbatched` routines take and return."""

import numpy as np


class Ragged:
    """Matrices or vectors of different sizes, by rows, in one buffer.

    Parameters
    ----------
    data : 1-d array, NumPy or CuPy
        The buffer. It is not copied.
    shapes : (batch, 2) or (batch, 1) array-like of int, on the host
        (m, n) of each matrix, or (n,) of each vector.
    offsets : (batch,) array-like of int, on the host, optional
        Where each begins in `data`, in elements. One after the other if not given.

    Notes
    -----
    `r[i]` is member i, a view; `len(r)` their number. `Ragged.pack(list)` copies a list of arrays
    into one.
    """

    def __init__(self, data, shapes, offsets=None):
        if not hasattr(data, "dtype") or not hasattr(data, "ndim"):
            raise TypeError(f"Ragged: data must be an array, got {type(data).__name__}")
        self.data, self.shapes = data, _integers(shapes, "shapes")
        if self.shapes.ndim != 2 and not self.shapes.size:
            self.shapes = self.shapes.reshape(-1, 2)
        if data.ndim != 1 or self.shapes.ndim != 2 or self.shapes.shape[1] not in (1, 2):
            raise ValueError(f"Ragged: data must have one dimension and shapes be of (batch, 2) or "
                             f"(batch, 1), got {tuple(data.shape)} and {self.shapes.shape}")
        if (self.shapes < 0).any():
            raise ValueError(f"Ragged: shapes must not be negative, got {self.shapes.min()}")
        sizes = self.shapes.prod(1)
        self.offsets = (np.cumsum(sizes) - sizes if offsets is None
                        else _integers(offsets, "offsets"))
        if self.offsets.shape != sizes.shape:
            raise ValueError(f"Ragged: offsets must be {len(sizes)}, one for each member, got "
                             f"{self.offsets.shape}")
        elements = data.shape[0]
        if ((self.offsets < 0) | (self.offsets > elements - sizes)
                | (self.shapes.prod(1, float) > elements)).any():  # the integers may have wrapped
            raise ValueError(f"Ragged: the members do not lie in the {elements} elements of data")

    @classmethod
    def pack(cls, arrays):
        """The members of a list, copied into one buffer on the device that holds them."""
        kinds = {(x.dtype, x.ndim) if hasattr(x, "ndim") else type(x).__name__ for x in arrays}
        if len(kinds) != 1 or not hasattr(arrays[0], "ndim"):
            raise TypeError("Ragged: arrays must be a list of arrays of one type and rank, got "
                            f"{', '.join(map(str, kinds)) or 'none'}")
        r = cls.empty_like(arrays[0], [x.shape for x in arrays])
        for i, x in enumerate(arrays):
            r[i][...] = x
        return r

    @classmethod
    def empty_like(cls, array, shapes):
        """Members of these shapes, of the type and on the device of `array`, not set."""
        shapes = np.asarray(shapes, np.int64)
        shapes = shapes[:, None] if shapes.ndim == 1 else shapes
        empty = np.empty if isinstance(array, np.ndarray) else type(array)
        return cls(empty((int(shapes.prod(1).sum()),), array.dtype), shapes)

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, i):
        i = range(len(self))[i]
        shape, start = tuple(map(int, self.shapes[i])), int(self.offsets[i])
        return self.data[start:start + int(self.shapes[i].prod())].reshape(shape)

    def __iter__(self):
        return (self[i] for i in range(len(self)))


def _integers(x, argument):
    """`x` as integers of 64 bits, on the host."""
    try:
        x = np.asarray(x)
    except (TypeError, ValueError):  # lists of lists that differ, arrays of a GPU
        raise TypeError(f"Ragged: {argument} must be integers on the host, got "
                        f"{type(x).__name__}") from None
    if x.size and x.dtype.kind not in "iu":
        raise TypeError(f"Ragged: {argument} must be integers on the host, got {x.dtype}")
    return x.astype(np.int64)
