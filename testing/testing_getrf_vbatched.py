"""LU, members of different sizes."""

from . import testing_getrf_batched
from .ragged import ragged

CASE = ragged(testing_getrf_batched.CASE)
