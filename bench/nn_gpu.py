"""blasx.nn on the GPU beside torch: rows (norms, softmax, cross entropy), elements (activations,
dropout, Adam), Dense with bias and ReLU, convolution, LSTM, attention, steps of training
(nn_steps.py). A "step" of a layer is forward and backward with all gradients.

Answers are judged by torch's in double precision. Floors are the bytes of what a layer has to read
and write, as if a step's two passes shared nothing. torch computes in single precision, also where
it would round products to 10 bits unless told not to (cuDNN's recurrences and convolutions), and
tries cuDNN's algorithms for a convolution first.
"""

from blasx import _errors as errors
from blasx import nn
from blasx._types import TYPES

from . import nn_steps, timing
from .timing import Row, Side

ROWS = ((16384, 1024), (4096, 4096), (131072, 256))
SCORES = ((16384, 1024), (4096, 32000), (4096, 50257))
COUNT = 2**25
# batch, heads, time, width, causal
ATTENTIONS = ((8, 16, 2048, 64, False), (8, 16, 2048, 128, True), (64, 8, 128, 64, False))
DENSE = ((128, 784, 512), (4096, 4096, 4096))  # batch, in, out
# name, batch, channels, height and width, filters, kernel, stride, padding
CONVOLUTIONS = (("lenet1", 256, 1, 28, 12, 3, 1, 1), ("seed2", 256, 12, 28, 24, 6, 2, 2),
                ("seed3", 256, 24, 14, 32, 6, 2, 2), ("res3x3_64", 64, 64, 56, 64, 3, 1, 1),
                ("res3x3_256", 64, 256, 14, 256, 3, 1, 1), ("res1x1", 64, 256, 56, 64, 1, 1, 0))
LSTMS = ((128, 64, 512, 512), (256, 32, 1024, 1024), (50, 128, 128, 128))  # time, n, in, width


def rows(letters, quick, family):
    """The rows of the family, steps of training in half precision, too; --quick takes the first of
    each layer's."""
    timing.gpu()
    import torch
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = False, True
    take = slice(1) if quick else slice(None)
    for letter in [x for x in letters if x in "sd"]:
        for shape in ROWS[take]:
            yield from norm(letter, *shape)
        for shape in SCORES[take]:
            yield from softmax(letter, *shape)
            yield cross_entropy(letter, *shape)
        yield from elements(letter)
        yield adam(letter)
    if "s" in letters:
        for shape in DENSE[take]:
            yield from dense(*shape)
        for shape in CONVOLUTIONS[take]:
            yield from convolution(*shape)
    for shape in LSTMS[take] if "s" in letters else ():
        yield from recurrent(nn.LSTM, *shape)
    if "s" in letters:
        yield from recurrent(nn.GRU, *LSTMS[0])
    for letter in [x for x in letters if x in "shb"]:
        for shape in ATTENTIONS[take]:
            yield from attention(letter, *shape)
    yield from nn_steps.rows(letters)


def normal(letter, *shape):
    cupy = timing.gpu()
    return cupy.random.RandomState(shape[-1]).standard_normal(shape).astype(
        {"s": "f4", "d": "f8"}[letter])


def on_torch(x):
    import torch
    return torch.from_dlpack(x)


def on_cupy(x):
    return timing.gpu().from_dlpack(x.detach())


def row(name, letter, shape, ours, theirs, operands, passes, terms=1):
    """Our function of arrays beside one of torch's tensors; both answer tuples. `passes`: how often
    the first operand's bytes go through memory at least."""
    def check(found):
        wanted = theirs(*(on_torch(x.astype("f8") if x.dtype.kind == "f" else x)
                          for x in operands))
        return max(errors.near(a, on_cupy(b), operands[0].dtype, terms)
                   for a, b in zip(found, wanted, strict=True))

    copies = lambda: tuple(x.copy(order="K") for x in operands)  # noqa: E731
    nbytes = sum(x.nbytes for x in operands)
    return Row(name, letter, shape, {"": lambda: Side(copies, ours)},
               {"torch": lambda: Side(lambda: tuple(map(on_torch, copies())), theirs,
                                      lambda found: tuple(map(on_cupy, found)))},
               check, timing.gpu_clock(nbytes), passes * operands[0].nbytes)


def both(name, letter, shape, layer, function, x, dy, parameters=(), passes=(2, 5), terms=1):
    """The rows of a layer's forward pass and of its step; `function(x, *parameters)` is torch's."""
    import torch

    def forward(x, *_):
        return (layer.forward(x),)

    def step(x, dy, *_):
        y = layer.forward(x)
        dx = layer.backward(dy)
        found = [p.grad for p in layer.parameters().values()]
        for p in layer.parameters().values():
            p.grad = None
        return y, dx, *found

    def their_step(x, dy, *parameters):
        asked = [a.requires_grad_() for a in (x, *parameters)]
        y = function(*asked)
        return y, *torch.autograd.grad(y, asked, dy)

    def their_forward(x, *parameters):
        with torch.no_grad():
            return (function(x, *parameters),)

    yield row(f"{name}_forward", letter, shape, forward, their_forward, (x, *parameters),
              passes[0], terms)
    yield row(name, letter, shape, step, their_step, (x, dy, *parameters), passes[1], terms)


# -- rows


def norm(letter, m, n):
    import torch
    x, dy = normal(letter, m, n), normal(letter, n, m).T.copy()
    for name, layer, function in (
            ("layer_norm", nn.LayerNorm(n, dtype=x.dtype), torch.nn.functional.layer_norm),
            ("rms_norm", nn.RMSNorm(n, dtype=x.dtype), torch.nn.functional.rms_norm)):
        layer = layer.to(timing.gpu())
        parameters = [p.value for p in layer.parameters().values()]
        yield from both(name, letter, f"{m}x{n}", layer,
                        lambda x, *w, f=function: f(x, (n,), *w, eps=1e-5), x, dy, parameters,
                        terms=m ** 0.5)


def softmax(letter, m, n):
    import torch
    x, dy = normal(letter, m, n), normal(letter, n, m).T.copy()
    yield from both("softmax", letter, f"{m}x{n}", nn.Softmax(),
                    lambda x: torch.softmax(x, -1), x, dy)


def cross_entropy(letter, m, n):
    import torch
    cupy = timing.gpu()
    y, labels = normal(letter, m, n), cupy.arange(m) * 7919 % n
    loss = nn.CrossEntropy(0.1, ignore=3)

    def theirs(y, labels):
        y = y.requires_grad_()
        value = torch.nn.functional.cross_entropy(y, labels, ignore_index=3, label_smoothing=0.1)
        return value.reshape(1), torch.autograd.grad(value, y)[0]

    return row("cross_entropy", letter, f"{m}x{n}",
               lambda y, labels: (loss.forward(y, labels).reshape(1), loss.backward()), theirs,
               (y, labels), 2, 4)


# -- elements


def elements(letter):
    import torch
    x, dy = normal(letter, COUNT), normal(letter, COUNT)
    f = torch.nn.functional
    for name, layer, function in (("relu", nn.ReLU(), f.relu), ("gelu", nn.GELU(), f.gelu),
                                  ("gelu_tanh", nn.GELU(True),
                                   lambda x: f.gelu(x, approximate="tanh")),
                                  ("tanh", nn.Tanh(), torch.tanh)):
        yield from both(name, letter, str(COUNT), layer, function, x, dy, terms=4)
    dropped = nn.Dropout(0.1)  # no two libraries draw alike: ours is checked by the tests
    cupy = timing.gpu()
    yield Row("dropout", letter, str(COUNT),
              {"": lambda: Side(lambda: (x.copy(),), dropped.forward)},
              {"torch": lambda: Side(lambda: (on_torch(x.copy()),), lambda x: f.dropout(x, 0.1),
                                     on_cupy)},
              lambda y: float(cupy.abs((y != 0).mean() - 0.9)), timing.gpu_clock(x.nbytes),
              2 * x.nbytes)


def adam(letter):
    import torch
    w, g = normal(letter, COUNT), normal(letter, COUNT + 1)[1:].copy()

    class Model(nn.Layer):
        def __init__(self, w):
            self.w = nn.Parameter(w)

    def ours():
        model = Model(w.copy())
        return nn.AdamW(model, 0.01), model.w, g.copy()

    def our_step(steps, p, g):
        p.grad = g
        steps.step()
        return p.value

    def theirs():
        p = on_torch(w.copy()).requires_grad_()
        return torch.optim.AdamW([p], 0.01, weight_decay=0.01, fused=True), p, on_torch(g.copy())

    def their_step(steps, p, g):
        p.grad = g
        steps.step()
        return p

    wide = w.astype("f8") * (1 - 1e-4)
    wide -= 0.01 * g.astype("f8") / (abs(g.astype("f8")) + 1e-8)
    return Row("adamw", letter, str(COUNT), {"": lambda: Side(ours, our_step)},
               {"torch fused": lambda: Side(theirs, their_step, on_cupy)},
               lambda found: errors.near(found, wide, w.dtype), timing.gpu_clock(4 * w.nbytes),
               7 * w.nbytes)


# -- Dense and convolution


def dense(batch, n_in, n_out):
    """The row of the forward pass: gradients jump where a number is about 0."""
    import torch
    layer = nn.Sequential(nn.Dense(n_in, n_out, rng=0), nn.ReLU()).to(timing.gpu())
    f = torch.nn.functional
    yield next(both("dense_relu", "s", f"{batch}x{n_in}x{n_out}", layer,
                    lambda x, w, b: f.relu(f.linear(x, w.T, b)), normal("s", batch, n_in), None,
                    [p.value for p in layer.parameters().values()], (1, 1), n_in ** 0.5))


def convolution(name, batch, channels, size, filters, kernel, stride, padding):
    import torch
    layer = nn.Conv2d(channels, filters, kernel, stride, padding, rng=0).to(timing.gpu())
    count = (size + 2 * padding - kernel) // stride + 1
    x, dy = normal("s", batch, channels, size, size), normal("s", batch, filters, count, count)
    larger = 1 + dy.nbytes / x.nbytes  # x and y, beside x
    yield from both("conv2d", "s", f"{name} {batch}x{channels}x{size} {filters} of {kernel}", layer,
                    lambda x, w, b: torch.nn.functional.conv2d(x, w, b, stride, padding), x, dy,
                    [p.value for p in layer.parameters().values()], (larger, 2 * larger),
                    (batch * count**2) ** 0.5)


# -- LSTM and GRU


def recurrent(kind, times, batch, n_in, n):
    """The rows of the forward pass and of the step; both libraries get sequences by time."""
    import torch
    cupy = timing.gpu()
    layer, name = kind(n_in, n, rng=0).to(cupy), kind.__name__.lower()
    parameters = layer.parameters().values()
    x, dy = normal("s", times, batch, n_in), normal("s", times, batch, n)
    gates = [0, 1, 3, 2] if kind is nn.LSTM else [0, 1, 2]
    order = torch.arange(len(gates) * n, device="cuda").reshape(-1, n)[gates].reshape(-1)

    def forward(x, dy):
        return (layer.forward(x.swapaxes(0, 1)).swapaxes(0, 1),)

    def step(x, dy):
        y = layer.forward(x.swapaxes(0, 1))
        dx = layer.backward(dy.swapaxes(0, 1))
        found = [p.grad for p in parameters]
        for p in parameters:
            p.grad = None
        return y.swapaxes(0, 1), dx.swapaxes(0, 1), *found

    def theirs(dtype):
        """torch has gates i f g o, matrices transposed, and two biases; of the second a GRU's last
        part is our c."""
        module = getattr(torch.nn, kind.__name__)(n_in, n, device="cuda", dtype=dtype)
        W, U, b, *c = (on_torch(p.value).to(dtype) for p in parameters)
        c = torch.cat([0 * b[n:], *c]) if c else 0 * b
        with torch.no_grad():
            for there, here in zip(module.parameters(), (W.T, U.T, b, c)):
                there.copy_(here[order])
        return module, on_torch(x.copy()).to(dtype), on_torch(dy.copy()).to(dtype)

    def their_forward(module, x, dy):
        with torch.no_grad():
            return (module(x)[0],)

    def their_step(module, x, dy):
        asked = [x.requires_grad_(), *module.parameters()]
        y = module(x)[0]
        return y, *torch.autograd.grad(y, asked, dy)

    def as_ours(found):
        y, dx, *found, c = found
        found = [a[order].T for a in found] + ([c[-n:]] if kind is nn.GRU else [])
        return [on_cupy(a) for a in (y, dx, *found)]

    def row_of(name, ours, run, answer):
        def check(found):
            wanted = answer(run(*theirs(torch.float64)))
            return max(errors.near(a, b, x.dtype, n**0.5)
                       for a, b in zip(found, wanted, strict=True))

        return Row(name, "s", f"{times}x{batch}x{n_in} {n}",
                   {"": lambda: Side(lambda: (x.copy(), dy.copy()), ours)},
                   {"torch": lambda: Side(lambda: theirs(torch.float32), run, answer)}, check,
                   timing.gpu_clock(x.nbytes + dy.nbytes))

    yield row_of(f"{name}_forward", forward, their_forward, lambda found: [on_cupy(found[0])])
    yield row_of(name, step, their_step, as_ours)


# -- attention


def attention(letter, batch, heads, times, width, causal):
    """The rows of the forward pass and of the step beside torch's scaled_dot_product_attention; of
    single precision as it is chosen, and fused."""
    import torch
    dtype = TYPES[letter].dtype
    operands = tuple(x.astype(dtype) for x in normal("s", 4, batch, heads, times, width))

    def tensor(x):
        return on_torch(x.view("i2")).view(torch.bfloat16) if letter == "b" else on_torch(x)

    def wide(found):
        return [on_cupy(x.detach().to(torch.float64)) for x in found]

    def theirs(step):
        def run(q, k, v, dy):
            asked = [x.requires_grad_(step) for x in (q, k, v)]
            y = torch.nn.functional.scaled_dot_product_attention(*asked, is_causal=causal)
            return y, *(torch.autograd.grad(y, asked, dy) if step else ())
        return run

    def ours(step, fused):
        layer = nn.DotProductAttention(causal, fused)

        def run(q, k, v, dy):
            y = layer.forward(q, k, v)
            return y, *(layer.backward(dy) if step else ())
        return run

    def copies():
        return tuple(x.copy() for x in operands)

    for name, step in (("attention_forward", False), ("attention", True)):
        def check(found, step=step):
            wanted = wide(theirs(step)(*(tensor(x).double() for x in operands)))
            return max(errors.near(a.astype("f8"), b, dtype, width**0.5)
                       for a, b in zip(found, wanted, strict=True))

        variants = {"": None, "fused": True} if letter == "s" else {"": None}
        yield Row(name, letter, f"{batch}x{heads}x{times}x{width}{' causal' * causal}",
                  {variant: lambda f=fused, s=step: Side(copies, ours(s, f))
                   for variant, fused in variants.items()},
                  {"torch": lambda s=step: Side(lambda: tuple(map(tensor, copies())), theirs(s),
                                                wide)},
                  check, timing.gpu_clock(sum(x.nbytes for x in operands)))
