"""op(Q) C or C op(Q) with the Q of geqrf."""

from . import errors, flops
from .case import Case
from .errors import H, op, wide
from .qr_checks import factor, form_q


def make(p, transposed=False):
    rows = p.m if p.side == "L" else p.n
    p.k = min(p.k, rows)
    qr, tau = factor(p, p.matrix(rows, p.k))
    p.Q, p.C = form_q(p, qr, tau, rows), p.random(p.m, p.n)
    if transposed:  # the reflectors by rows, as gelqf leaves them; Q^H is then what they form
        p.Q, qr = H(p.Q), H(qr)
    p.call(p.side, "N" if p.trans == "N" else p.H, qr, tau, p.C, 64 * max(p.m, p.n, 1))


def check(p, cq, work, info):
    Q = op(p.Q, p.trans)
    product = Q @ wide(p.C) if p.side == "L" else wide(p.C) @ Q
    return {"||R||_F / ||QC||_F": errors.difference(cq, product)}


CASE = Case("ormqr", "qr", "cq work info", make, check, columns="M N K", limit=60,
            flops=lambda p: flops.ormqr(p.side, p.m, p.n, p.k),
            flags={"side": None, "trans": "NC"},
            names={"s": "sormqr", "d": "dormqr", "c": "cunmqr", "z": "zunmqr"})
