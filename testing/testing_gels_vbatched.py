"""Least squares or minimum norm, members of different sizes."""

from . import testing_gels_batched
from .ragged import ragged

CASE = ragged(testing_gels_batched.CASE)
