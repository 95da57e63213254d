"""Solve with Cholesky factors, members of different sizes."""

from . import testing_potrs_batched
from .ragged import ragged

CASE = ragged(testing_potrs_batched.CASE)
