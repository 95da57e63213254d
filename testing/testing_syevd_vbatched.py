"""Hermitian eigenproblems, members of different sizes."""

from . import testing_syevd_batched
from .ragged import ragged

CASE = ragged(testing_syevd_batched.CASE)
