"""Arrays of other libraries, NumPy's own subclasses, and the type that a generic name picks."""

import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.linalg.lapack

import blasx


class Foreign:
    """An array of a library that knows DLPack and nothing else."""

    def __init__(self, data):
        self.data = np.from_dlpack(data)

    def __dlpack__(self, **how):
        return self.data.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


@pytest.fixture
def foreign(monkeypatch):
    """What makes a Foreign of a NumPy array, at the same place in memory."""
    module = ModuleType("foreign_arrays")
    module.from_dlpack = Foreign
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Foreign, "__module__", module.__name__)
    return Foreign


def regular(n=4, dtype="f8", order="F"):
    a = np.random.default_rng(0).normal(size=(n, n)) + 3 * np.eye(n)
    return np.asarray(a, dtype, order=order)


def libraries():
    for name in ("torch", "jax"):
        yield pytest.param(name, id=name)


def test_foreign_arrays_are_answered_in_kind(foreign):
    a, b = regular(), np.ones(4)
    lu, piv, x, info = blasx.dgesv(foreign(a), foreign(b))
    assert info == 0 and all(type(y) is Foreign for y in (lu, piv, x))
    np.testing.assert_allclose(a @ x.data, b)
    assert blasx.dnrm2(foreign(b)) == 2 or blasx.dnrm2(foreign(b)).data == 2
    mixed = blasx.dgemm(1.0, foreign(a), np.eye(4))
    assert type(mixed) is Foreign and (mixed.data == a).all()


def test_foreign_memory_is_overwritten_where_it_lies(foreign):
    a = regular()
    expected = scipy.linalg.lapack.dgetrf(a)[0]
    with blasx.trace() as t:
        lu, piv, info = blasx.dgetrf(foreign(a), overwrite_a=1)
    assert (a == expected).all() and np.shares_memory(lu.data, a) and t.calls[0].copies == 0


def test_generic_names_take_the_type_of_foreign_arrays(foreign):
    lu, _, _ = blasx.getrf(foreign(regular(dtype="f4")))
    assert lu.data.dtype == np.float32


@pytest.mark.parametrize("library", libraries())
def test_libraries_that_are_installed(library):
    module = pytest.importorskip(library)
    if library == "torch":
        def make(x):
            return module.from_numpy(x)
    else:
        module.config.update("jax_enable_x64", True)
        make = module.numpy.asarray
    a, b = regular(order="C"), np.ones((4, 1))
    lu, piv, x, info = blasx.gesv(make(a), make(b))
    assert type(x) is type(make(b)) and info == 0
    np.testing.assert_allclose(a @ np.asarray(x), b)


def test_foreign_arrays_are_refused_by_name_too(foreign):
    with pytest.raises(TypeError, match="^dgetrf: a .*real"):
        blasx.dgetrf(foreign(regular() * 1j))
    with pytest.raises(ValueError, match="^dgesv: b "):
        blasx.dgesv(foreign(regular()), foreign(np.ones(3)))


# NumPy's


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", [np.matrix, "memmap", "subclass", list, tuple])
def test_kinds_of_numpy_array(kind, tmp_path):
    a = regular()
    if kind == "memmap":
        x = np.memmap(tmp_path / "a", float, "w+", shape=a.shape, order="F")
        x[...] = a
    elif kind == "subclass":
        x = a.view(type("Mine", (np.ndarray,), {}))
    else:
        x = kind(a) if kind is np.matrix else kind(a.tolist())
    lu, piv, info = blasx.dgetrf(x)
    assert type(lu) is np.ndarray
    np.testing.assert_array_equal(lu, blasx.dgetrf(a)[0])


def test_a_memmap_is_factored_in_its_file(tmp_path):
    x = np.memmap(tmp_path / "a", float, "w+", shape=(4, 4), order="F")
    x[...] = a = regular()
    blasx.dgetrf(x, overwrite_a=1)
    np.testing.assert_array_equal(x, blasx.dgetrf(a)[0])


def test_numbers_are_small_matrices():
    for x in (3.0, 3, [3], [[3]], np.float64(3), np.array(3.0)):
        lu, piv, info = blasx.dgetrf(x)
        assert lu.size == 1 and lu.ravel() == scipy.linalg.lapack.dgetrf(x)[0] and info == 0


def test_objects_that_say_what_they_are_as_arrays():
    class Speaks:
        def __array__(self, dtype=None, copy=None):
            return regular()

    np.testing.assert_array_equal(blasx.dgetrf(Speaks())[0], blasx.dgetrf(regular())[0])


@pytest.mark.parametrize("dtype, letter", [
    ("?", "s"), ("i1", "s"), ("u2", "s"), ("f2", "s"), ("f4", "s"), ("i4", "d"), ("i8", "d"),
    ("f8", "d"), ("g", "d"), ("c8", "c"), ("c16", "z"), ("G", "z"), (">f4", "s"), (">c16", "z")])
def test_generic_names_pick_as_scipy_does(dtype, letter):
    a = np.eye(3, dtype=dtype)
    lu = blasx.getrf(a)[0]
    assert lu.dtype == np.dtype({"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter])
    assert blasx.lapack.get_lapack_funcs("getrf", (a,)).typecode == letter
    assert blasx.getrf_batched(a[None])[0].dtype == lu.dtype


def test_the_widest_operand_decides():
    a, b = np.eye(3, dtype="f4"), np.ones(3, "c16")
    assert blasx.gesv(a, b)[2].dtype == np.complex128
    assert blasx.gemm(1.0, a, a.astype("f8")).dtype == np.float64
    for number in (1j, np.complex64(1j), np.complex128(1j), np.clongdouble(1j)):
        np.testing.assert_array_equal(blasx.gemm(number, a, a), 1j * a)
        assert blasx.gemm(number, a, a).dtype == np.complex64
    assert blasx.gemm(1.0, a.tolist(), a).dtype == np.float64
    assert blasx.nrm2(np.ones(4, "c8")) == 2 and blasx.iamax([1, 3, 2]) == 1


# What was copied


@pytest.mark.parametrize("array, copies", [
    (regular(), 0), (regular(order="C"), 1), (regular(8)[2:6, 1:5], 0),
    (regular(8)[::2, ::2], 1), (regular(dtype="f4"), 1), (regular(dtype=">f8"), 1)],
    ids=["columns", "rows", "view", "gaps", "cast", "byte-swapped"])
def test_trace_counts_the_copies_of_an_overwritten_operand(array, copies):
    with blasx.trace() as t:
        blasx.dgetrf(array, overwrite_a=1)
    (call,) = t.calls
    assert (call.name, call.device, call.transfers, call.syncs) == ("dgetrf", "cpu", 0, 0)
    assert call.copies >= copies and (call.copies == 0) == (copies == 0)
    assert call.bytes >= copies * 16 * 8 and call.ms > 0 and call.variant


def test_traces_nest_and_draw_a_table():
    with blasx.trace() as outer:
        blasx.dnrm2(np.ones(3))
        with blasx.trace() as inner:
            blasx.getrf(np.eye(3, dtype="c8"))
    assert [c.name for c in outer.calls] == ["dnrm2", "cgetrf"]
    assert [c.name for c in inner.calls] == ["cgetrf"] and "cgetrf" in str(inner)


def test_trace_records_a_refused_call_too():
    with blasx.trace() as t, pytest.raises(ValueError):
        blasx.dgesv(np.eye(3), np.ones(4))
    assert [c.name for c in t.calls] == ["dgesv"]
