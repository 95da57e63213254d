"""Wrong calls of every routine are refused by name, before anything is touched; what SciPy takes
and casts is taken and cast. Threads, fork, and imports that are not wanted."""

import math
import os
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg.blas
import scipy.linalg.lapack
from problems import IDS, ROUTINES, contents, laid, problem

import blasx
from blasx._routine import typed
from testing.case import as_tuple
from testing.cases import find

every_routine = pytest.mark.parametrize("routine", ROUTINES, ids=IDS)
DOUBLE = [r for r in ROUTINES if r[1] in "dz"]
every_double = pytest.mark.parametrize("routine", DOUBLE,
                                       ids=[case.typed[letter] for case, letter in DOUBLE])
SIZES = (4, 4, 4)


def refused(call, change, argument=None, kinds=(TypeError, ValueError)):
    """Assert that `call` with arguments changed is refused in words, and leaves its operands."""
    arguments = {**call.arguments, **change}
    before = contents({k: x for k, x in call.arguments.items() if isinstance(x, np.ndarray)})
    with pytest.raises(kinds) as error:
        call.function(**arguments)
    message = str(error.value)
    assert message.startswith(f"{call.name}: "), message
    names = [argument] if argument else list(call.parameters)
    assert any(re.search(rf"\b{x}\b", message) for x in names), (argument, message)
    assert type(error.value) in kinds, error.value
    assert contents({k: call.arguments[k] for k in before}) == before


def inexact(call):
    return [k for k in call.arrays if call.arguments[k].dtype.kind in "fc"]


@every_routine
def test_what_is_no_array_of_numbers_is_refused(routine):
    call = problem(routine, SIZES)
    for k in call.arrays:
        for x in ("abc", object(), [[1, 2], [3]], np.array(["a"]), np.array([object()]),
                  np.array(["2020-01-01"], "M8[D]"), {"a": 1}, {1, 2}):
            refused(call, {k: x}, k, (TypeError,))
        if call.parameters[k].default is call.parameters[k].empty:
            refused(call, {k: None}, None, (TypeError,))


@every_routine
def test_complex_numbers_are_no_operand_of_a_real_name(routine):
    call = problem(routine, SIZES)
    if call.case.typed[routine[1]] == call.name and not call.p.is_complex:
        for k in inexact(call):
            refused(call, {k: call.arguments[k] + 1j}, k, (TypeError,))
        for k in ("alpha", "beta", "c", "s"):
            if isinstance(call.arguments.get(k), (int, float)):
                for x in (1j, np.complex64(1j), np.array(1j), np.array([1j], np.clongdouble)):
                    refused(call, {k: x}, k, (TypeError,))


@every_routine
def test_too_many_dimensions_are_refused(routine):
    call = problem(routine, SIZES)
    for k in call.arrays:
        x = call.arguments[k]
        refused(call, {k: np.stack([np.stack([x, x])] * 2)}, k)


@every_double
def test_shapes_are_refused_or_mean_what_they_mean_to_scipy(routine):
    """A row or column more or less: refused by name, or SciPy's answer."""
    call = problem(routine, SIZES, nrhs=4, batch=2)
    theirs = scipys(call.name)
    for k in call.arrays:
        x = call.arguments[k]
        for axis in range(x.ndim):
            for other in (x.take(range(x.shape[axis] - 1), axis),
                          np.concatenate([x, x.take([0], axis)], axis)):
                change = {k: np.asfortranarray(other)}
                try:
                    ours = call.function(**fresh({**call.arguments, **change}))
                except (TypeError, ValueError):
                    refused(call, change)
                    continue
                if theirs:
                    same(call, ours, theirs(**fresh({**call.arguments, **change})))


FLAGS = ("trans", "trans_a", "trans_b", "side", "lower", "diag", "unitdiag", "clean", "uplo",
         "norm", "range", "jobz", "precision", "variant", "itype", "compute_v", "compute_vl",
         "compute_vr", "compute_uv", "full_matrices")


@every_routine
def test_unknown_flags_are_refused(routine):
    call = problem(routine, SIZES)
    for k in FLAGS:
        if k in call.parameters and not (k == "diag" and k in call.arrays):
            for x in (7, -1, "Q", "", None, object(), 1.5, [1], np.zeros(2), np.zeros(0)):
                refused(call, {k: x}, k)


def test_an_array_of_one_truth_value_is_a_flag():
    """As SciPy's cho_factor of a stack returns `lower`; not one of two values."""
    c, b = np.diag([2.0, 4.0]) + [[0, 0], [1, 0]], np.ones(2)
    x, _ = blasx.dpotrs(c, b, lower=np.full((2, 3), True))
    np.testing.assert_array_equal(x, blasx.dpotrs(c, b, lower=1)[0])
    for lower in (np.array([True, False]), np.zeros(0, bool), np.ones(2), np.zeros(2, "V4")):
        with pytest.raises(ValueError, match="dpotrs: lower must be one of 0, 1"):
            blasx.dpotrs(c, b, lower=lower)


@every_routine
def test_flags_to_overwrite_are_numbers(routine):
    call = problem(routine, SIZES, nrhs=4)
    for k in call.overwritable:
        for x in ("", "N", None, object(), 1.5, [1], [], np.zeros(2), np.ones(1), np.zeros(0)):
            refused(call, {f"overwrite_{k}": x}, f"overwrite_{k}", (TypeError,))
            if call.parameters[k].default is None:
                refused(call, {k: None, f"overwrite_{k}": x}, f"overwrite_{k}", (TypeError,))
        for x in (2**31, np.int64(-2**40)):
            refused(call, {f"overwrite_{k}": x}, f"overwrite_{k}", (ValueError,))


@every_routine
def test_flags_to_overwrite_may_be_numpys_truth_values(routine):
    call = problem(routine, SIZES)
    for f in (fresh, lambda arguments: {k: laid(x, "view")[0] if k in call.arrays else x
                                        for k, x in arguments.items()}):
        one, other = (call.function(**f(call.arguments), **{f"overwrite_{k}": x
                                                            for k in call.overwritable})
                      for x in (np.True_, 1))
        same(call, one, other)


SCALARS = ("alpha", "beta", "n", "k", "m", "kl", "ku", "incx", "incy", "offx", "offy", "lwork")


@every_routine
def test_scalars_that_are_no_numbers_are_refused(routine):
    call = problem(routine, SIZES)
    for k in SCALARS:
        if k in call.parameters and k not in call.arrays:
            for x in ("x", object(), {}, "7", np.ones(2), np.zeros(0)):
                refused(call, {k: x}, k)
            if k in ("alpha", "beta", "lwork"):
                refused(call, {k: 10**400}, k)
            if k not in ("alpha", "beta"):
                refused(call, {k: 1.5}, k)


@every_routine
def test_vectors_stay_inside_their_arrays(routine):
    call = problem(routine, SIZES)
    for k, wrong in (("n", [10**6, 2**31, 2**63, 10**30]), ("incx", [0, 10**6, 2**40]),
                     ("incy", [0, 2**40]), ("offx", [-1, 10**6, 2**40]), ("offy", [-1, 10**6]),
                     ("kl", [-1, 2**40]), ("ku", [-1, 2**40]), ("k", [-1, 2**40]),
                     ("m", [-1, 2**40])):
        if k not in call.parameters or call.case.name == "laset":
            continue
        for x in wrong:
            refused(call, {k: x})


@every_routine
def test_what_is_overwritten_is_writeable_and_apart(routine):
    call = problem(routine, SIZES, nrhs=4)
    for k in call.overwritable:
        if call.parameters[f"overwrite_{k}"].default == 1:  # ger's x and y, never written
            continue
        x = call.arguments[k].copy(order="F")
        x.flags.writeable = False
        refused(call, {k: x, f"overwrite_{k}": 1}, k, (ValueError,))
        for strides in (0,) * x.ndim, (x.itemsize,) * x.ndim:
            if x.ndim > 1 or not any(strides):
                y = np.lib.stride_tricks.as_strided(call.arguments[k].copy(), x.shape, strides)
                refused(call, {k: y, f"overwrite_{k}": 1}, k, (ValueError,))
        for other in inexact(call):
            if other != k:
                refused(overlapped(routine, k, other), {f"overwrite_{k}": 1}, None, (ValueError,))


def overlapped(routine, k, other):
    """The call with the arrays `k` and `other` beginning at the same place in memory."""
    call = problem(routine, SIZES, nrhs=4)
    x, y = call.arguments[k], call.arguments[other]
    whole = np.zeros(max(x.size, y.size), x.dtype)
    for name, z in ((k, x), (other, y)):
        call.arguments[name] = whole[:z.size].reshape(z.shape, order="F")
    call.arguments[k][...] = x
    return call


@every_routine
def test_sizes_past_32_bits_are_refused_before_anything_is_allocated(routine):
    if routine[0].group == "batched":
        return  # counted in 64 bits
    call = problem(routine, SIZES)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, hard))
    try:
        for k in call.arrays:
            x = call.arguments[k]
            for axis in range(x.ndim):
                shape = [2**31 + 8 if i == axis else s for i, s in enumerate(x.shape)]
                huge = np.lib.stride_tricks.as_strided(np.ones(1, x.dtype), shape, [0] * x.ndim)
                refused(call, {k: huge}, None, (ValueError,))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_distances_past_32_bits_are_copied(tmp_path):
    """Of a sparse file, of which next to nothing is written."""
    file = np.memmap(tmp_path / "far", "f4", "w+", shape=2**31 + 16)
    far = np.lib.stride_tricks.as_strided(file, (2, 2), (4, 2**33))
    near, b = np.array([[1, 2], [3, 4]], "f4"), np.ones(2, "f4")
    for f in (blasx.sgetrf, blasx.sgeqrf, lambda a, **how: blasx.sgesv(a, b, **how),
              lambda a, **how: blasx.ssytrs(a, [1, 2], b),
              lambda a, **how: blasx.sormqr("L", "N", a, b, near),
              lambda a, **how: blasx.sgemv(1, a, b, 0, np.zeros(4, "f4")[::2], overwrite_y=1)):
        far[...] = near
        for x, y in zip(as_tuple(f(far, overwrite_a=1)), as_tuple(f(near))):
            np.testing.assert_array_equal(x, y)
    y = far[0]
    assert blasx.sgemv(1, near, b, 0, y, overwrite_y=1) is y and far[0].tolist() == [3, 7]


# What SciPy takes


def scipys(name):
    return getattr(scipy.linalg.blas, name, None) or getattr(scipy.linalg.lapack, name, None)


def fresh(arguments):
    return {k: x.copy(order="F") if isinstance(x, np.ndarray) else x for k, x in arguments.items()}


def same(call, ours, theirs):
    """Equal in number, type, shape and to rounding, but for the workspace."""
    ours, theirs = call.case.named(as_tuple(ours)), call.case.named(as_tuple(theirs))
    assert list(ours) == list(theirs)
    for name in set(ours) - {"work"}:
        x, y = np.asarray(ours[name]), np.asarray(theirs[name])
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype.kind in "fc":
            size = max(np.max(abs(y), initial=0, where=np.isfinite(y)), 1)
            close = 200 * np.finfo(x.dtype).eps
            np.testing.assert_allclose(x, y, rtol=close, atol=close * size)
        else:
            np.testing.assert_array_equal(x, y)


SCIPYS = [r for r in ROUTINES if scipys(r[0].typed[r[1]])]


@pytest.mark.parametrize("routine", SCIPYS, ids=[c.typed[x] for c, x in SCIPYS])
def test_results_are_scipys(routine):
    """All flags; the same call gives what SciPy gives, its types and shapes included."""
    for variant in range(len(routine[0].variants())):
        for sizes in ((5, 5, 5), (6, 4, 3)):
            call = problem(routine, sizes, variant)
            if call.case.name == "spr" and call.p.is_complex and call.arguments["incx"] < 0:
                continue  # SciPy's cspr and zspr take the elements in the wrong order
            same(call, call.function(**fresh(call.arguments)),
                 scipys(call.name)(**fresh(call.arguments)))


def as_lists(x):
    return x.tolist()


def byte_swapped(x):
    return x.astype(x.dtype.newbyteorder(">"))


def other_precision(x):
    return x.astype({"f": "d", "d": "f", "F": "D", "D": "F"}.get(x.dtype.char, "i8"))


def whole_numbers(x):
    return np.nan_to_num(8 * x.real).astype(int) if x.dtype.kind in "fc" else x


def half_precision(x):
    return x.real.astype("f2") if x.dtype.kind in "fc" else x.astype("i2")


def by_rows(x):
    return np.ascontiguousarray(x)


def with_gaps(x):
    return laid(x, "steps")[0]


def backwards(x):
    return laid(x, "reversed")[0]


@every_routine
@pytest.mark.parametrize("cast", [as_lists, byte_swapped, other_precision, whole_numbers,
                                  half_precision, by_rows, with_gaps, backwards],
                         ids=lambda f: f.__name__)
def test_what_is_cast_gives_what_scipy_gives(routine, cast):
    """As if the caller had cast it; SciPy's own answer where it has the name."""
    call = problem(routine, SIZES)
    if cast is byte_swapped and routine[1] == "b":
        pytest.skip("NumPy has no byte-swapped bfloat16")
    own = {"axpy": "y", "copy": "y", "swap": "xy", "scal": "x", "rscal": "x", "lacpy": "b",
           "laset": "a"}.get(call.case.name, "")
    changed = {k: cast(call.arguments[k]) for k in call.arrays if k not in own}
    if call.case.name in ("getrs", "getri", "gbtrs", "laswp", "sytrs", "hetrs", "getrs_batched"):
        changed = {k: x for k, x in changed.items() if call.arguments[k].dtype.kind in "fc"}
    if routine[1] == "i" and cast in (as_lists, other_precision, half_precision):
        with pytest.raises(TypeError, match="igemm: [ab] must be an array of int8"):
            call.function(**{**fresh(call.arguments), **changed})
        return
    ready = {k: np.asarray(x).astype(call.arguments[k].dtype) for k, x in changed.items()}
    ours = call.function(**{**fresh(call.arguments), **changed})
    same(call, ours, call.function(**{**fresh(call.arguments), **ready}))
    if scipys(call.name):
        same(call, ours, scipys(call.name)(**{**fresh(call.arguments), **changed}))


def beside_a_byte(x):
    """`x` a byte past where numbers may lie; a matrix with a row more to each column."""
    shape = (x.shape[0] + 1, *x.shape[1:]) if x.ndim == 2 else x.shape
    y = np.zeros(math.prod(shape) * x.itemsize + 1, "u1")[1:].view(x.dtype)
    y = y.reshape(shape, order="F" if x.flags.f_contiguous else "C")[:len(x)]
    y[...] = x
    return y


@every_routine
def test_what_is_not_aligned_is_as_good(routine):
    call = problem(routine, (20, 20, 20))
    for flags in ({}, {f"overwrite_{k}": 1 for k in call.overwritable}):
        odd = {k: beside_a_byte(call.arguments[k]) for k in call.arrays}
        same(call, call.function(**{**call.arguments, **odd}, **flags),
             call.function(**fresh(call.arguments), **flags))


@pytest.mark.parametrize("name", ["dgetrf", "getrf", "dgemm", "dnrm2", "zheevd", "sgetrf_batched"])
def test_calls_that_no_signature_allows(name):
    f = getattr(blasx, name)
    for arguments, keywords in (((), {}), ((np.eye(2),) * 30, {}),
                                ((np.eye(2),), {"nosuch": 1}), ((np.eye(2),), {"a": 1, "x": 1})):
        with pytest.raises(TypeError, match=f"^{name}: "):
            f(*arguments, **keywords)


# Threads, processes, imports


def sample(name, n=24):
    case, letter = find(name)
    return problem((case, letter), (n, n, n), batch=8)


MANY = ["dgemm", "sgesv", "zgetrf", "dpotrf", "dgeqrf", "dsyevd", "cgesdd", "dgetrf_batched",
        "zposv_batched", "ddot", "dtrsm"]


@pytest.mark.parametrize("limit, there", [(5000, 4000), (0, 1500)])
def test_an_allocation_that_fails_says_how_much_is_missing(monkeypatch, limit, there):
    """Of whichever routine asked for it; the error is CuPy's own."""
    class OutOfMemoryError(MemoryError):  # as CuPy words it
        def __init__(self, size, total, limit):
            super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: "
                             f"{total:,} bytes" + f", limit set to: {limit:,} bytes" * (limit > 0)
                             + ").")

    def inner(me, a):
        raise OutOfMemoryError(12345, 1000, limit)

    def outer(me, a):
        return dinner(a)

    runtime = SimpleNamespace(memGetInfo=lambda: (1500, 10**6))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    (_, dinner), (_, douter) = (typed(f, "d") for f in (inner, outer))
    with pytest.raises(OutOfMemoryError) as error:
        douter(np.ones(3))
    assert str(error.value) == (
        f"dinner: 12345 bytes of the GPU's memory are needed and {there} are there: "
        f"{12345 - there} bytes are missing")


def test_eight_threads_get_what_one_gets():
    calls = [sample(name) for name in MANY]
    expected = [[np.asarray(x).tobytes() for x in call.run()] for call in calls]

    def work(thread):
        for i in range(50):
            k = (i + thread) % len(calls)
            assert [np.asarray(x).tobytes() for x in calls[k].run()] == expected[k], MANY[k]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def python(code, **environment):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                         env={**os.environ, **environment})
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_child_computes_after_fork():
    """Threads of the parent's pool do not exist in the child."""
    out = python("""
import os, numpy as np, blasx
a = np.random.default_rng(0).random((5000, 8, 8))
before = blasx.getrf_batched(a)[0], blasx.dgetrf(a[0])[0]
child = os.fork()
if not child:
    after = blasx.getrf_batched(a)[0], blasx.dgetrf(a[0])[0]
    os._exit(0 if all((x == y).all() for x, y in zip(before, after)) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert out.strip() == "0"


def test_importing_and_computing_on_the_cpu_leaves_cupy_alone():
    out = python("import sys, numpy as np, blasx\n"
                 "blasx.dgetrf(np.eye(3)); blasx.gesv_batched(np.eye(3)[None], np.ones((1, 3)))\n"
                 "blasx.linalg.solve(np.eye(3), np.ones(3))\n"
                 "print([m for m in sys.modules if m.split('.')[0] in ('cupy', 'torch', 'jax')])")
    assert out.strip() == "[]"


def test_show_config():
    assert "SciPy" in python("import blasx; blasx.show_config()")
