"""get_blas_funcs and get_lapack_funcs: routines by the arrays they are to work on."""

import numpy as np

from ._types import TYPES, letter_of


def best_type(arrays=(), dtype=None):
    """Find the type that a routine needs for arrays.

    Parameters
    ----------
    arrays : sequence of arrays, optional
        NumPy's or CuPy's.
    dtype : dtype, optional
        Taken where there are no arrays; double without it.

    Returns
    -------
    prefix : str
        s, d, c or z.
    dtype : dtype
    prefer_fortran : bool
        True if the array of the most general type lies by columns.
    """
    arrays = list(arrays)
    letter = letter_of([x.dtype for x in arrays] or [np.dtype(dtype)])
    general = max(arrays, key=lambda x: "sdcz".index(letter_of([x.dtype])), default=None)
    return letter, TYPES[letter].dtype, general is not None and bool(general.flags.f_contiguous)


def get_funcs(library, find, alias, names, arrays, dtype, ilp64, has_ilp64):
    """The routines `names`, in the type that `arrays` or `dtype` ask for, one or a list.

    `find` is the namespace to look in, `alias` what SciPy calls otherwise than letter + name.
    """
    if isinstance(ilp64, str):
        if ilp64 != "preferred":
            raise ValueError(f"get_{library.lower()}_funcs: ilp64 must be False, True or "
                             f"'preferred', got {ilp64!r}")
        ilp64 = has_ilp64
    if ilp64 and not has_ilp64:
        raise RuntimeError(f"{library} with 64-bit integers asked for, but SciPy has 32-bit ones")
    letter, dtype, _ = best_type(arrays, dtype)
    one = isinstance(names, str)
    functions = []
    for name in (names,) if one else names:
        name = alias.get(letter + name, letter + name)
        f = getattr(find, name, None)
        if f is None:
            raise ValueError(f"{library} function {name} could not be found")
        f.module_name, f.dtype = "f" + library.lower(), dtype
        f.typecode = f.prefix = letter
        f.int_dtype = np.dtype(np.int64 if ilp64 else np.intc)
        functions.append(f)
    return functions[0] if one else functions
