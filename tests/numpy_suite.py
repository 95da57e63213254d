"""draft"""
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import blasx


def stand_in(modules):
    theirs = {name: getattr(np.linalg, name) for name in blasx.linalg.__all__ if hasattr(np.linalg, name)}
    blasx.linalg._numpy = SimpleNamespace(**vars(np.linalg))
    ours = {id(f): getattr(blasx.linalg, name) for name, f in theirs.items()}
    for m in list(sys.modules.values()):
        if getattr(m, "__name__", "").partition(".")[0] in modules:
            for k, v in list(vars(m).items()):
                if id(v) in ours:
                    setattr(m, k, ours[id(v)])


FILES = ["linalg.tests.test_linalg", "linalg.tests.test_regression", "linalg.tests.test_deprecations",
    "matrixlib.tests.test_matrix_linalg", "matrixlib.tests.test_defmatrix", "matrixlib.tests.test_interaction",
    "lib.tests.test_polynomial", "lib.tests.test_regression", "polynomial.tests.test_polynomial",
    "polynomial.tests.test_chebyshev", "polynomial.tests.test_hermite", "polynomial.tests.test_hermite_e",
    "polynomial.tests.test_laguerre", "polynomial.tests.test_legendre",
    "random.tests.test_generator_mt19937", "_core.tests.test_ufunc", "_core.tests.test_overrides",
    "ma.tests.test_core", "ma.tests.test_extras", "ma.tests.test_subclassing"]


def main(arguments):
    import importlib
    files = [f"numpy.{f}" for f in FILES]
    for f in files: importlib.import_module(f)
    stand_in({"numpy"})
    return pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", "-q", *arguments, "--pyargs", *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
