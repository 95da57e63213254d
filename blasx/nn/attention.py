"""Attention: every query takes a mean of values, weighted by how well their keys suit it.

    E = scores(Q, K),      A = softmax(E) along the keys,      Y = A V,

    dV = A^T dY,    dA = dY V^T,    dE = A (dA - sum_keys dA A),    and on through the scores.

Scaled dot product: E = Q K^T / sqrt(d), so dQ = dE K / sqrt(d) and dK = dE^T Q / sqrt(d).
Additive: E_ij = v^T tanh(q_i W + k_j U + b).

A mask is True where a query may look; it is broadcast to (..., queries, keys). A query that may
look nowhere gets 0. Causal: of m queries and n keys query i looks at keys up to i + n - m, so that
the last of both meet; where m > n the first m - n look nowhere.

On CuPy's arrays scaled dot products may be fused: one kernel goes along the keys and never has E or
A in memory, and the gradients come of E anew. Milakov, Gimelshein: Online normalizer calculation
for softmax, 2018. Dao: FlashAttention-2, 2023.

Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate,
2015. Vaswani et al.: Attention is all you need, 2017.
"""

from math import sqrt

import numpy as np

from ._arrays import (
    added,
    column_sums,
    fused,
    glorot,
    like,
    module,
    product,
    products,
    transposed,
    wide,
)
from .activations import GELU, softmax
from .dense import Dense
from .dropout import Dropout
from .layer import Layer, Parameter, Sequential
from .norm import LayerNorm


def causal_mask(xp, queries, keys):
    """(queries, keys), True on and below the diagonal that ends at the last of both."""
    return xp.tri(queries, keys, keys - queries, dtype=bool)


class DotProductAttention(Layer):
    """Y = softmax(Q K^T / sqrt(d)) V for stacks Q (..., m, d), K (..., n, d), V (..., n, e);
    `backward` gives (dQ, dK, dV).

    Parameters
    ----------
    causal : bool
        No query looks at what comes after it.
    fused : bool, optional
        Of CuPy's arrays: True, one kernel for all, without a matrix of m n numbers in memory;
        False, products of such matrices; None, what is known to be faster. The one kernel is for
        e = d up to 128, a multiple of 4 in single precision, of 8 in half precision and bfloat16;
        others go by products.
    """

    def __init__(self, causal=False, fused=None):
        self.causal, self.fused = causal, fused

    def forward(self, q, k, v, mask=None):
        d = self.given(q, ..., None, None, argument="q").shape[-1]
        if not d:
            raise ValueError(f"{self!r}: q must have a width of at least 1, got {q.shape}")
        lead = q.shape[:-2]
        self.given(k, *lead, None, d, argument="k", like=q)
        self.given(v, *lead, k.shape[-2], None, argument="v", like=q)
        if mask is not None:
            _looks(self, mask, (*q.shape[:-1], k.shape[-2]))
        if gpu := fused(q):
            found = gpu.attention(q, k, v, mask, self.causal, 1 / sqrt(d), self.fused)
            if found:
                return self.keep(*found)
        scores = wide(products(q, transposed(k)))
        scores *= 1 / sqrt(d)
        a = like(softmax(self._masked(scores, mask)), q)
        return self.keep(products(a, v), q, k, v, a)

    def backward(self, dy, out=None):
        """(dQ, dK, dV), or None: with `out`, three arrays, they are written there."""
        kept = self.kept(dy)
        if len(kept) == 1:
            found = fused(dy).attention_backward(dy, *kept, out)
        else:
            found = self._by_products(dy, *kept)
            for to, x in zip(out or (), found):
                to[...] = x
        return None if out else tuple(found)

    def _by_products(self, dy, q, k, v, a):
        dv = products(transposed(a), dy)
        de, a = wide(products(dy, transposed(v))), wide(a)
        de -= (de * a).sum(-1, keepdims=True)
        de *= a
        de *= 1 / sqrt(q.shape[-1])
        de = like(de, q)
        return products(de, k), products(transposed(de), q), dv

    def _masked(self, scores, mask):
        """Scores with -inf where a query may not look."""
        xp, (m, n) = module(scores), scores.shape[-2:]
        if mask is not None:
            scores = xp.where(mask, scores, -xp.inf)
        if self.causal:
            scores = xp.where(causal_mask(xp, m, n), scores, -xp.inf)
        return scores


def _looks(layer, mask, shape):
    """Refuse a mask that is not bool or not broadcast to scores of a shape."""
    kind = getattr(mask, "dtype", type(mask).__name__)
    if kind != "bool":
        raise TypeError(f"{layer!r}: mask must be an array of bool, got {kind}")
    have, want = mask.shape[::-1], shape[::-1]
    if len(have) > len(want) or any(h not in (1, w) for h, w in zip(have, want)):
        raise ValueError(f"{layer!r}: mask must be broadcast to {shape}, got {mask.shape}")


class AdditiveAttention(Layer):
    """Bahdanau's: e_ij = v^T tanh(q_i W + k_j U + b), Y = softmax(E) K: values are the keys.

    With t = tanh(...): dt = dE v (1 - t^2) summed over keys is dz of W and b, over queries of U.

    Parameters
    ----------
    n_query, n_key, width : int
        W is (n_query, width), U (n_key, width), v (width).
    dtype, rng
        As Dense.
    """

    def __init__(self, n_query, n_key, width, dtype="f4", rng=None):
        rng = np.random.default_rng(rng)
        self.sized(n_query=n_query, n_key=n_key, width=width)
        self.W = Parameter(glorot(rng, (n_query, width), n_query, width, dtype))
        self.U = Parameter(glorot(rng, (n_key, width), n_key, width, dtype))
        self.b = Parameter(np.zeros(width, dtype))
        self.v = Parameter(glorot(rng, (width, 1), width, 1, dtype)[:, 0].copy())

    def forward(self, q, k, mask=None):
        """Y (n, queries, n_key) of q (n, queries, n_query), k (n, keys, n_key)."""
        self.given(q, None, None, self.n_query, argument="q", like=self.W)
        self.given(k, len(q), None, self.n_key, argument="k", like=self.W)
        (n, m), keys = q.shape[:2], k.shape[1]
        qW = product(q.reshape(-1, self.n_query), self.W.value).reshape(n, m, 1, self.width)
        kU = product(k.reshape(-1, self.n_key), self.U.value).reshape(n, 1, keys, self.width)
        t = like(module(q).tanh(wide(qW) + wide(kU) + wide(self.b.value)), q)
        scores = product(t.reshape(-1, self.width), self.v.value[:, None]).reshape(n, m, keys)
        if mask is not None:
            _looks(self, mask, scores.shape)
            scores = module(q).where(mask, scores, -module(q).inf)
        self.weights = a = softmax(scores)
        return self.keep(products(a, k), q, k, t, a)

    def backward(self, dy):
        """(dq, dk)."""
        q, k, t, a = self.kept(dy)
        dk = products(transposed(a), dy)
        de, a = wide(products(dy, transposed(k))), wide(a)
        de = like(a * (de - (de * a).sum(-1, keepdims=True)), dy)
        rows = t.reshape(-1, self.width)
        self.v.add(product(rows.T, de.reshape(-1, 1))[:, 0])
        t = wide(t)
        dz = de[..., None] * wide(self.v.value) * (1 - t * t)
        self.b.add(like(dz.sum((0, 1, 2)), dy))
        dq, dkeys = (like(dz.sum(a).reshape(-1, self.width), dy) for a in (2, 1))
        self.W.add(product(q.reshape(-1, self.n_query).T, dq))
        self.U.add(product(k.reshape(-1, self.n_key).T, dkeys))
        return (product(dq, self.W.value.T).reshape(q.shape),
                dk + product(dkeys, self.U.value.T).reshape(k.shape))


class MultiHeadAttention(Layer):
    """Heads that attend beside each other, each in its part of the width:

        Y = [Y_1 ... Y_H] W_o + b_o,   Y_h = attention(Q_h, K_h, V_h),
        [Q_1 ... Q_H] = X W_q + b_q,  K = Z W_k + b_k,  V = Z W_v + b_v.

    Self-attention has Z = X, cross-attention gives Z apart. W = [W_q W_k W_v] is one parameter, so
    that what goes through several of them is one product, and its gradients are, too.

    Parameters
    ----------
    width, heads : int
        `heads` divides `width`.
    causal : bool
        No query looks at what comes after it.
    bias, dtype, rng
        As Dense.
    """

    def __init__(self, width, heads, causal=False, bias=True, dtype="f4", rng=None):
        self.sized(width=width, heads=heads)
        if width % heads:
            raise ValueError(f"MultiHeadAttention: heads must divide width, got {heads}, {width}")
        rng = np.random.default_rng(rng)
        self.weight = Parameter(np.hstack(
            [glorot(rng, (width, width), width, width, dtype) for _ in range(3)]))
        self.bias = Parameter(np.zeros(3 * width, dtype)) if bias else None
        self.output = Dense(width, width, bias, dtype, rng)
        self.attention = DotProductAttention(causal)

    def forward(self, x, z=None, mask=None, cache=None):
        """Y (n, queries, width) of x (n, queries, width) and z (n, keys, width).

        `mask` is (n, keys), what is there, or is broadcast to (n, heads, queries, keys). `cache`,
        a list, empty at first, keeps keys and values of all calls that are given it: x is then
        what follows, and only that goes through the products. It has no backward.
        """
        self.given(x, None, None, self.width, like=self.weight)
        if z is not None:
            self.given(z, len(x), None, self.width, argument="z", like=self.weight)
        q, k, v = [a for u, W, b in self._parts(x, z)
                   for a in self._heads(product(u.reshape(-1, self.width), W, b), u)]
        if cache is not None:
            k, v = self._after(cache, k, v)
        if mask is not None and getattr(mask, "ndim", None) == 2:
            mask = mask[:, None, None, :]
        y = self.attention.forward(q, k, v, mask)
        if cache is not None:
            cache[:] = k, v
        y = self.output.forward(y.swapaxes(1, 2).reshape(x.shape))
        self._kept = None
        return y if cache is not None else self.keep(y, x, z)

    def backward(self, dy):
        """dx, or (dx, dz) if there was a z."""
        parts, n = self._parts(*self.kept(dy)), self.width
        (dy,) = self._heads(self.output.backward(dy).reshape(-1, n), dy)
        made = [module(dy).empty((u.size // n, W.shape[1]), dy.dtype) for u, W, _ in parts]
        self.attention.backward(dy, [a for (u, *_), d in zip(parts, made)
                                     for a in self._heads(d, u)])
        self.weight.add(_beside([product(u.reshape(-1, n).T, d)
                                 for (u, *_), d in zip(parts, made)]))
        if self.bias:
            self.bias.add(_beside([column_sums(d) for d in made]))
        dx = [product(d, W.T).reshape(u.shape) for (u, W, _), d in zip(parts, made)]
        return dx[0] if len(dx) == 1 else tuple(dx)

    def _parts(self, x, z):
        """(what is multiplied, by which columns of W, and of b)."""
        W, b, n = self.weight.value, self.bias and self.bias.value, self.width
        if z is None:
            return [(x, W, b)]
        return [(u, W[:, at], None if b is None else b[at])
                for u, at in ((x, slice(n)), (z, slice(n, None)))]

    def _after(self, cache, k, v):
        """Keys and values behind those of a cache."""
        if not isinstance(cache, list) or len(cache) not in (0, 2):
            raise TypeError(f"{self!r}: cache must be a list, empty or of keys and values, got "
                            f"{type(cache).__name__} {cache if isinstance(cache, list) else ''}")
        n, heads, _, d = k.shape
        return [module(k).concatenate([self.given(a, n, heads, None, d, argument="cache", like=k),
                                       b], 2) for a, b in zip(cache, (k, v))] or [k, v]

    def _heads(self, x, like):
        """The heads (n, heads, m, d) of each `width` columns of x, whose rows are those of `like`
        (n, m, ...)."""
        x = x.reshape(*like.shape[:2], x.shape[-1] // self.width, self.heads,
                      self.width // self.heads).transpose(2, 0, 3, 1, 4)
        return [x[i] for i in range(len(x))]

    def described(self):
        return self.width, self.heads


def _beside(parts):
    """Arrays beside each other along the last axis; one as it is."""
    return parts[0] if len(parts) == 1 else module(parts[0]).concatenate(parts, -1)


class Block(Layer):
    """What the transformer's blocks share. Every part f of one is around x as

        x + dropout(f(norm(x)))  with `norm_first`,   norm(x + dropout(f(x)))  without.
    """

    def _around(self, k, f, x):
        norm, drop = self.norms[k], self.drops[k]
        if self.norm_first:
            return added(x, drop.forward(f(norm.forward(x))))
        return norm.forward(added(x, drop.forward(f(x))))

    def _back(self, k, f, dy):
        """dx of part k; `f` is its backward."""
        norm, drop = self.norms[k], self.drops[k]
        if self.norm_first:
            return norm.backward(f(drop.backward(dy)), dy)
        dy = norm.backward(dy)
        return added(dy, f(drop.backward(dy)))

    def _frame(self, parts, width, hidden, norm_first, dropout, dtype, rng):
        """Norms, dropouts and the MLP that goes over each vector by itself."""
        self.width, self.norm_first = width, norm_first
        self.mlp = Sequential(Dense(width, hidden, dtype=dtype, rng=rng), GELU(),
                              Dense(hidden, width, dtype=dtype, rng=rng))
        self.norms = [LayerNorm(width, dtype=dtype) for _ in range(parts)]
        self.drops = [Dropout(dropout, int(rng.integers(2**31))) for _ in range(parts)]

    def described(self):
        return self.width, self.attention.heads


class EncoderBlock(Block):
    """Self-attention, then an MLP. With `causal` it is the block of a language model.

    Parameters
    ----------
    width, heads, hidden : int
        `hidden` is the MLP's inner width, 4 width unless given.
    causal, norm_first : bool
    dropout : float
    dtype, rng
        As Dense.
    """

    def __init__(self, width, heads, hidden=None, causal=False, norm_first=True, dropout=0.0,
                 dtype="f4", rng=None):
        rng = np.random.default_rng(rng)
        self.attention = MultiHeadAttention(width, heads, causal, dtype=dtype, rng=rng)
        self._frame(2, width, 4 * width if hidden is None else hidden, norm_first,
                    dropout, dtype, rng)

    def forward(self, x, mask=None, cache=None):
        x = self._around(0, lambda u: self.attention.forward(u, None, mask, cache), x)
        return self._around(1, self.mlp.forward, x)

    def backward(self, dy):
        return self._back(0, self.attention.backward, self._back(1, self.mlp.backward, dy))


class DecoderBlock(Block):
    """Causal self-attention, cross-attention to an encoder's answer z, then an MLP.

    Parameters are `EncoderBlock`'s.
    """

    def __init__(self, width, heads, hidden=None, norm_first=True, dropout=0.0, dtype="f4",
                 rng=None):
        rng = np.random.default_rng(rng)
        self.attention = MultiHeadAttention(width, heads, True, dtype=dtype, rng=rng)
        self.cross = MultiHeadAttention(width, heads, dtype=dtype, rng=rng)
        self._frame(3, width, 4 * width if hidden is None else hidden, norm_first,
                    dropout, dtype, rng)

    def forward(self, x, z, mask=None, z_mask=None, cache=None):
        """`mask` is of x, `z_mask` of z, both as MultiHeadAttention's."""
        self.given(z, None, None, self.width, argument="z", like=self.cross.weight)
        x = self._around(0, lambda u: self.attention.forward(u, None, mask, cache), x)
        x = self._around(1, lambda u: self.cross.forward(u, z, z_mask), x)
        return self._around(2, self.mlp.forward, x)

    def backward(self, dy):
        """(dx, dz)."""
        dzs = []

        def cross(dy):
            dx, dz = self.cross.backward(dy)
            dzs.append(dz)
            return dx

        dy = self._back(1, cross, self._back(2, self.mlp.backward, dy))
        return self._back(0, self.attention.backward, dy), dzs[0]
