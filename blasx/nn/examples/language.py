"""Language models of characters: an LSTM and a small transformer, trained on the source text of
Python's own standard library, as the machine has it.

Both answer scores of the next character at every place; the loss is the mean cross entropy, in nats
a character (log of the number of characters that it is as hard as). At the end the model writes:
the LSTM from its state, the transformer from cached keys and values, a character at a time.
"""

import argparse
import sysconfig
from pathlib import Path
from time import perf_counter

import numpy as np

from .. import (
    LSTM,
    Adam,
    AdamW,
    CrossEntropy,
    Dense,
    Embedding,
    EncoderBlock,
    LayerNorm,
    Positions,
    Sequential,
    evaluate,
    fit,
    optim,
)
from ..activations import softmax

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
CONTEXT = 64


def text(size):
    """The first `size` characters of the standard library's top modules, largest first; what is
    not printable ASCII is left out, tabs are spaces."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"),
                   key=lambda p: (-p.stat().st_size, p.name))
    parts, have, known = [], 0, set(CHARACTERS)
    for file in files:
        whole = file.read_text("utf-8", errors="ignore").expandtabs(4)
        parts.append("".join(c for c in whole if c in known))
        have += len(parts[-1])
        if have >= size:
            break
    return "".join(parts)[:size]


def encoded(characters):
    return np.array([CHARACTERS.index(c) for c in characters])


def windows(tokens):
    """(x, y): pieces of CONTEXT characters and, one place on, what follows each."""
    n = (len(tokens) - 1) // CONTEXT * CONTEXT
    return tokens[:n].reshape(-1, CONTEXT), tokens[1:n + 1].reshape(-1, CONTEXT)


class CharacterLSTM(Sequential):
    """Embedding, LSTM, scores."""

    def __init__(self, width=256, seed=0):
        rng = np.random.default_rng(seed)
        super().__init__(Embedding(len(CHARACTERS), 64, scale=0.1, rng=rng),
                         LSTM(64, width, rng=rng), Dense(width, len(CHARACTERS), rng=rng))

    def scores(self, start, count, choose):
        """Choose `count` characters after `start`, each from the scores of the last."""
        embedding, lstm, dense = self.layers
        tokens, state, new = list(start), None, start
        for _ in range(count):
            y = lstm.forward(embedding.forward(np.array([new])), state)
            state = lstm.last
            new = [choose(dense.forward(y[0, -1:])[0])]
            tokens += new
        return tokens


class CharacterTransformer(Sequential):
    """Embedding, positions, causal blocks, norm, scores."""

    def __init__(self, width=128, heads=4, blocks=2, seed=0):
        rng = np.random.default_rng(seed)
        super().__init__(
            Embedding(len(CHARACTERS), width, scale=0.1, rng=rng),
            Positions(CONTEXT, width, learned=True, rng=rng),
            *(EncoderBlock(width, heads, causal=True, rng=rng) for _ in range(blocks)),
            LayerNorm(width), Dense(width, len(CHARACTERS), rng=rng))

    def scores(self, start, count, choose):
        """As CharacterLSTM's; where the context is full its later half is read anew."""
        embedding, positions, *blocks, norm, dense = self.layers
        tokens, new, caches, at = list(start), start[-CONTEXT:], [[] for _ in blocks], 0
        for _ in range(count):
            if at + len(new) > CONTEXT:
                new, caches, at = tokens[-CONTEXT // 2:], [[] for _ in blocks], 0
            x = positions.forward(embedding.forward(np.array([new])), at)
            at += len(new)
            for block, cache in zip(blocks, caches):
                x = block.forward(x, cache=cache)
            new = [choose(dense.forward(norm.forward(x[:, -1]))[0])]
            tokens += new
        return tokens


# name: (model, optimiser, epochs, rate)
MODELS = {"char-lstm": (CharacterLSTM, Adam, 4, 4e-3),
          "transformer-lm": (CharacterTransformer, AdamW, 4, 3e-3)}


def main(name, arguments):
    model, optimiser, epochs, rate = MODELS[name]
    parser = argparse.ArgumentParser(prog=f"python -m blasx.nn.examples {name}",
                                     description=__doc__)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--characters", type=int, default=400_000, help="of training text")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--sample", type=int, default=300, help="characters to write at the end")
    parser.add_argument("--temperature", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true")
    o = parser.parse_args(arguments)
    began = perf_counter()
    tokens = encoded(text(o.characters * 21 // 20))
    x, y = windows(tokens[:o.characters])
    x_test, y_test = windows(tokens[o.characters:])
    net, loss = model(seed=o.seed), CrossEntropy()
    total = o.epochs * -(-len(y) // o.batch)
    fit(net, loss, optimiser(net, optim.cosine(rate, total, warmup=total // 20)), x, y,
        epochs=o.epochs, batch=o.batch, seed=o.seed, clip=1.0, progress=not o.quiet)
    found = evaluate(net, loss, x_test, y_test)
    seconds = perf_counter() - began

    rng = np.random.default_rng(o.seed)

    def choose(scores):
        p = softmax(scores.astype("f8") / o.temperature)
        return int(rng.choice(len(p), p=p))

    print("".join(CHARACTERS[t] for t in net.scores(encoded("def "), o.sample, choose)))
    print(f"{name}: test loss {found['loss']:.3f} nats a character, accuracy "
          f"{100 * found['accuracy']:.1f} %, in {seconds:.0f} s")
