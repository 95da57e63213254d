"""Triangular solves, members of different sizes."""

from . import testing_trsm_batched
from .ragged import ragged

CASE = ragged(testing_trsm_batched.CASE)
