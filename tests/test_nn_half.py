"""blasx.nn in half precision and bfloat16: every layer beside itself in double, and training."""

from copy import deepcopy

import numpy as np
import pytest

from blasx import nn
from blasx._types import TYPES, finfo
from tests.test_nn_device import LAYERS, normal

KINDS = [pytest.param(TYPES[letter].dtype, id=letter, marks=pytest.mark.skipif(
    not TYPES[letter].is_known, reason="no package that brings bfloat16")) for letter in "hb"]
half = pytest.mark.parametrize("dtype", KINDS)


def close(found, wanted, dtype, largest=None):
    """Within four units of the largest number."""
    assert found.dtype == dtype
    error = abs(found.astype("f8") - wanted).max(initial=0)
    largest = abs(wanted).max(initial=0) if largest is None else largest
    assert error <= 4 * float(finfo(dtype).eps) * largest, error


@half
@pytest.mark.parametrize("layer, x", LAYERS, ids=lambda v: repr(v)[:30])
def test_layers(layer, x, dtype):
    """What is read and written is rounded, what is in between is not."""
    layer = deepcopy(layer).to(dtype=dtype)
    exact = deepcopy(layer).to(dtype="f8")
    x = x.astype(dtype) if x.dtype.kind == "f" else x
    y, wanted = layer.forward(x), exact.forward(x.astype("f8") if x.dtype == dtype else x)
    close(y, wanted, dtype)
    dy = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    dx, wanted = layer.backward(dy), exact.backward(dy.astype("f8"))
    if dx is not None:
        close(dx, wanted, dtype)
    wanted = {path: p.grad for path, p in exact.parameters().items()}
    for path, grad in wanted.items():  # attention's bias of keys has the gradient 0
        close(layer.parameters()[path].grad, grad, dtype,
              max(abs(g).max() for g in wanted.values()))


@half
def test_losses(dtype):
    y, labels = normal(6, 5).astype(dtype), np.arange(6) % 5
    for loss, target in ((nn.CrossEntropy(0.1), labels), (nn.MeanSquare(), -y),
                         (nn.BinaryCrossEntropy(), (y > 0).astype(dtype))):
        loss.scale = 2.0**10
        value, dy = loss.forward(y, target), loss.backward()
        assert value.dtype == "f4"
        exact = target if target is labels else target.astype("f8")
        assert float(value) == pytest.approx(loss.forward(y.astype("f8"), exact), rel=1e-5)
        loss.scale = 1.0
        close(dy, 2.0**10 * loss.backward(), dtype)


@half
def test_small_steps_count(dtype):
    """Steps of a sixteenth of a unit: sixteen are one."""
    layer = nn.Dense(1, 1).to(dtype=dtype)
    layer.weight.value[...] = layer.bias.value[...] = 1
    unit = float(finfo(dtype).eps)
    sgd = nn.SGD(layer, unit / 16)
    for _ in range(16):
        layer.forward(np.ones((1, 1), dtype))
        layer.backward(np.full((1, 1), -1, dtype))
        sgd.step()
    assert layer.weight.value.dtype == dtype and float(layer.weight.value[0, 0]) == 1 + unit
    layer.load(nn.Dense(1, 1, rng=0).to(dtype=dtype).state())  # and what was before is gone
    assert layer.weight.master == layer.weight.value


def classifier(dtype):
    return nn.Sequential(nn.Dense(6, 16, rng=0), nn.BatchNorm(16), nn.ReLU(),
                         nn.Dense(16, 3, rng=1)).to(dtype=dtype)


def trained(model, epochs=6, **options):
    x = normal(96, 6)
    y = (x @ normal(6, 3)).argmax(1)
    x = x.astype(model.layers[0].weight.value.dtype)
    return nn.fit(model, nn.CrossEntropy(), nn.Adam(model, 0.01), x, y, epochs=epochs,
                  clip=5.0, progress=False, **options)


@half
def test_training_is_that_in_single(dtype):
    wanted = trained(classifier("f4")).losses
    found = trained(classifier(dtype)).losses
    np.testing.assert_allclose(found, wanted, rtol=32 * float(finfo(dtype).eps))


def test_the_smallest_scale_serves_where_nothing_overflows():
    scale = nn.LossScale(2.0**-14)
    assert scale.went(True) and not scale.went(False) and scale.went(True)


def test_an_overflow_is_skipped_and_counted():
    wanted = trained(classifier("f2"))
    scale = nn.LossScale(2.0**30, every=8)
    history = trained(classifier("f2"), scale=scale)
    assert wanted.skipped == 0 < history.skipped < 18 == len(history.losses)
    assert not history.stopped and 2.0**10 < scale.value < 2.0**24
    assert history.losses[-1] < 0.8 * history.losses[0]


def test_what_no_scale_helps_stops_the_training():
    class Breaks(nn.Tanh):
        def backward(self, dy):
            return super().backward(dy) * np.float16(np.nan)

    model = classifier("f2")
    model.layers.insert(3, Breaks())
    history = trained(model, epochs=20, scale=nn.LossScale())
    assert "layer 0 Dense" in history.stopped or "layer 1 BatchNorm" in history.stopped
    assert history.skipped == 30


@half
def test_a_resumed_training_is_the_same_one(dtype, tmp_path):
    def scale():
        return nn.LossScale(2.0**22, every=5)

    wanted = trained(classifier(dtype), 4, scale=scale())
    path = tmp_path / "c"
    trained(classifier(dtype), 2, scale=scale(), checkpoint=path)
    model = classifier(dtype)
    found = trained(model, 4, scale=scale(), checkpoint=path, resume=True)
    assert found.losses == wanted.losses and found.skipped == wanted.skipped
    assert model.layers[0].weight.value.dtype == dtype


def test_wrong_scales_and_types():
    with pytest.raises(ValueError, match="LossScale: .*got 0"):
        nn.LossScale(0)
    model = classifier("f4")
    before = {path: p.value for path, p in model.parameters().items()}
    with pytest.raises(TypeError, match="fit: scale must be a LossScale, got float"):
        trained(model, scale=2.0**10)
    for wrong in ("i4", "c8"):
        with pytest.raises(TypeError, match="to: dtype must be one of float32.*got (int|complex)"):
            model.to(dtype=wrong)
    assert all(p.value is before[path] for path, p in model.parameters().items())


def test_a_loss_is_left_without_a_scale():
    loss, model, x = nn.MeanSquare(), nn.Dense(2, 2, rng=0).to(dtype="f2"), np.ones((3, 2), "f2")
    for data in (x, x * np.float16(60000)):  # the second ends early
        nn.fit(model, loss, nn.SGD(model, 0.1), data, x, epochs=1, scale=nn.LossScale(),
               progress=False)
        assert loss.scale == 1
