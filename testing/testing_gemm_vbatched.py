"""C = alpha op(A) op(B) + beta C, members of different sizes."""

from . import testing_gemm_batched
from .ragged import ragged

CASE = ragged(testing_gemm_batched.CASE)
