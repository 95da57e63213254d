"""One step of training on the GPU beside torch without its compiler: forward, loss, backward and
AdamW, of a transformer and of an LSTM that model characters.

By the wall, the host's work included, which both libraries do launch by launch; "graph": forward,
loss and backward are one. Both begin with the
same parameters and see the same characters; what is judged is the loss after a few steps, by
torch's in double precision. Ours of half precision step on masters in
single, torch's on parameters in half. torch has its matrices as its own layers lay them.
"""

import numpy as np

from blasx import _errors as errors
from blasx import nn
from blasx._types import TYPES

from . import timing
from .timing import Row, Side

CHARACTERS, RATE = 96, 1e-3
TRANSFORMER = dict(layers=6, width=512, heads=8, length=512, batch=32)
LSTM = dict(layers=2, width=512, length=128, batch=64)


def transformer(layers, width, heads, length, batch, rng=0):
    """(model, function of (parameters, tokens) in torch)."""
    rng = np.random.default_rng(rng)
    blocks = [nn.EncoderBlock(width, heads, causal=True, rng=rng) for _ in range(layers)]
    model = nn.Sequential(nn.Embedding(CHARACTERS, width, rng=rng),
                          nn.Positions(length, width, learned=True, rng=rng), *blocks,
                          nn.LayerNorm(width), nn.Dense(width, CHARACTERS, rng=rng))

    def theirs(w, tokens):
        import torch.nn.functional as f
        n, t = tokens.shape
        x = f.embedding(tokens, w["0.weight"]) + w["1.weight"]

        def norm(x, at):
            return f.layer_norm(x, (width,), w[f"{at}.weight"], w[f"{at}.bias"])

        def linear(x, at):
            return f.linear(x, w[f"{at}.weight"], w[f"{at}.bias"])

        for k in range(2, 2 + layers):
            qkv = linear(norm(x, f"{k}.norms.0"), f"{k}.attention")
            heads_of = (a.view(n, t, heads, -1).transpose(1, 2) for a in qkv.chunk(3, -1))
            y = f.scaled_dot_product_attention(*heads_of, is_causal=True)
            x = x + linear(y.transpose(1, 2).reshape(n, t, width), f"{k}.attention.output")
            x = x + linear(f.gelu(linear(norm(x, f"{k}.norms.1"), f"{k}.mlp.0")), f"{k}.mlp.2")
        return linear(norm(x, str(2 + layers)), str(3 + layers))

    return model, theirs


def lstm(layers, width, length, batch, rng=0):
    """(model, function of (parameters, tokens) in torch)."""
    rng = np.random.default_rng(rng)
    model = nn.Sequential(nn.Embedding(CHARACTERS, width, rng=rng),
                          nn.LSTM(width, width, layers, rng=rng),
                          nn.Dense(width, CHARACTERS, rng=rng))

    def theirs(w, tokens):
        import torch
        x = torch.nn.functional.embedding(tokens, w["0.weight"])
        zero = x.new_zeros(layers, len(x), width)
        flat = [w[f"1.cells.{k}.{name}"] for k in range(layers) for name in ("W", "U", "b", "c")]
        y, _, _ = torch.lstm(x, (zero, zero), flat, True, layers, 0.0, True, False, True)
        return torch.nn.functional.linear(y, w["2.weight"], w["2.bias"])

    return model, theirs


def for_torch(model, tensor):
    """{name: parameter} of a model as torch has them, each made by `tensor` of an array: matrices
    transposed, an LSTM's gates i f g o and a second bias."""
    found = {}
    for path, p in model.parameters().items():
        x = p.value.get() if hasattr(p.value, "get") else p.value
        layer = dict(model.walk())[path.rpartition(".")[0]]
        name = path.rpartition(".")[2]
        if isinstance(layer, nn.Dense | nn.MultiHeadAttention) and name == "weight" or name in "WU":
            x = x.T
        if name in ("W", "U", "b"):
            i, f, o, g = np.split(x, 4)
            x = np.concatenate([i, f, g, o])
        found[path] = x
        if name == "b":
            found[path[:-1] + "c"] = np.zeros_like(x)
    return {name: tensor(np.ascontiguousarray(x)) for name, x in found.items()}


def trained(parameters):
    """The tensors that torch steps on: an LSTM's second bias stays 0, as ours has one."""
    return [p.requires_grad_() for path, p in parameters.items() if not path.endswith(".c")]


def our_step(model, loss, optimiser, x, y):
    """One step; the loss before it."""
    value = loss.forward(model.forward(x), y)
    model.backward(loss.backward(), dx=False)
    optimiser.step()
    return value


def graph_step(graph, optimiser, x, y):
    """The same, forward, loss and backward as a graph."""
    value = graph(x, y)
    optimiser.step()
    return value


def their_step(function, parameters, optimiser, x, y):
    """One step; the loss before it."""
    import torch
    optimiser.zero_grad(set_to_none=True)
    scores = function(parameters, x)
    value = torch.nn.functional.cross_entropy(scores.reshape(-1, CHARACTERS), y.reshape(-1))
    value.backward()
    optimiser.step()
    return value.detach()


def row(name, letter, make, sizes):
    import torch
    cupy = timing.gpu()
    dtype = TYPES[letter].dtype
    exact = torch.float64
    their_dtype = {"s": torch.float32, "b": torch.bfloat16, "h": torch.float16}[letter]
    tokens = np.random.default_rng(1).integers(0, CHARACTERS, (sizes["batch"],
                                                              sizes["length"] + 1))
    x, y = cupy.asarray(tokens[:, :-1].copy()), cupy.asarray(tokens[:, 1:].copy())

    def ours():
        model = make(**sizes)[0].to(cupy, dtype)
        return model, nn.CrossEntropy(), nn.AdamW(model, RATE), x, y

    def ours_by_graph():
        model, loss, optimiser, x, y = ours()
        return nn.Graph(model, loss), optimiser, x, y

    def theirs(kind=their_dtype):
        model, function = make(**sizes)
        parameters = for_torch(model, lambda a: torch.from_numpy(a).to("cuda", kind))
        fused = torch.optim.AdamW(trained(parameters), RATE, weight_decay=0.01, fused=True)
        return function, parameters, fused, *(torch.from_dlpack(a) for a in (x, y))

    def after(operands, step):
        for _ in range(2):
            step(*operands)
        return step(*operands)

    def done(results):
        cupy.cuda.Device().synchronize()

    wanted = float(after(theirs(exact), their_step))
    return Row(name, letter, "x".join(map(str, sizes.values())),
               {"": lambda: Side(ours, our_step, wall=done),
                "graph": lambda: Side(ours_by_graph, graph_step, wall=done)},
               {"torch": lambda: Side(theirs, their_step, wall=done)},
               lambda _: max(errors.near(np.array(float(after(made(), step))), np.array(wanted),
                                         dtype, 1)
                             for made, step in ((ours, our_step), (ours_by_graph, graph_step))),
               timing.gpu_clock(2**30))


def rows(letters):
    """The transformer in half precision, the LSTM in single."""
    for letter in letters:
        if letter in "hb":
            yield row("transformer step", letter, transformer, TRANSFORMER)
        elif letter == "s":
            yield row("character LSTM step", letter, lstm, LSTM)
