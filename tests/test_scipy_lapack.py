"""SciPy's own tests of scipy.linalg.lapack, run on the routines of blasx under the same names.

Their module is loaded anew, and finds blasx.lapack and blasx.blas where it looks for SciPy's.
"""

import importlib.util

import pytest

import blasx.blas
import blasx.lapack

# Tests of what blasx does on purpose otherwise, and why.
DEVIATIONS = {"test_lapack_documented": "asks whether SciPy documents SciPy's names"}

spec = importlib.util.find_spec("scipy.linalg.tests.test_lapack")
if spec is None:
    pytest.skip("this SciPy comes without its tests", allow_module_level=True)
theirs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(theirs)
theirs.get_lapack_funcs = blasx.lapack.get_lapack_funcs
theirs.get_blas_funcs = blasx.blas.get_blas_funcs
theirs.flapack = theirs.lapack = blasx.lapack

globals().update({name: x for name, x in vars(theirs).items()
                  if name.startswith(("test", "Test")) and name not in DEVIATIONS})


def test_it_is_our_routines_that_they_test():
    assert theirs.get_lapack_funcs("geqrf", dtype="c8") is blasx.cgeqrf
    assert all(hasattr(theirs, name) for name in DEVIATIONS)
