"""All or some eigenvalues and -vectors of a Hermitian matrix, bisection."""

from .case import Case
from .testing_syevr import check, make

CASE = Case("syevx", "syev", "w z m ifail info", make, check, flags="jobz uplo range",
            names={"s": "ssyevx", "d": "dsyevx", "c": "cheevx", "z": "zheevx"})
