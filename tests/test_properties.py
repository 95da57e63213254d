"""What holds of every routine, whatever it computes: over all Cases, letters, flags and layouts.

The table is testing/cases.py; a new routine is tested here as soon as it has its Case.
"""

import faulthandler
import warnings

import numpy as np
import pytest
import scipy.linalg.blas
import scipy.linalg.lapack
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import GUARD, IDS, LAYOUTS, ROUTINES, contents, host, laid, problem

import blasx
from blasx.batched import _cpu

every_routine = pytest.mark.parametrize("routine", ROUTINES, ids=IDS)
few = settings(max_examples=10)
draws = st.fixed_dictionaries({
    "sizes": st.tuples(*[st.integers(0, 7)] * 3), "variant": st.integers(0, 719),
    "seed": st.integers(0, 2**32 - 1), "batch": st.integers(0, 4), "nrhs": st.integers(0, 3),
    "kl": st.integers(0, 2), "ku": st.integers(0, 2)})
layouts = st.lists(st.sampled_from(LAYOUTS), min_size=3, max_size=3)


@pytest.fixture(autouse=True)
def quiet():
    """Routines without a GPU implementation say so; here that is no news. A hang ends the run."""
    faulthandler.dump_traceback_later(120, exit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", blasx.TransferWarning)
        yield
    faulthandler.cancel_dump_traceback_later()


def overwritten_by_name(call):
    """Arguments of a routine that overwrites without being asked: those it returns."""
    return {"copy": ["y"], "axpy": ["y"], "swap": ["x", "y"], "scal": ["x"], "rscal": ["x"],
            "lacpy": ["b"], "laset": ["a"]}.get(call.case.name, [])


@every_routine
@few
@given(draws, layouts)
def test_backward_stable_in_any_layout(routine, xp, draw, layout):
    """Residuals below the tester's thresholds, and operands that are only read left alone."""
    call = problem(routine, **draw)
    own = overwritten_by_name(call)
    call.lay(layout if not own else ["F"], xp)
    before = contents({k: x for k, x in call.frames.items() if k not in own})
    outputs = call.run()
    assert not call.failures(outputs)
    assert contents({k: call.frames[k] for k in before}) == before
    kinds = xp.ndarray if call.frames else np.ndarray  # rotmg takes numbers: it runs on the host
    assert all(isinstance(x, (kinds, np.generic, int, float, complex, str))
               for x in outputs)


def scipys(call):
    """SciPy's function; ours where SciPy has none."""
    return (getattr(scipy.linalg.blas, call.name, None)
            or getattr(scipy.linalg.lapack, call.name, None) or call.function)


def reused(call, function, arguments, flags):
    """Which outputs of `function` lie in which overwritten arguments."""
    result = function(**arguments, **flags)
    result = result if isinstance(result, tuple) else (result,)
    return {(i, k) for i, x in enumerate(result) for k in call.overwritable
            if isinstance(x, np.ndarray) and np.shares_memory(x, arguments[k])}


@every_routine
@few
@given(draws)
def test_overwriting_is_in_place_and_stays_inside(routine, xp, draw):
    """A column-major view is overwritten wherever SciPy overwrites a whole matrix; nothing around
    it is."""
    call = problem(routine, **draw)
    if not call.overwritable:
        return
    flags = {f"overwrite_{k}": 1 for k in call.overwritable}
    whole = {k: laid(x, "F")[0] if k in call.arrays else x for k, x in call.arguments.items()}
    nonempty = all(call.arguments[k].size for k in call.arrays)
    expected = reused(call, scipys(call), whole, flags) if nonempty else set()
    call.lay(["view"], xp)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", blasx.TransferWarning)
        outputs = call.run(**flags)
    assert not call.failures(outputs)
    for i, k in expected if not said else ():  # what ran on the CPU is not in place on the GPU
        assert xp.shares_memory(outputs[i], call.arguments[k]), (k, call.case.outputs[i])
    for k in call.arrays:
        if k in call.overwritable:
            call.arguments[k][...] = GUARD
            assert (host(call.frames[k]) == GUARD).all(), k


FACTORIZATIONS = [r for r in ROUTINES if r[0].group in ("lu", "chol", "qr", "syev", "svd", "geev",
                                                        "hesv", "mixed", "batched")]


@pytest.mark.parametrize("routine", FACTORIZATIONS,
                         ids=[case.typed[letter] for case, letter in FACTORIZATIONS])
@settings(max_examples=6)
@given(draws, st.sampled_from([np.nan, np.inf, -np.inf]), st.sampled_from(["F", "C"]))
def test_nan_and_inf_are_not_lost(routine, xp, draw, value, layout):
    """A NaN in what is read ends in the outputs or in info; neither it nor Inf hangs or crashes."""
    draw = {**draw, "sizes": [max(x, 1) for x in draw["sizes"]], "batch": 2, "nrhs": 1}
    call = problem(routine, **draw)
    k = next(k for k in call.arrays if call.arguments[k].dtype.kind in "fcV")
    x = call.arguments[k] = call.arguments[k].copy(order="F")
    places = np.argwhere(np.isfinite(x)) if x.ndim == 3 else np.array([[0] * x.ndim])
    if not len(places):
        return  # a triangle of one unit diagonal is not read at all
    x[tuple(places[0])] = value  # the first diagonal element: read by all, with any uplo
    call.lay([layout], xp)
    named = call.case.named([host(y) for y in call.run()])
    numbers = [y for y in named.values() if np.asarray(y).dtype.kind in "fcV"]
    lost = all(np.isfinite(y).all() for y in numbers) and not np.any(named.get("info", 0))
    lost = lost and named.get("rcond") != 0  # LAPACK's word for it where the norm was finite
    flags = call.p.flags
    reads = flags.get("diag") != "U" and not call.case.name.startswith(("orm", "org"))
    some = flags.get("range", "A") != "A"  # none of the eigenvalues may be among those asked for
    assert np.isinf(value) or some or not (lost and reads), named


BATCHED = [r for r in ROUTINES if r[0].group == "batched"]
ONE_SIDE = [r for r in BATCHED if r[0].name in ("gesv_batched", "posv_batched", "gels_batched")]


@pytest.mark.parametrize("routine", ONE_SIDE,
                         ids=[case.typed[letter] for case, letter in ONE_SIDE])
@pytest.mark.parametrize("n", [37, 64, 100])
def test_one_right_hand_side_of_larger_members(routine, n, xp):
    """On a GPU there are kernels of its own for it; members are as right as others, and alone."""
    for variant in range(len(routine[0].variants())):
        for m, layout in ((n, "F"), (n - 3, "C"), (n, "view")):
            call = problem(routine, (n, m if "M" in routine[0].columns else n, n), variant, nrhs=1)
            call.lay([layout], xp)
            whole = [host(x) for x in call.run()]
            assert not call.failures(whole)
            for i in range(call.options.batch):
                alone = call.run(**{k: call.arguments[k][i:i + 1] for k in call.layouts})
                for w, a in zip(whole, alone, strict=True):
                    assert w[i].tobytes() == host(a)[0].tobytes()


@pytest.mark.parametrize("routine", BATCHED,
                         ids=[case.typed[letter] for case, letter in BATCHED])
@settings(max_examples=30)
@given(draws, layouts, st.booleans())
def test_no_member_sees_its_neighbours(routine, xp, draw, layout, ties):
    """A batch gives bit for bit what its members give alone, in any order; also a batch of none."""
    call = problem(routine, **draw)
    if ties:  # entries of -1, 0, 1: equal pivots, singular members
        for k in call.arrays:
            x = call.arguments[k]
            if x.dtype.kind in "fcV":
                call.arguments[k] = np.sign(x.real).astype(x.dtype) * (abs(x) > 0.3)
    call.lay(layout, xp)
    whole = [host(x) for x in call.run()]
    arrays = {k: call.arguments[k] for k in call.layouts}
    assert all(len(x) == call.options.batch for x in whole)
    for i in range(call.options.batch):
        alone = call.run(**{k: x[i:i + 1] for k, x in arrays.items()})
        for w, a in zip(whole, alone, strict=True):
            assert w[i].tobytes() == host(a)[0].tobytes()
    order = np.random.default_rng(call.options.batch).permutation(call.options.batch)
    permuted = {k: laid(host(x)[order], call.layouts[k], xp)[0] for k, x in arrays.items()}
    for w, a in zip(whole, call.run(**permuted), strict=True):
        assert w[order].tobytes() == host(a).tobytes()


@pytest.mark.parametrize("routine", BATCHED,
                         ids=[case.typed[letter] for case, letter in BATCHED])
@settings(max_examples=4)
@given(draws, layouts)
def test_without_the_compiled_core(routine, draw, layout):
    """A pure-Python installation: LAPACK and BLAS member by member, called from Python."""
    core, _cpu._batch = _cpu._batch, None
    _cpu.forget()
    try:
        call = problem(routine, **draw)
        call.lay(layout, np)
        assert not call.failures(call.run())
    finally:
        _cpu._batch = core
        _cpu.forget()


# Of these the diagonal is that of a Hermitian matrix
HERMITIAN = {"hemm_batched": "a", "herk_batched": "c", "potrf_batched": "a", "posv_batched": "a",
             "syevd_batched": "a", "sygvd_batched": "ab"}


@pytest.mark.parametrize("case, letter", [
    (case, letter) for case, letter in BATCHED if case.name in HERMITIAN and letter in "cz"])
@settings(max_examples=6)
@given(draws, layouts)
def test_imaginary_parts_of_a_hermitian_diagonal_are_not_read(case, letter, xp, draw, layout):
    """The same bits whether they are zero or nan."""
    call = problem((case, letter), **draw)
    if "c" in call.parameters and "c" not in call.arguments:
        call.arguments |= {"c": call.run()[0], "beta": 2.0}
    found = []
    for imaginary in (0, np.nan):
        for k in HERMITIAN[case.name]:
            x = call.arguments[k] = host(call.arguments[k]).copy()
            j = np.arange(x.shape[1])
            x.imag[:, j, j] = imaginary
        call.lay(layout, xp)
        found.append([host(x).tobytes() for x in call.run()])
    assert found[0] == found[1]


@pytest.mark.parametrize("batch", [65535, 65536, 200_000])
def test_large_batches(xp, batch):
    a = xp.full((batch, 2, 2), 2.0)
    a[:, 0, 0] = a[:, 1, 1] = xp.arange(batch) + 3.0
    b = xp.stack([xp.arange(batch) + 5.0] * 2, 1)
    for x, info in (blasx.gesv_batched(a, b)[2:], blasx.posv_batched(a, b)[1:]):
        assert not info.any() and xp.allclose(x, 1)
