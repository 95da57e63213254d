"""python -m tests.numpy_suite [pytest's options]: NumPy's own tests with blasx.linalg's functions
in the place of numpy.linalg's, wherever NumPy's modules have them: norm, cond, matrix_rank,
matrix_power and tensorsolve, polyfit, matrix and random work on ours, too.

Left out, by name, is what asks for what blasx.linalg means to do otherwise; tests of float32 have
four decimals, of which NumPy has six as it works in double precision.
"""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import blasx

OTHERWISE = {
    "test_incompatible_dims": "asks for NumPy's wording",
    "test_qr_mode_full_future_warning": "the modes 'full' and 'economic', deprecated since NumPy "
                                        "1.8, are refused",
    "test_set_module": "asks that the functions be of the module numpy.linalg",
}

TESTS = [f"numpy.{x}" for x in (
    "linalg.tests.test_linalg", "linalg.tests.test_regression", "linalg.tests.test_deprecations",
    "matrixlib.tests.test_matrix_linalg", "matrixlib.tests.test_defmatrix",
    "matrixlib.tests.test_interaction", "ma.tests.test_core", "ma.tests.test_extras",
    "ma.tests.test_subclassing", "lib.tests.test_polynomial", "lib.tests.test_regression",
    *(f"polynomial.tests.test_{x}" for x in (
        "polynomial", "chebyshev", "hermite", "hermite_e", "laguerre", "legendre")),
    "random.tests.test_generator_mt19937", "random.tests.test_randomstate",
    "_core.tests.test_ufunc", "_core.tests.test_overrides")]


def stand_in():
    """Put blasx.linalg's functions wherever NumPy's modules have numpy.linalg's; blasx keeps those
    that it calls itself."""
    blasx.linalg._numpy = SimpleNamespace(**vars(np.linalg))
    ours = {id(getattr(np.linalg, x)): getattr(blasx.linalg, x) for x in blasx.linalg.__all__
            if hasattr(np.linalg, x)}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "numpy":
            for x, value in list(vars(module).items()):
                if id(value) in ours:
                    setattr(module, x, ours[id(value)])


def main(arguments):
    modules = {name: importlib.import_module(name) for name in TESTS}
    tests = modules["numpy.linalg.tests.test_linalg"]
    near = tests.assert_almost_equal
    tests.assert_almost_equal = lambda *args, **kw: near(*args, **{**kw, "single_decimal": 4})
    stand_in()
    wanted = " and ".join(f"not {x}" for x in OTHERWISE)
    return pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", "-q", "-W", "ignore",
                        "-k", wanted, *arguments, "--pyargs", *TESTS])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
