"""C = alpha A A^H + beta C or alpha A^H A + beta C for many matrices, one triangle of C."""

from . import flops
from .case import Case
from .errors import H
from .members import by_members
from .testing_syrk_batched import check, make

CASE = Case("herk_batched", "batched", "C", lambda p: make(p, H), lambda p, C: check(p, C, H),
            lambda p: flops.times(p.batch, flops.syrk(p.k, p.n)), names="cz",
            flags={"uplo": None, "trans": "NC"}, columns="BatchCount N K", limit=3, always=True,
            unit="ms", lapack=by_members("herk"), modes=("native",))
