"""Singular values and vectors by divide and conquer; jobu n, s, a as for gesvd."""

from .case import Case
from .testing_gesvd import check, make

CASE = Case("gesdd", "svd", "u s vt info", make, check, flags="jobu", columns="M N")
