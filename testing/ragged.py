"""Cases of members of different sizes, made of those of one size."""

from dataclasses import replace

import numpy as np

from . import flops
from .case import Case, Problem
from .qr_checks import worst


class Member(Problem):
    """One of `batch` problems: the numbers that all share (alpha, beta) come from the seed."""

    def __init__(self, p, case, sizes):
        super().__init__(p.letter, sizes, p.flags, p.rng, replace(p.options, batch=1), case.matrix)
        self._shared = np.random.default_rng(p.options.seed)
        case.make(self)

    def number(self, real=False):
        own, self.rng = self.rng, self._shared
        found = super().number(real)
        self.rng = own
        return found


def ragged(one):
    """The `_vbatched` Case of a `_batched` one: members of random sizes up to those asked for, the
    first of these, are made and judged as batches of one."""
    columns = one.columns.split()

    def sizes_of(p, i):
        m, n, k = (int(p.rng.integers(x + 1)) if i else x for x in (p.m, p.n, p.k))
        return m if "M" in columns else n, n, k if "K" in columns else n

    def make(p):
        p.members = [Member(p, one, sizes_of(p, i)) for i in range(p.batch)]
        like = p.members[0] if p.members else Member(p, one, (p.m, p.n, p.k))

        def operand(pick):
            if not isinstance(pick(like), np.ndarray):
                return pick(like)
            return [pick(q)[0].copy() for q in p.members]

        p.call(*(operand(lambda q, i=i: q.args[i]) for i in range(len(like.args))),
               **{k: operand(lambda q, k=k: q.kwargs[k]) for k in like.kwargs})

    def check(p, *outputs):
        return worst(one.check(q, *member(outputs, i)) for i, q in enumerate(p.members))

    return Case(
        one.name.replace("_batched", "_vbatched"), "vbatched", one.returns, make, check,
        one.flops and (lambda p: flops.plus((0, 0), *(one.flops(q) for q in p.members))),
        {k: name.replace("_batched", "_vbatched") for k, name in one.typed.items()
         if k not in "hb"}, one.flags, one.columns, one.matrix, one.limit, one.limits, one.always,
        one.unit, one.rate, lapack=lambda p: [one.lapack(q) for q in p.members],
        modes=("native",), members=one)


def member(outputs, i):
    """Member i of every output, as a batch of one."""
    return tuple(np.asarray(x[i])[None] for x in outputs)
