"""op(Q) C or C op(Q) with the Q of gelqf."""

from . import flops
from .case import Case
from .testing_ormqr import check, make

CASE = Case("ormlq", "qr", "cq work info", lambda p: make(p, transposed=True), check,
            lambda p: flops.ormqr(p.side, p.m, p.n, p.k), columns="M N K", limit=60,
            flags={"side": None, "trans": "NC"},
            names={"s": "sormlq", "d": "dormlq", "c": "cunmlq", "z": "zunmlq"})
