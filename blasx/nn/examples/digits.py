"""Handwritten digits: an MLP, a CNN and LeNet-5.

Data: the 1797 digits that come with scikit-learn, 8 x 8 pixels, enlarged to 28 x 28 (LeNet: to
32 x 32); judged by stratified 5-fold cross validation. With --mnist FOLDER, MNIST's own IDX files
and its own test set.
"""

import argparse
import gzip
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.ndimage import zoom

from .. import (
    Adam,
    Conv2d,
    CrossEntropy,
    Dense,
    Dropout,
    Flatten,
    MaxPool,
    ReLU,
    Sequential,
    evaluate,
    fit,
    optim,
)


def mlp(seed):
    """784 -> 16 ReLU -> 10."""
    rng = np.random.default_rng(seed)
    return Sequential(Flatten(), Dense(784, 16, rng=rng), ReLU(), Dense(16, 10, rng=rng))


def cnn(seed):
    """3x3x12, 6x6x24 of stride 2, 6x6x32 of stride 2, 200, 10."""
    rng = np.random.default_rng(seed)

    def conv(*sizes, stride):
        return Conv2d(*sizes, stride=stride, padding="same", layout="NHWC", rng=rng)

    return Sequential(
        conv(1, 12, 3, stride=1), ReLU(),
        conv(12, 24, 6, stride=2), ReLU(),
        conv(24, 32, 6, stride=2), ReLU(),
        Flatten(), Dense(1568, 200, rng=rng), ReLU(), Dropout(0.3, seed),
        Dense(200, 10, rng=rng))


def lenet(seed):
    """C1 6 of 5x5, S2, C3 16 of 5x5, S4, C5 120, F6 84, 10; ReLU and maxima for sigmoids and means.

    LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998.
    """
    rng = np.random.default_rng(seed)

    def conv(*sizes):
        return Conv2d(*sizes, layout="NHWC", rng=rng)

    return Sequential(
        conv(1, 6, 5), ReLU(), MaxPool(2, layout="NHWC"),
        conv(6, 16, 5), ReLU(), MaxPool(2, layout="NHWC"),
        conv(16, 120, 5), ReLU(), Flatten(),
        Dense(120, 84, rng=rng), ReLU(), Dense(84, 10, rng=rng))


# name: (model, pixels, epochs, batch, rate)
MODELS = {"digits-mlp": (mlp, 28, 60, 32, 2e-3), "digits-cnn": (cnn, 28, 12, 32, 1.5e-3),
          "lenet": (lenet, 32, 12, 32, 2e-3)}


def main(name, arguments):
    model, size, epochs, batch, rate = MODELS[name]
    parser = argparse.ArgumentParser(prog=f"python -m blasx.nn.examples {name}",
                                     description=model.__doc__)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--folds", type=int, default=5, choices=range(1, 6),
                        help="how many of the five folds to train and test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mnist", metavar="FOLDER", type=Path, help="train on MNIST's files there")
    parser.add_argument("--quiet", action="store_true")
    o = parser.parse_args(arguments)
    began = perf_counter()
    accuracies = []
    for k, (x, y, x_test, y_test) in enumerate(mnist(o.mnist, size) if o.mnist else
                                               list(folds(size))[:o.folds]):
        net, loss = model(o.seed), CrossEntropy()
        schedule = optim.cosine(rate, o.epochs * -(-len(y) // batch))
        fit(net, loss, Adam(net, schedule), x, y, epochs=o.epochs, batch=batch,
            seed=o.seed, augment=shifted, progress=not o.quiet)
        accuracies.append(evaluate(net, loss, x_test, y_test)["accuracy"])
        print(f"test {k + 1}: {len(y_test)} digits, accuracy {100 * accuracies[-1]:.2f} %",
              flush=True)
    print(f"{name}: mean test accuracy {100 * np.mean(accuracies):.2f} % "
          f"in {perf_counter() - began:.0f} s")


def shifted(x, rng):
    """Every image of a batch moved by up to a pixel each way; what enters is empty."""
    n, height, width, _ = x.shape
    wide = np.zeros((n, height + 2, width + 2, 1), x.dtype)
    wide[:, 1:-1, 1:-1] = x
    down, right = rng.integers(0, 3, (2, n, 1, 1))
    return wide[np.arange(n)[:, None, None], down + np.arange(height)[:, None],
                right + np.arange(width)]


# -- data


def folds(size):
    """(x, y, x of the test, y of the test) of each of five stratified folds of scikit-learn's
    digits: every class is dealt out to the folds in turn, in a fixed random order."""
    from sklearn.datasets import load_digits

    images, labels = load_digits().images, load_digits().target
    x = enlarged(images / 16, size)
    order, fold = np.random.default_rng(0).permutation(len(labels)), np.empty(len(labels), int)
    for digit in range(10):
        members = order[labels[order] == digit]
        fold[members] = np.arange(len(members)) % 5
    for k in range(5):
        yield x[fold != k], labels[fold != k], x[fold == k], labels[fold == k]


def enlarged(images, size):
    """Images (n, 8, 8) by bilinear interpolation to (n, size, size, 1)."""
    x = zoom(images, (1, size / 8, size / 8), order=1, grid_mode=True, mode="nearest")
    return np.ascontiguousarray(x[..., None], "f4")


def mnist(folder, size):
    """MNIST's training and test set, from IDX files, packed or not; set in a larger frame."""
    x, y, x_test, y_test = (idx(folder, name) for name in (
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"))
    edge = [(0, 0)] + [((size - n) // 2, (size - n + 1) // 2) for n in x.shape[1:]]
    x, x_test = (np.pad(a.astype("f4") / 255, edge)[..., None] for a in (x, x_test))
    return [(x, y.astype(int), x_test, y_test.astype(int))]


def idx(folder, name):
    """The array of an IDX file: 0, 0, 8 for bytes, the number of axes, their extents, data."""
    path = next((p for p in (folder / name, folder / f"{name}.gz",
                             folder / name.replace("-idx", ".idx")) if p.exists()), None)
    if path is None:
        raise FileNotFoundError(f"no {name} in {folder}, packed or not")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    axes = data[3] if data[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(data, ">i4", axes, 4) if len(data) >= 4 + 4 * axes else ()
    if not axes or len(data) != 4 + 4 * axes + np.prod(shape):
        raise ValueError(f"{path}: not a whole IDX file of bytes")
    return np.frombuffer(data, "u1", offset=4 + 4 * axes).reshape(shape)
