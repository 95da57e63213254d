"""Solve A X = B by Cholesky, members of different sizes."""

from . import testing_posv_batched
from .ragged import ragged

CASE = ragged(testing_posv_batched.CASE)
