"""op(Q) C or C op(Q), members of different sizes."""

from . import testing_ormqr_batched
from .ragged import ragged

CASE = ragged(testing_ormqr_batched.CASE)
