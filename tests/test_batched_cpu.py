"""The CPU's batches: the same bits however they are looped over."""

import numpy as np
import pytest

import blasx
from blasx.batched import _cpu

CALLS = {
    "getrf": lambda letter, a, b: getattr(blasx, letter + "getrf_batched")(a),
    "gesv": lambda letter, a, b: getattr(blasx, letter + "gesv_batched")(a, b),
    "potrf": lambda letter, a, b: getattr(blasx, letter + "potrf_batched")(a, lower=1),
    "posv": lambda letter, a, b: getattr(blasx, letter + "posv_batched")(a, b),
}


def problem(letter, n, batch=23):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((batch, n, n))
    if letter in "cz":
        x = x + 1j * rng.standard_normal(x.shape)
    a = x @ x.conj().transpose(0, 2, 1) + n * np.eye(n)
    dtype = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter]
    return a.astype(dtype), a[:, :, :2].astype(dtype)


@pytest.mark.parametrize("routine", CALLS)
@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("n", [1, 5, 32, 70])
def test_the_loop_does_not_show(monkeypatch, routine, letter, n):
    """Compiled or in Python, in one thread or shared among three."""
    a, b = problem(letter, n)

    def bits():
        return [x.tobytes() for x in CALLS[routine](letter, a, b)]

    alone = bits()
    monkeypatch.setattr(_cpu, "_parts", lambda batch, n: 3)
    shared = bits()
    monkeypatch.setattr(_cpu, "_loop", None)
    assert alone == shared == bits()


def test_a_large_batch_is_shared_and_a_small_one_is_not(monkeypatch):
    monkeypatch.setattr(_cpu, "_cores", lambda: 8)
    assert _cpu._parts(10, 8) == 1
    assert _cpu._parts(10**6, 8) == 8
    assert _cpu._parts(10**6, _cpu.SMALL + 1) == 1


@pytest.mark.parametrize("overwrite", [0, 1])
def test_info_without_right_hand_sides_is_the_factorizations(overwrite):
    a, b = np.array([np.eye(3), np.zeros((3, 3))]), np.empty((2, 3, 0))
    flags = {"overwrite_a": overwrite, "overwrite_b": overwrite}
    for f in (blasx.dgesv_batched, blasx.dposv_batched):
        *_, x, info = f(a.copy(), b.copy(), **flags)
        assert x.shape == b.shape and list(info) == [0, 1]
