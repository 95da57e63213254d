"""Recurrent layers: a state goes through the sequence, h_t = f(x_t, h_t-1).

    RNN    h = tanh(x W + h' U + b)                                     (or relu; h' is h_t-1)

    GRU    r, z = sigmoid(x W + h' U + b)          reset, update
           n = tanh(x W_n + b_n + r (h' U_n + c))  what would be new
           h = (1 - z) n + z h'

    LSTM   i, f, o = sigmoid(x W + h' U + b)       input, forget, output gate
           g = tanh(x W_g + h' U_g + b_g)          input activation
           c = i g + f c'                          the cell: sums go through time unsquashed
           h = o tanh(c)

Sequences are (n, time, width). The gates of a layer lie side by side in W, U and b, in the order
named above. x W + b is one product for all times; each step adds h' U in place. Backward goes
through time from the end: it leaves dz, the gradient in what the gates squash, for all times, and
then dW = sum x^T dz, dU = sum h'^T dz, db = sum dz, dx = dz W^T are one product each.

A mask (n, time) says which elements are there: where not, the state passes unchanged and the
output is 0. `truncate` = k lets no gradient through from one piece of k steps to the one before:
backpropagation through time, truncated.

Of half precision are what comes in, what goes out and the operands of products; between them gates
and states are in single.

Hochreiter, Schmidhuber: Long short-term memory, 1997. Cho et al.: Learning phrase representations
using RNN encoder-decoder, 2014. Werbos: Backpropagation through time, 1990.
"""

from numbers import Real

import numpy as np

from ._arrays import add_product, column_sums, fused, glorot, like, module, product, uniform, wide
from .layer import Layer, Parameter


class Recurrence(Layer):
    """One layer of cells in one direction.

    A subclass has GATES, STATES (how many arrays its state is), and for one step

        step(z, hU, state) -> state, kept       z: x W + b and, unless SPLIT, h' U in it
        unstep(dz, dstate, state, kept) -> dstate before, dhU

    which leaves in dz the gradient in z; dhU is that in h' U (dz itself unless SPLIT). Of dh' it
    gives only what does not come through U, None if that is nothing. A SPLIT cell has a bias c
    of its own in the last gate of h' U.
    """

    SPLIT, clip = False, None

    def __init__(self, n_in, n, reverse=False, truncate=None, dtype="f4", rng=None):
        rng = np.random.default_rng(rng)
        self.reverse, self.truncate = reverse, None
        self.sized(n_in=n_in, n=n, **({} if truncate is None else {"truncate": truncate}))
        self.W = Parameter(glorot(rng, (n_in, self.GATES * n), n_in, n, dtype))
        self.U = Parameter(uniform(rng, (n, self.GATES * n), n**-0.5, dtype))
        self.b = Parameter(np.zeros(self.GATES * n, dtype))

    def forward(self, x, state=None, mask=None):
        """y (n, time, width) of x; `state`, a tuple of (n, width), is where it starts (else 0),
        and `last` is then where it ended."""
        batch, times, _ = self.given(x, None, None, self.n_in, like=self.W).shape
        xp = module(x)
        state = self._state(xp, state, batch, "state")
        if mask is not None:
            kind, shape = getattr(mask, "dtype", type(mask).__name__), np.shape(mask)
            if kind != "bool" or shape != x.shape[:2]:
                raise ValueError(f"{self!r}: mask must be bool of shape {x.shape[:2]}, got {kind} "
                                 f"{shape}")
            x = like(xp.where(mask[:, :, None], wide(x), 0), x)  # nan times 0 is nan
        rows = x.swapaxes(0, 1).reshape(times * batch, self.n_in)
        xW = wide(product(rows, self.W.value)).reshape(times, batch, self.GATES * self.n)
        if mask is None and (gpu := fused(xW)):
            if found := self.at_once(gpu, xW, state):
                y, state, kept = found
                self.last = tuple(like(s, x) for s in state)
                return self.keep(like(y.swapaxes(0, 1), x), rows, None, kept, None)
        z = _by_columns(xp, times, batch, self.GATES * self.n, xW.dtype)
        xp.add(xW, self.b.value, out=z)
        y = _by_columns(xp, times, batch, self.n, x.dtype)
        U, state = _columns(xp, self.U.value), state or self._zeros(xp, batch)
        before, steps = [None] * times, [None] * times
        for t in self._order(times):
            before[t] = state
            h = like(state[0], x)
            hU = wide(product(h, U)) if self.SPLIT else add_product(h, U, z[t])
            state, steps[t] = self.step(z[t], hU, state)
            if mask is None:
                y[t] = state[0]
            else:
                there = mask[:, t, None]
                y[t] = xp.where(there, state[0], 0)
                state = tuple(xp.where(there, new, old) for new, old in zip(state, before[t]))
        self.last = tuple(like(s, x) for s in state)
        return self.keep(y.swapaxes(0, 1), rows, before, steps, mask)

    def at_once(self, gpu, z, state):
        """All steps by one kernel, of z = x W and from `state`, where there is one: outputs by
        time, the last state, what `unstep_at_once` needs. Else None, and z is untouched."""
        c = wide(self.c.value) if self.SPLIT else None
        found = gpu.recurrence(z, wide(self.U.value), wide(self.b.value), c, state, self.clip,
                               self.reverse)
        if found is None:
            return None
        last = self._order(len(z))[-1]
        return found[0], tuple(x[last] for x in found[:self.STATES]), (z, *found, state)

    def unstep_at_once(self, gpu, dy, dstate, gates, y, beside, state):
        """As `_unsteps`, by one kernel."""
        *dzs, dstate, db, dc = gpu.recurrence_backward(
            wide(dy).swapaxes(0, 1), gates, y, beside, state, wide(self.U.value), dstate,
            self.clip, self.reverse, self.truncate)
        dz, dhU = (like(a, dy) for a in dzs)
        first, later, before = (-1, slice(-1), slice(1, None)) if self.reverse else (
            0, slice(1, None), slice(-1))
        pairs = [(_rows(like(y[before], dy)), _rows(dhU[later]))]
        if state:
            pairs += [(like(state[0], dy), dhU[first])]
        return _rows(dz), pairs, dstate, db, dc

    def backward(self, dy, dstate=None):
        """dx; `dstate` is the gradient in the state at the end, and the attribute of that name
        is then the gradient in the state at the start."""
        rows, before, steps, mask = self.kept(dy)
        batch, times, _ = dy.shape
        dstate = self._state(module(dy), dstate, batch, "dstate")
        if before is None:
            found = self.unstep_at_once(fused(steps[0]), dy, dstate, *steps)
        else:
            found = self._unsteps(dy, dstate, before, steps, mask)
        dz, pairs, dstate, db, dc = found
        self.dstate = tuple(like(d, dy) for d in dstate)
        self.W.add(product(rows.T, dz))
        for h, dhU in pairs:
            self.U.add(product(h.T, dhU))
        self.b.add(like(db, dy))
        if self.SPLIT:
            self.c.add(like(dc, dy))
        return product(dz, self.W.value.T).reshape(times, batch, self.n_in).swapaxes(0, 1)

    def _unsteps(self, dy, dstate, before, steps, mask):
        """dz of all steps, by rows, a time after the other; pairs (h', dhU) of such rows, whose
        products are the gradient in U; those in the first state, in b, and in c."""
        xp, (batch, times, _), given, dy = module(dy), dy.shape, dy, wide(dy)
        dstate = dstate or self._zeros(xp, batch)
        dz = _by_columns(xp, times, batch, self.GATES * self.n, dy.dtype)
        dhU = xp.empty_like(dz) if self.SPLIT else dz
        U = _columns(xp, self.U.value.T)
        dy = xp.ascontiguousarray(dy.transpose(1, 2, 0)).swapaxes(1, 2)  # a time by columns
        for t in reversed(self._order(times)):
            if mask is None:
                new = (dstate[0] + dy[t], *dstate[1:])
            else:
                there = mask[:, t, None]
                new = tuple(xp.where(there, d, 0) for d in (dstate[0] + dy[t], *dstate[1:]))
            beside, *others = self.unstep(dz[t], dhU[t], new, before[t], steps[t])
            dh = wide(product(like(dhU[t], given), U))
            old = (dh if beside is None else dh + beside, *others)
            if mask is not None:
                old = tuple(xp.where(there, d, e) for d, e in zip(old, dstate))
            dstate = tuple(d * 0 for d in old) if self._cut(t, times) else old
        h = xp.stack([b[0].T for b in before], 1) if times else xp.empty((self.n, 0), dy.dtype)
        each = (h, *(a.transpose(2, 0, 1) for a in ((dz, dhU) if self.SPLIT else (dz,))))
        h, dz, *dhU = (like(a.reshape(len(a), times * batch).T, given) for a in each)
        dhU, dc = (dhU[0], column_sums(dhU[0][:, -self.n:])) if self.SPLIT else (dz, None)
        return dz, [(h, dhU)], dstate, column_sums(dz), dc

    def _cut(self, t, times):
        """Whether no gradient goes from time t to the one before."""
        k = times - 1 - t if self.reverse else t
        return self.truncate is not None and k and k % self.truncate == 0

    def _order(self, times):
        return range(times)[::-1 if self.reverse else 1]

    def _zeros(self, xp, batch):
        return tuple(wide(xp.zeros((batch, self.n), self.W.value.dtype, "F"))
                     for _ in range(self.STATES))

    def _state(self, xp, state, batch, argument):
        """A state that is given, by columns; None for none."""
        if state is None:
            return None
        if len(state) != self.STATES:
            raise ValueError(f"{self!r}: {argument} must be {self.STATES} arrays, got "
                             f"{len(state)}")
        return tuple(_columns(xp, wide(self.given(
            s, batch, self.n, argument=argument, like=self.W))) for s in state)

    def described(self):
        return self.n_in, self.n


def _kinds(x):
    """The type of x, of a list those of what is in it."""
    inside = f" of {[type(a).__name__ for a in x]}" if isinstance(x, list | tuple) else ""
    return type(x).__name__ + inside


def _columns(xp, x):
    """x by columns. CuPy's asfortranarray is a call of cuBLAS, which no graph captures."""
    return xp.ascontiguousarray(x.T).T


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _by_columns(xp, times, batch, width, dtype):
    """A new (times, batch, width), each time by columns."""
    return xp.empty((times, width, batch), dtype).swapaxes(1, 2)


class RNNCell(Recurrence):
    """h = f(x W + h' U + b), f tanh or relu: dz = f' dh."""

    GATES = STATES = 1

    def __init__(self, n_in, n, function="tanh", **options):
        if function not in ("tanh", "relu"):
            raise ValueError(f"RNN: function must be tanh or relu, got {function!r}")
        super().__init__(n_in, n, **options)
        self.function = function

    def at_once(self, gpu, z, state):
        return super().at_once(gpu, z, state) if self.function == "tanh" else None

    def step(self, z, hU, state):
        xp = module(z)
        h = xp.tanh(z) if self.function == "tanh" else xp.maximum(z, 0)
        return (h,), h

    def unstep(self, dz, dhU, dstate, state, h):
        slope = 1 - h * h if self.function == "tanh" else h > 0
        module(dz).multiply(dstate[0], slope, out=dz)
        return (None,)


class GRUCell(Recurrence):
    """With s = h' U_n + c: dz = dh (h' - n) z (1 - z), dn = dh (1 - z) (1 - n^2),
    dr = dn s r (1 - r), ds = dn r, and dh z goes to h' beside what U brings."""

    GATES, STATES, SPLIT = 3, 1, True

    def __init__(self, n_in, n, **options):
        super().__init__(n_in, n, **options)
        self.c = Parameter(np.zeros(n, self.W.value.dtype))

    def step(self, z, hU, state):
        (h,), n, xp = state, self.n, module(z)
        gates = z[:, :2 * n] + hU[:, :2 * n]
        gates = 0.5 * xp.tanh(0.5 * gates) + 0.5
        r, u = gates[:, :n], gates[:, n:]
        s = hU[:, 2 * n:] + wide(self.c.value)
        new = xp.tanh(z[:, 2 * n:] + r * s)
        return (new + u * (h - new),), (r, u, s, new)

    def unstep(self, dz, dhU, dstate, state, kept):
        (dh,), (h,), (r, u, s, new), n = dstate, state, kept, self.n
        dnew = dh * (1 - u) * (1 - new * new)
        dz[:, :n] = dnew * s * r * (1 - r)
        dz[:, n:2 * n] = dh * (h - new) * u * (1 - u)
        dz[:, 2 * n:] = dnew
        dhU[:, :2 * n] = dz[:, :2 * n]
        dhU[:, 2 * n:] = dnew * r
        return (dh * u,)


class LSTMCell(Recurrence):
    """do = dh tanh c,  dc += dh o (1 - tanh^2 c),  di = dc g,  df = dc c',  dg = dc i, each times
    the slope of its function, and dc f goes to c'. `clip` keeps c in [-clip, clip]; no gradient
    goes through where it does."""

    GATES, STATES = 4, 2

    def __init__(self, n_in, n, clip=None, **options):
        if clip is not None and not (isinstance(clip, Real) and clip > 0):
            raise ValueError(f"LSTM: clip must be positive, got {clip!r}")
        super().__init__(n_in, n, **options)
        self.clip = clip
        self.b.value[n:2 * n] = 1  # the cell remembers until it has learnt what to forget

    def step(self, z, hU, state):
        (_, c), n, xp = state, self.n, module(z)
        gates = z[:, :3 * n]
        gates *= 0.5  # sigmoid(x) = (1 + tanh(x / 2)) / 2: one tanh for all gates
        xp.tanh(z, out=z)
        gates *= 0.5
        gates += 0.5
        i, f, o, g = z[:, :n], z[:, n:2 * n], z[:, 2 * n:3 * n], z[:, 3 * n:]
        c = f * c
        c += i * g
        inside = None
        if self.clip is not None:
            inside = abs(c) < self.clip
            c = c.clip(-self.clip, self.clip)
        squashed = xp.tanh(c)
        return (o * squashed, c), (z, squashed, inside)

    def unstep(self, dz, dhU, dstate, state, kept):
        (dh, dc), (_, c), (z, squashed, inside), n = dstate, state, kept, self.n
        i, f, o, g = z[:, :n], z[:, n:2 * n], z[:, 2 * n:3 * n], z[:, 3 * n:]
        dc = dc + dh * o * (1 - squashed * squashed)
        if inside is not None:
            dc = dc * inside
        xp = module(z)
        xp.multiply(dc, g, out=dz[:, :n])
        xp.multiply(dc, c, out=dz[:, n:2 * n])
        xp.multiply(dh, squashed, out=dz[:, 2 * n:3 * n])
        dz[:, :3 * n] *= z[:, :3 * n] * (1 - z[:, :3 * n])
        xp.multiply(dc * i, 1 - g * g, out=dz[:, 3 * n:])
        return None, dc * f


class Recurrent(Layer):
    """Layers of cells, each over the outputs of the one below, in one direction or both.

    Parameters
    ----------
    n_in, n : int
        Width of x, and of the state of a layer in one direction.
    layers : int
    bidirectional : bool
        A second recurrence runs from the end; the outputs stand side by side, (n, time, 2 width).
    truncate : int, optional
        Steps that a gradient goes back at most (from the end of a piece of so many).
    dtype, rng
        As Dense.
    """

    def __init__(self, n_in, n, layers=1, bidirectional=False, dtype="f4", rng=None, **options):
        rng, directions = np.random.default_rng(rng), 2 if bidirectional else 1
        self.sized(n_in=n_in, n=n, layers=layers)
        self.directions = directions
        self.cells = [self.CELL(n_in if layer == 0 else directions * n, n, reverse=bool(d),
                                dtype=dtype, rng=rng, **options)
                      for layer in range(layers) for d in range(directions)]

    def forward(self, x, state=None, mask=None):
        """y of x (n, time, n_in). `state`, a list with a tuple for every cell, is where they
        start; `last` is then where they ended. `mask` (n, time): what is there."""
        self.given(x, None, None, self.n_in, like=self.cells[0].W)
        states = self._each(state, "state")
        y = x
        for k in range(0, len(self.cells), self.directions):
            ys = [cell.forward(y, s, mask) for cell, s in
                  zip(self.cells[k:k + self.directions], states[k:])]
            y = ys[0] if len(ys) == 1 else module(x).concatenate(ys, -1)
        self.last = [cell.last for cell in self.cells]
        return self.keep(y)

    def backward(self, dy, dstate=None):
        """dx; `dstate` is the gradient in the state at the end, cell by cell, and the attribute
        of that name then that in the state at the start."""
        self.kept(dy)
        dstates = self._each(dstate, "dstate")
        for k in range(len(self.cells) - self.directions, -1, -self.directions):
            parts = [cell.backward(dy[..., d * self.n:(d + 1) * self.n], dstates[k + d])
                     for d, cell in enumerate(self.cells[k:k + self.directions])]
            dy = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        self.dstate = [cell.dstate for cell in self.cells]
        return dy

    def _each(self, states, argument):
        """What every cell is given; None for none."""
        if states is None:
            return [None] * len(self.cells)
        if not isinstance(states, list | tuple) or len(states) != len(self.cells) or not all(
                isinstance(s, list | tuple | None) for s in states):
            raise ValueError(f"{self!r}: {argument} must be a list with a tuple for each of "
                             f"{len(self.cells)} cells, got {_kinds(states)}")
        return states

    def described(self):
        return self.n_in, self.n, len(self.cells) // self.directions


class RNN(Recurrent):
    """Layers of h = tanh(x W + h' U + b). Further option: `function`, "tanh" or "relu"."""

    CELL = RNNCell


class GRU(Recurrent):
    """Layers of gated recurrent units."""

    CELL = GRUCell


class LSTM(Recurrent):
    """Layers of long short-term memory. Further option: `clip`, the largest |c|."""

    CELL = LSTMCell

    def torch_names(self):
        """(cell, how torch ends its names)."""
        for k in range(len(self.cells)):
            layer, d = divmod(k, self.directions)
            yield f"cells.{k}", f"l{layer}" + ("_reverse" if d else "")
