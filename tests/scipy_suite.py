"""python -m tests.scipy_suite [pytest's options]: SciPy's own tests of BLAS and LAPACK, on blasx's
names in the place of SciPy's.

Left out is what looks for f2py's wording of a refusal, or for its exception.
"""

import sys

import pytest
import scipy.linalg

import blasx

WORDING = ("bad_size", "stride_assert", "test_dnrm2_neg_incx")


def main(arguments):
    for name, ours in {"blas": blasx.blas, "_fblas": blasx.blas,
                       "lapack": blasx.lapack, "_flapack": blasx.lapack}.items():
        setattr(scipy.linalg, name, ours)
        sys.modules[f"scipy.linalg.{name}"] = ours
    scipy.linalg.get_blas_funcs = blasx.get_blas_funcs
    scipy.linalg.get_lapack_funcs = blasx.get_lapack_funcs
    files = [f"scipy.linalg.tests.{name}" for name in ("test_blas", "test_fblas", "test_lapack")]
    wanted = " and ".join(f"not {x}" for x in WORDING)
    return pytest.main(["-p", "no:cacheprovider", "-c", "/dev/null", "-q", "-k", wanted,
                        *arguments, "--pyargs", *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
