"""Cholesky, members of different sizes."""

from . import testing_potrf_batched
from .ragged import ragged

CASE = ragged(testing_potrf_batched.CASE)
