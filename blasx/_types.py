"""The precisions of LAPACK, said once."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Type:
    """One precision: `letter` s d c z (of some products also h b, of one i), its NumPy dtype, that
    of its real part, its C++ name in kernels/, the number NVIDIA's 64-bit interfaces know it by
    (cudaDataType), and the letter of the precision in which its products are summed."""

    letter: str
    dtype: np.dtype
    real: np.dtype
    cpp: str
    cuda: int
    sums: str

    @property
    def is_complex(self):
        return self.dtype.kind == "c"

    @property
    def is_known(self):
        """False for bfloat16 where there is no package that brings it."""
        return self.dtype != np.dtype("V2")


def _bfloat16():
    """NumPy's bfloat16, where the package is there that brings it; else two bytes."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return np.dtype("V2")
    return np.dtype(bfloat16)


def finfo(dtype):
    """NumPy's limits of a type; bfloat16's from the package that brings it."""
    if dtype.kind != "V":
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


TYPES = {
    t.letter: t
    for t in (
        Type("s", np.dtype("f4"), np.dtype("f4"), "float", 0, "s"),
        Type("d", np.dtype("f8"), np.dtype("f8"), "double", 1, "d"),
        Type("c", np.dtype("c8"), np.dtype("f4"), "complex<float>", 4, "c"),
        Type("z", np.dtype("c16"), np.dtype("f8"), "complex<double>", 5, "z"),
        Type("h", np.dtype("f2"), np.dtype("f2"), "half", 2, "s"),
        Type("b", _bfloat16(), _bfloat16(), "bfloat16", 14, "s"),
        Type("i", np.dtype("i1"), np.dtype("i1"), "signed char", 3, "s"),
    )
}
BY_DTYPE = {t.dtype: t for t in TYPES.values() if t.letter in "sdcz"}
SHORT = {t.dtype: t.letter for t in TYPES.values() if t.letter in "hb"}

# SciPy's rule (find_best_blas_type): short integers and half precision fit in single, all other
# integers and reals go to double, and complex wins over real.
_SINGLE = frozenset("?bBhHef")


def letter_of(dtypes):
    """The letter that holds all `dtypes`: 'd' when there is none."""
    dtypes = list(dtypes)
    single = bool(dtypes) and all(t.char in _SINGLE or t.char == "F" for t in dtypes)
    if any(t.kind == "c" for t in dtypes):
        return "c" if single else "z"
    return "s" if single else "d"
