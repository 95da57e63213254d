"""A recurrent network that continues sequences in which each number is the sum of the two before.

h_t = tanh(x_t W + h_t-1 U + b), and x_t+1 = h_t V + c is what comes next. It is trained on the
first 16 numbers of sequences that start with any two numbers; no rule is told it, and 1, 1 is none
of the starts. A sequence is scaled by its last number, which the rule does not see.
"""

import argparse

import numpy as np

from .. import RNN, Adam, Dense, Layer, MeanSquare, Sequential, fit, optim

LENGTH = 16


class Later(Layer):
    """y = x without the first time: nobody can tell the second number from the first."""

    def forward(self, x):
        return self.keep(x[:, 1:], x)

    def backward(self, dy):
        (x,) = self.kept(dy)
        dx = np.zeros_like(x)
        dx[:, 1:] = dy
        return dx


def sequences(starts):
    """(n, LENGTH, 1) from (n, 2), each divided by its last number."""
    f = [*np.asarray(starts, "f8").T]
    while len(f) < LENGTH:
        f.append(f[-1] + f[-2])
    f = np.stack(f, 1)
    return (f / f[:, -1:])[..., None].astype("f4")


def model(seed):
    rng = np.random.default_rng(seed)
    return Sequential(RNN(1, 32, rng=rng), Later(), Dense(32, 1, rng=rng))


def main(name, arguments):
    parser = argparse.ArgumentParser(prog=f"python -m blasx.nn.examples {name}",
                                     description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true")
    o = parser.parse_args(arguments)
    x = sequences(np.random.default_rng(o.seed).uniform(0.5, 10, (2048, 2)))
    net = model(o.seed)
    fit(net, MeanSquare(), Adam(net, optim.cosine(5e-3, o.epochs * 32)), x[:, :-1], x[:, 2:],
        epochs=o.epochs, batch=64, seed=o.seed, progress=not o.quiet)

    fibonacci = sequences([[1, 1]])
    scale = 987  # the 16th, by which the sequence was divided
    rows = net.train(False).forward(fibonacci[:, :-1])[0, :, 0] * scale
    print("the sum of the two before, as the network has it:")
    for n, (got, true) in enumerate(zip(rows, fibonacci[0, 2:, 0] * scale), 3):
        print(f"{n:3}  {true:6.0f}  {got:8.2f}")
    print(f"{name}: the 16th number is off by {100 * abs(rows[-1] / scale - 1):.2f} %")
