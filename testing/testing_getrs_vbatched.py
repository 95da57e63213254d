"""Solve with LU factors, members of different sizes."""

from . import testing_getrs_batched
from .ragged import ragged

CASE = ragged(testing_getrs_batched.CASE)
