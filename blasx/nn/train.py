"""Training: batches in random order, a step down each batch's gradient, epoch after epoch."""

import json
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import inf, sqrt
from numbers import Integral, Real
from pathlib import Path
from time import perf_counter

import numpy as np

from . import checkpoint as files
from ._arrays import REALS, module, whole
from .graph import Graph
from .layer import Layer, Parameter
from .losses import Loss
from .optim import LossScale, Optimiser, squares


@dataclass
class History:
    """What `fit` saw. `losses` has every step; `epochs` every epoch. `skipped` counts steps that
    were left out because a scaled gradient overflowed. `stopped` says why it ended early, and is
    empty if it did not."""

    losses: list = field(default_factory=list)
    epochs: list = field(default_factory=list)
    skipped: int = 0
    stopped: str = ""

    def plot(self, path):
        """Draw loss and accuracy against the epoch into a PNG file."""
        from matplotlib.figure import Figure

        names = [n for n in ("loss", "accuracy") if any(n in e for e in self.epochs)]
        figure = Figure(figsize=(5 * max(len(names), 1), 3.5), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
            for key, label in ((name, "training"), (f"validation_{name}", "validation")):
                if any(key in e for e in self.epochs):
                    axes.plot([e["epoch"] for e in self.epochs], [e[key] for e in self.epochs],
                              label=label)
            axes.set(xlabel="epoch", ylabel=name)
            axes.legend()
        figure.savefig(path, format="png", dpi=120)


def fit(model, loss, optimiser, x, y, *, epochs, batch=32, seed=0, clip=None, validation=None,
        augment=None, scale=None, checkpoint=None, resume=False, progress=True, graph=False):
    """Train a model on samples x with targets y.

    Parameters
    ----------
    model, loss, optimiser
        Layer, Loss, Optimiser (of that model, or of a part of it: the rest stays as it is).
    x, y : array, or for x a tuple of arrays
        Samples along the first axis. nan and inf are refused before anything is trained.
    epochs, batch : int
        The last batch of an epoch has what is left (of one sample, BatchNorm refuses it).
    seed : int
        Epoch e is in the order of numpy.random.default_rng((seed, e)): the same seed, data and
        machine give the same losses, bit for bit, also after `resume`.
    clip : float, optional
        The largest norm of all gradients together that the optimiser steps by.
    validation : (x, y), optional
        Evaluated after every epoch; a first batch of it before, so that what the model or the loss
        does not take is refused at once.
    augment : function (x, rng) -> x, optional
        Applied to the samples of every batch.
    scale : LossScale, optional
        Of the loss, for gradients in half precision (`model.to(dtype="float16")`; bfloat16 has
        the range of single precision and needs none).
    checkpoint : path, optional
        Written after every epoch; with `resume` read first where it exists.
    progress : bool
        A line for every epoch, moving on a terminal.
    graph : bool
        Forward, loss and backward are one launch (`Graph`), of a model on the GPU: the same
        losses, sooner where layers are small.

    Returns
    -------
    History
        If a loss or gradient is nan or inf training stops before the step that it would spoil,
        and `stopped` names the layer in which it arose.

    Notes
    -----
    Every step reads the loss and the gradients' norm: on the GPU, it waits for them.
    """
    if not all(isinstance(n, Integral) for n in (epochs, batch, seed)):
        raise TypeError("fit: epochs, batch and seed must be integers, got "
                        f"{epochs!r}, {batch!r}, {seed!r}")
    if epochs < 0 or batch < 1 or seed < 0:
        raise ValueError("fit: epochs and batch must be at least 0 and 1, seed 0, got "
                         f"{epochs}, {batch}, {seed}")
    for name, part, kind in (("model", model, Layer), ("loss", loss, Loss),
                             ("optimiser", optimiser, Optimiser),
                             ("scale", LossScale() if scale is None else scale, LossScale)):
        if not isinstance(part, kind):
            raise TypeError(f"fit: {name} must be a {kind.__name__}, got {type(part).__name__}")
    parameters = list(model.parameters().values())
    if not all(p in parameters for p in optimiser.parameters.values()):
        raise ValueError("fit: optimiser must be of this model, it has other parameters: "
                         f"{', '.join(optimiser.parameters)}")
    if clip is not None and not (isinstance(clip, Real) and 0 < clip < inf):
        raise ValueError(f"fit: clip must be positive and finite, got {clip!r}")
    if validation is not None and (not isinstance(validation, tuple | list) or (
            len(validation) != 2)):
        raise TypeError(f"fit: validation must be (x, y), got {type(validation).__name__}")
    if augment is not None and not callable(augment):
        raise TypeError(f"fit: augment must be a function of x and rng, got {augment!r}")
    if checkpoint is not None and (Path(checkpoint).is_dir()
                                   or not Path(checkpoint).parent.is_dir()):
        raise ValueError("fit: checkpoint must be a file in a folder that is there, got "
                         f"{checkpoint}")
    if resume and checkpoint is None:
        raise ValueError("fit: resume must have a checkpoint, got None")
    _finite("fit", {"x": x, "y": y})
    if validation:
        _finite("fit", dict(zip(("validation x", "validation y"), validation)))
        _try(model, loss, *validation, batch)
    stepped = optimiser.parameters.values()
    for p in parameters:
        p.grad = None
    made = Graph(model, loss, optimiser) if graph else None
    history, done = History(), 0
    if resume and checkpoint is not None and Path(checkpoint).exists():
        history, done = _restore(checkpoint, model, optimiser, scale)
    count = len(y)
    for epoch in range(done, epochs):
        rng = np.random.default_rng((seed, epoch))
        order, bar = rng.permutation(count), _Bar(epoch, epochs, count, progress)
        model.train()
        seen = _Seen(loss)
        for start in range(0, count, batch):
            chosen = order[start:start + batch]
            xs, ys = _rows(x, chosen), _rows(y, chosen)
            if augment:
                xs = augment(xs, rng)
            times = scale.value if scale else 1.0
            with _scaled(loss, times):
                if made:
                    value = float(made(xs, ys))
                    answer = made.answer
                else:
                    answer = model.forward(xs)
                    value = float(loss.forward(answer, ys))
                if epoch == done and not start:
                    for targets in (y, validation[1]) if validation else (y,):
                        loss.look(answer, targets)
                if not np.isfinite(value):
                    history.stopped = _first_bad_output(model, xs) or f"loss {value} in {loss!r}"
                    break
                if not made:
                    dy = loss.backward()
                    model.backward(dy, dx=False) if model.SKIPS_DX else model.backward(dy)
            norm = sqrt(float(made.squares if made else squares(stepped))) / times
            well = bool(np.isfinite(norm))
            if not (scale.went(well) if scale else well):
                history.stopped = _first_bad_gradient(model)
                break
            if well:
                optimiser.step((float(clip) / norm if clip and norm > clip else 1.0) / times)
            else:
                history.skipped += 1
            for p in parameters:
                p.grad = None
            history.losses.append(value)
            seen.add(value, answer, ys)
            bar.show(start + len(chosen), seen)
        if history.stopped:
            bar.end(f"stopped: {history.stopped}")
            break
        line = {"epoch": epoch + 1} | seen.means()
        if validation:
            found = evaluate(model, loss, *validation, batch=batch)
            line |= {f"validation_{name}": v for name, v in found.items()}
        history.epochs.append(line)
        bar.end("  ".join(f"{name} {v:.4g}" for name, v in line.items() if name != "epoch"))
        if checkpoint is not None:
            _store(checkpoint, model, optimiser, scale, history)
    return history


@contextmanager
def _scaled(loss, times):
    """A loss whose gradients are so many times as large; that they overflow is no warning then."""
    with np.errstate(**dict.fromkeys(("over", "invalid"), "ignore") if times != 1 else {}):
        loss.scale = times
        try:
            yield
        finally:
            loss.scale = 1.0


def evaluate(model, loss, x, y, batch=256):
    """{"loss": mean, "accuracy": share, where the loss has one} in inference, of all targets that
    count, so many samples at a time."""
    batch = whole("evaluate", "batch", batch)
    _samples("evaluate", {"x": x, "y": y})
    model.train(False)
    seen = _Seen(loss)
    for start in range(0, len(y), batch):
        rows = slice(start, start + batch)
        answer, ys = model.forward(_rows(x, rows)), _rows(y, rows)
        seen.add(float(loss.forward(answer, ys)), answer, ys)
    return seen.means()


class _Seen:
    """Loss and accuracy of batches, each as much as targets count in it; the sums are where the
    targets are."""

    def __init__(self, loss):
        self.loss, self.count, self.total, self.hits = loss, 0, 0.0, 0.0

    def add(self, value, answer, targets):
        n = self.loss.counted(targets)
        self.count += n
        self.total += value * n
        if self.loss.accuracy:
            self.hits += self.loss.accuracy(answer, targets) * n

    def means(self):
        """{"loss": mean, "accuracy": share, where the loss has one}."""
        n = max(int(self.count), 1)
        found = {"loss": float(self.total) / n}
        return found | ({"accuracy": float(self.hits) / n} if self.loss.accuracy else {})


def _rows(x, chosen):
    """The chosen samples (a slice, or their numbers) of an array or of each of a tuple."""
    if isinstance(x, tuple):
        return tuple(_rows(a, chosen) for a in x)
    return x[chosen if isinstance(chosen, slice) else module(x).asarray(chosen)]


# -- what is not a number


def _each(data):
    """(name, array) of {name: array or tuple of arrays}."""
    return [(name, a) for name, x in data.items() for a in (x if isinstance(x, tuple) else (x,))]


def _samples(owner, data):
    """Refuse samples and targets that are not arrays, or not as many."""
    for name, a in _each(data):
        if not hasattr(a, "dtype") or not a.ndim:
            raise TypeError(f"{owner}: {name} must be an array of samples, got {type(a).__name__}")
    lengths = {len(a) for _, a in _each(data)}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(f"{owner}: {' and '.join(data)} must have as many samples, at least one, "
                         f"got {sorted(lengths)}")


def _try(model, loss, x, y, batch):
    """Refuse validation that the model or the loss does not take, by its first batch."""
    modes = [(part, part.training) for _, part in model.walk() if isinstance(part, Layer)]
    try:
        evaluate(model, loss, *_rows((x, y), slice(batch)), batch)
    except (TypeError, ValueError) as wrong:
        kind = TypeError if isinstance(wrong, TypeError) else ValueError
        raise kind(f"fit: validation must be as x and y are: {wrong}") from wrong
    finally:
        for layer, training in modes:
            layer.training = training


def _finite(owner, data):
    """Refuse what is none of as many samples and targets, or has nan or inf."""
    _samples(owner, data)
    for name, a in _each(data):
        if a.dtype.kind == "f" or a.dtype in REALS:
            bad = ~module(a).isfinite(a).reshape(len(a), -1).all(1)
            if bad.any():
                raise ValueError(f"{owner}: {name} must be finite, got nan or inf in "
                                 f"{int(bad.sum())} samples, the first {int(bad.argmax())}")


def _first_bad_output(model, x):
    """The first layer whose parameters have nan or inf, or which, without inner ones, answers x
    with some; run again to see."""
    found = []

    def watched(path, layer):
        parts = [part for _, part in layer.parts()]
        has_inner = any(isinstance(part, Layer) for part in parts)

        def forward(*args, **kw):
            own = [n for n, p in layer.parts() if isinstance(p, Parameter)
                   and not module(p.value).isfinite(p.value).all()]
            if own:
                found.append(f"nan or inf out of layer {path} {layer!r}, whose "
                             f"{' and '.join(own)} hold some")
            y = type(layer).forward(layer, *args, **kw)
            if not found and not has_inner and not module(y).isfinite(y).all():
                found.append(f"nan or inf out of layer {path} {layer!r}")
            return y
        return forward

    layers = {layer: path for path, layer in model.walk() if isinstance(layer, Layer)}
    for layer, path in layers.items():
        layer.forward = watched(path, layer)
    try:
        model.forward(x)
    finally:
        for layer in layers:
            del layer.forward
    return found[0] if found else ""


def _first_bad_gradient(model):
    """The last parameter whose gradient is nan or inf: backward came by it first. Finite ones may
    have squares that are not."""
    bad = [path for path, p in model.parameters().items()
           if p.grad is not None and not module(p.grad).isfinite(p.grad).all()]
    if not bad:
        return "the norm of the gradients is inf"
    layers = dict(model.walk())
    path, _, name = bad[-1].rpartition(".")
    return f"nan or inf in the gradient of {name} of layer {path} {layers[path]!r}"


# -- checkpoints


def _store(path, model, optimiser, scale, history):
    arrays = {f"model.{n}": x for n, x in model.state().items()}
    arrays |= {f"optimiser.{n}": x for n, x in optimiser.state().items()}
    arrays |= {f"scale.{n}": x for n, x in scale.state().items()} if scale else {}
    files.save(path, arrays, {"history": json.dumps(asdict(history))})


def _restore(path, model, optimiser, scale):
    arrays, metadata = files.load(path)
    try:
        history = History(**json.loads(metadata["history"]))
        whole = "crc32" in metadata
    except (KeyError, ValueError, TypeError):
        whole = False
    if not whole:
        raise ValueError(f"fit: checkpoint must be one that fit wrote, {path} is not")

    def under(prefix):
        return {n[len(prefix):]: x for n, x in arrays.items() if n.startswith(prefix)}

    model.check(under("model."))
    optimiser.check(under("optimiser."))
    if scale and "scale.value" in arrays:
        scale.check(under("scale."))
    model.load(under("model."))
    optimiser.load(under("optimiser."))
    if scale and "scale.value" in arrays:
        scale.load(under("scale."))
    return history, len(history.epochs)


# -- progress


class _Bar:
    """One epoch's line: moving on a terminal, else printed at its end."""

    def __init__(self, epoch, epochs, count, shown):
        self.head = f"epoch {epoch + 1:{len(str(epochs))}}/{epochs}"
        self.count, self.shown = count, shown
        self.moving, self.began, self.next = shown and sys.stderr.isatty(), perf_counter(), 0.0

    def show(self, done, seen):
        """So many samples, and what was seen of them."""
        now = perf_counter()
        if not self.moving or now < self.next:
            return
        self.next = now + 0.1
        rate = done / (now - self.began)
        filled = 20 * done // self.count
        means = "  ".join(f"{name} {x:.4f}" for name, x in seen.means().items())
        print(f"\r{self.head} [{'#' * filled:20}] {means}  {rate:.0f} samples/s  "
              f"{(self.count - done) / rate:.0f} s left ", end="", file=sys.stderr, flush=True)

    def end(self, text):
        if self.shown:
            clear = "\r\033[K" if self.moving else ""
            seconds = perf_counter() - self.began
            print(f"{clear}{self.head}  {text}  {self.count / seconds:.0f} samples/s",
                  file=sys.stderr, flush=True)
