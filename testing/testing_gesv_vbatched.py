"""Solve A X = B by LU, members of different sizes."""

from . import testing_gesv_batched
from .ragged import ragged

CASE = ragged(testing_gesv_batched.CASE)
