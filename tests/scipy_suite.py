"""python -m tests.scipy_suite [names | solvers] [pytest's options]: SciPy's own tests with blasx's
routines in the place of SciPy's.

names: its tests of BLAS and LAPACK, on blasx's names. solvers: the tests of scipy.linalg, and of
what else asks get_blas_funcs and get_lapack_funcs for routines, which are blasx's wherever they
were imported; what SciPy has compiled (solve, inv, ... of SciPy 1.17) does not reach them. Both if
neither is named. Left out is what looks for f2py's wording of a refusal, or for its exception.
"""

import importlib.util
import sys

import pytest
import scipy.linalg

import blasx

WORDING = ("bad_size", "stride_assert", "test_dnrm2_neg_incx")
USERS = ("linalg", "sparse.linalg", "optimize", "interpolate", "stats")

TESTS = {
    "names": [f"linalg.tests.test_{x}" for x in ("blas", "fblas", "lapack")],
    "solvers": [
        *(f"linalg.tests.test_{x}" for x in (
            "basic", "batch", "decomp", "decomp_cholesky", "decomp_cossin", "decomp_ldl",
            "decomp_lu", "decomp_polar", "decomp_update", "interpolative", "matfuncs",
            "matmul_toeplitz", "procrustes", "sketches", "solve_toeplitz", "solvers",
            "special_matrices")),
        "sparse.linalg.tests.test_matfuncs", "sparse.linalg._isolve.tests",
        "sparse.linalg._eigen.tests", "interpolate.tests.test_bsplines",
        *(f"optimize.tests.test_{x}" for x in (
            "hessian_update_strategy", "minpack", "nonlin", "trustregion_exact")),
        "stats.tests.test_multivariate"],
}


def stand_in():
    """Put blasx's routines wherever SciPy's modules have SciPy's."""
    for name in USERS:
        importlib.import_module(f"scipy.{name}")
    ours = {}
    for library, mine in ((scipy.linalg.blas, blasx.blas), (scipy.linalg.lapack, blasx.lapack)):
        ours |= {id(getattr(library, x)): getattr(mine, x) for x in mine.__all__
                 if hasattr(library, x)}
    for name, module in list(sys.modules.items()):
        if name.startswith("scipy.") and not name.endswith(("blas", "lapack")):
            for x, value in list(vars(module).items()):
                if id(value) in ours:
                    setattr(module, x, ours[id(value)])
    for name, mine in {"blas": blasx.blas, "_fblas": blasx.blas,
                       "lapack": blasx.lapack, "_flapack": blasx.lapack}.items():
        setattr(scipy.linalg, name, mine)
        sys.modules[f"scipy.linalg.{name}"] = mine


def main(arguments):
    which = [x for x in TESTS if x in arguments] or list(TESTS)
    stand_in()
    files = [f"scipy.{x}" for group in which for x in TESTS[group]
             if importlib.util.find_spec(f"scipy.{x}")]  # an older SciPy has no test_batch
    wanted = " and ".join(f"not {x}" for x in WORDING)
    return pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", "-q", "-W", "ignore",
                        "-k", wanted, *(x for x in arguments if x not in TESTS),
                        "--pyargs", *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
