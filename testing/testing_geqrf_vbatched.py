"""QR, members of different sizes."""

from . import testing_geqrf_batched
from .ragged import ragged

CASE = ragged(testing_geqrf_batched.CASE)
