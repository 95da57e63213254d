"""Gradients against central differences, in double precision."""

import numpy as np

STEP, TOLERANCE = 1e-5, 1e-6


def check(layer, *inputs, seed=0, **options):
    """Assert that the layer's gradients, in its inputs and its parameters, are those of
    sum(dy * y) for a random dy: along random directions and along themselves."""
    rng = np.random.default_rng(seed)
    inputs = [x.copy() for x in inputs]
    start = {path: p.copy() for path, p in layer.state().items()}

    def answer():
        layer.load(start | {path: p.value for path, p in layer.parameters().items()})
        return layer.forward(*inputs, **options)

    y = answer()
    dy = rng.standard_normal(y.shape)
    for p in layer.parameters().values():
        p.grad = None
    found = layer.backward(dy)
    found = found if isinstance(found, tuple) else (found,)
    pairs = [(f"input {i}", x, g) for i, (x, g) in enumerate(zip(inputs, found, strict=True))
             if x.dtype.kind == "f"]
    grads = {path: p.grad for path, p in layer.parameters().items()}
    assert all(g is not None for g in grads.values()), grads
    for name, x, g in pairs:
        assert g.shape == x.shape and g.dtype == x.dtype, name
        compare(lambda: (answer() * dy).sum(), x, g, rng, f"{layer!r} {name}")
    for path, g in grads.items():
        assert g.shape == layer.parameters()[path].value.shape, path
        moved = layer.parameters()[path].value.copy()

        def value():
            layer.parameters()[path].value = moved
            return (answer() * dy).sum()

        compare(value, moved, g, rng, f"{layer!r} {path}")


def compare(value, x, g, rng, name):
    """The derivative of value() along directions of x, against g."""
    norm = np.linalg.norm(g)
    for along in (False, True):
        d = rng.standard_normal(x.shape)
        d /= max(np.linalg.norm(d), 1e-300)
        if along:
            d += g / max(norm, 1e-300)
        old, sides = x.copy(), []
        for sign in (1, -1):
            x[...] = old + sign * STEP * d
            sides.append(value())
        x[...] = old
        value()
        slope = (sides[0] - sides[1]) / (2 * STEP)
        wanted = float((g * d).sum())
        assert abs(slope - wanted) <= TOLERANCE * (norm + 1e-3), (name, slope, wanted, norm)
