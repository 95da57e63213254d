"""Sequence to sequence with Bahdanau's attention: dates as people write them, to ISO 8601.

    Saturday, 3 May 1997  ->  1997-05-03

The encoder reads the characters in both directions, h_1 ... h_S. The decoder writes: with its state
s and the character y_t-1 that it wrote last,

    c_t = sum_j a_tj h_j,  a_t = softmax of v^T tanh(s_t-1 W + h_j U + b) over j
    s_t = GRU([y_t-1, c_t], s_t-1),    scores of y_t = [s_t, c_t] V + d.

The data is made here: dates of 1950 to 2049 in nine spellings; those of the test are never trained
on, in any spelling.

Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate, 2015.
"""

import argparse
from datetime import date, timedelta
from time import perf_counter

import numpy as np

from .. import GRU, Adam, AdditiveAttention, CrossEntropy, Dense, Embedding, Layer, fit, optim

FORMATS = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%A, %d %B %Y", "%d.%m.%Y",
           "%m/%d/%Y", "%Y%m%d", "%a %d %b %Y")
SOURCE = ["", *sorted(set("0123456789 ,./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))]
TARGET = ["", *"0123456789-"]  # "" pads, and starts an answer
LENGTH = 10


class Translator(Layer):
    """Scores (n, LENGTH, characters) of (source, answer moved one place on, source's mask)."""

    def __init__(self, width=64, letters=32, dtype="f4", seed=0):
        rng = np.random.default_rng(seed)
        made = {"dtype": dtype, "rng": rng}
        self.width = width
        self.source = Embedding(len(SOURCE), letters, scale=0.3, **made)
        self.encoder = GRU(letters, width, bidirectional=True, **made)
        self.start = Dense(width, width, **made)
        self.target = Embedding(len(TARGET), letters, scale=0.3, **made)
        self.attention = AdditiveAttention(width, 2 * width, width, **made)
        self.decoder = GRU(letters + 2 * width, width, **made)
        self.scores = Dense(3 * width, len(TARGET), **made)

    def forward(self, batch):
        source, before, mask = batch
        h, s = self.encode(source, mask)
        letters = self.target.forward(before)
        self.tape, outputs = [], []
        for t in range(before.shape[1]):
            s, c = self.step(letters[:, t:t + 1], h, s, mask)
            outputs.append(np.concatenate([s, c[:, 0]], -1))
            self.tape.append((self.attention.record(), self.decoder.record()))
        return self.keep(self.scores.forward(np.stack(outputs, 1)), h, source)

    def backward(self, dy):
        """Back through the steps: every c_t has a part of dh, every s_t goes to its query, too."""
        h, source = self.kept(dy)
        n, w = len(h), self.width
        douts, dh, ds = self.scores.backward(dy), np.zeros_like(h), np.zeros_like(h[:, 0, :w])
        dletters = []
        for t in reversed(range(len(self.tape))):
            for layer, record in zip((self.attention, self.decoder), self.tape[t]):
                layer.replay(record)
            dx = self.decoder.backward((ds + douts[:, t, :w])[:, None])
            (ds,), = self.decoder.dstate
            letters = dx.shape[-1] - 2 * w
            dletters.append(dx[:, 0, :letters])
            dq, dk = self.attention.backward(douts[:, t:t + 1, w:] + dx[..., letters:])
            ds, dh = ds + dq[:, 0], dh + dk
        self.target.backward(np.stack(dletters[::-1], 1))
        ends = np.zeros((2, n, w), dy.dtype)
        ends[1] = self.start.backward(ds)
        self.source.backward(self.encoder.backward(dh, [(e,) for e in ends]))

    def encode(self, source, mask):
        """h, and the decoder's first state: of the encoder's last of the way back."""
        h = self.encoder.forward(self.source.forward(source), mask=mask)
        return h, self.start.forward(self.encoder.last[1][0])

    def step(self, letter, h, s, mask):
        """(s_t, c_t)."""
        c = self.attention.forward(s[:, None], h, mask[:, None])
        self.decoder.forward(np.concatenate([letter, c], -1), [(s,)])
        return self.decoder.last[0][0], c

    def translate(self, source, mask):
        """The likeliest character at every step, and where it looked (n, LENGTH, source)."""
        h, s = self.encode(source, mask)
        last, answer, looked = np.zeros((len(source), 1), int), [], []
        for _ in range(LENGTH):
            s, c = self.step(self.target.forward(last), h, s, mask)
            last = self.scores.forward(np.concatenate([s, c[:, 0]], -1)).argmax(-1)[:, None]
            answer.append(last)
            looked.append(self.attention.weights[:, 0])
        return np.concatenate(answer, 1), np.stack(looked, 1)


def pairs(days, rng):
    """(source, answer moved one place on, mask), answer of dates, each in a spelling."""
    texts = [d.strftime(FORMATS[k]) for d, k in zip(days, rng.integers(0, len(FORMATS),
                                                                      len(days)))]
    source = np.zeros((len(texts), 30), int)
    for row, t in zip(source, texts):
        row[:len(t)] = [SOURCE.index(c) for c in t]
    answer = np.array([[TARGET.index(c) for c in d.isoformat()] for d in days])
    before = np.concatenate([np.zeros((len(days), 1), int), answer[:, :-1]], 1)
    return (source, before, source > 0), answer


def data(count, seed):
    """Training and test pairs of different dates."""
    rng = np.random.default_rng(seed)
    first = date(1950, 1, 1)
    span = (date(2050, 1, 1) - first).days
    days = [first + timedelta(int(k)) for k in rng.permutation(span)]
    test, rest = days[:500], days[500:]
    return pairs([rest[k] for k in rng.integers(0, len(rest), count)], rng), pairs(test, rng)


def main(name, arguments):
    parser = argparse.ArgumentParser(prog=f"python -m blasx.nn.examples {name}",
                                     description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=10_000, help="to train on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true")
    o = parser.parse_args(arguments)
    began = perf_counter()
    (x, y), ((source, _, mask), answer) = data(o.pairs, o.seed)
    net = Translator(seed=o.seed)
    schedule = optim.cosine(5e-3, o.epochs * -(-len(y) // 64))
    fit(net, CrossEntropy(), Adam(net, schedule), x, y, epochs=o.epochs, batch=64, seed=o.seed,
        clip=1.0, progress=not o.quiet)
    found, looked = net.train(False).translate(source, mask)
    for row, letters, a in list(zip(source, found, looked))[:6]:
        text = "".join(SOURCE[k] for k in row)
        print(f"{text:28} {''.join(TARGET[k] for k in letters)}  year read at "
              f"{text[int(a[3].argmax())]!r}, month at {text[int(a[6].argmax())]!r}")
    print(f"{name}: {100 * (found == answer).all(1).mean():.1f} % of {len(answer)} dates right, "
          f"in {perf_counter() - began:.0f} s")
