"""Every name of the public API: it is there, and is called as SciPy's of the same name."""

import ast
import inspect
import pickle
import re

import numpy as np
import pytest
import scipy.linalg.blas
import scipy.linalg.lapack

import blasx
from testing.cases import CASES, TYPED

# Name without letter: its letters; or the typed names, where they are not letter + name.
BLAS = """
rotg:sdcz rotm:sd rotmg:sd swap:sdcz scal:sdcz copy:sdcz axpy:sdcz
srot drot csrot zdrot csscal zdscal sdot ddot cdotu cdotc zdotu zdotc
snrm2 dnrm2 scnrm2 dznrm2 sasum dasum scasum dzasum isamax idamax icamax izamax
gemv:sdcz gbmv:sdcz symv:sd hemv:cz sbmv:sd hbmv:cz spmv:sdcz hpmv:cz
ger:sd geru:cz gerc:cz syr:sdcz her:cz syr2:sd her2:cz spr:sdcz hpr:cz spr2:sd hpr2:cz
trmv:sdcz trsv:sdcz tbmv:sdcz tbsv:sdcz tpmv:sdcz tpsv:sdcz
gemm:sdczhb igemm symm:sdcz hemm:cz syrk:sdcz herk:cz syr2k:sdcz her2k:cz trmm:sdcz trsm:sdcz
"""
LAPACK = """
getrf:sdcz getrs:sdcz getri:sdcz gesv:sdcz gecon:sdcz laswp:sdcz gbtrf:sdcz gbtrs:sdcz gbsv:sdcz
potrf:sdcz potrs:sdcz potri:sdcz posv:sdcz pocon:sdcz trtri:sdcz trtrs:sdcz lauum:sdcz
sytrf:sdcz hetrf:cz sytrs:sdcz hetrs:cz sysv:sdcz hesv:cz
geqrf:sdcz orgqr:sd ungqr:cz ormqr:sd unmqr:cz gelqf:sdcz orglq:sd unglq:cz ormlq:sd unmlq:cz
geqp3:sdcz gels:sdcz gelsd:sdcz
syevd:sd heevd:cz syevr:sd heevr:cz syevx:sd heevx:cz sygvd:sd hegvd:cz sygvx:sd hegvx:cz
geev:sdcz gesvd:sdcz gesdd:sdcz lange:sdcz lacpy:sdcz laset:sdcz dsgesv zcgesv dsposv zcposv
dsgels zcgels dsgesv_rbt
"""
BATCHED = """
getrf_batched:sdcz getrs_batched:sdcz gesv_batched:sdcz
getri_batched:sdcz getrf_nopiv_batched:sdcz
potrf_batched:sdcz potrs_batched:sdcz posv_batched:sdcz potri_batched:sdcz
geqrf_batched:sdcz orgqr_batched:sd ungqr_batched:cz ormqr_batched:sd unmqr_batched:cz
gels_batched:sdcz gesvd_batched:sdcz syevd_batched:sd heevd_batched:cz
sygvd_batched:sd hegvd_batched:cz
gemm_batched:sdczhb gemv_batched:sdcz symm_batched:sdcz hemm_batched:cz syrk_batched:sdcz
herk_batched:cz trmm_batched:sdcz trsm_batched:sdcz trsv_batched:sdcz
getrf_vbatched:sdcz getrs_vbatched:sdcz gesv_vbatched:sdcz
potrf_vbatched:sdcz potrs_vbatched:sdcz posv_vbatched:sdcz geqrf_vbatched:sdcz
ormqr_vbatched:sd unmqr_vbatched:cz gels_vbatched:sdcz syevd_vbatched:sd heevd_vbatched:cz
gemm_vbatched:sdcz trsm_vbatched:sdcz
"""
WITHOUT_TESTER = "det_batched:sdcz slogdet_batched:sdcz"

# What SciPy has no name for, and the batched names: (required, {optional: default}).
BY_HAND = {
    "gelqf": (["a"], {"lwork": None, "overwrite_a": 0}),
    "orglq": (["a", "tau"], {"lwork": None, "overwrite_a": 0}),
    "ormlq": (["side", "trans", "a", "tau", "c"], {"lwork": None, "overwrite_c": 0}),
    "lacpy": (["a"], {"uplo": "A", "b": None}),
    "laset": (["m", "n", "alpha", "beta"], {"uplo": "A", "a": None}),
    "dsgesv": (["a", "b"], {"overwrite_a": 0}),
    "dsgesv_rbt": (["a", "b"], {"overwrite_a": 0}),
    "dsposv": (["a", "b"], {"lower": 0, "overwrite_a": 0}),
    "dsgels": (["a", "b"], {"trans": "N"}),
    "getrf_batched": (["a"], {"overwrite_a": 0}),
    "getrs_batched": (["lu", "piv", "b"], {"trans": 0, "overwrite_b": 0}),
    "gesv_batched": (["a", "b"], {"overwrite_a": 0, "overwrite_b": 0, "compute_lu": 1}),
    "potrf_batched": (["a"], {"lower": 0, "overwrite_a": 0}),
    "potrs_batched": (["c", "b"], {"lower": 0, "overwrite_b": 0}),
    "syevd_batched": (["a"], {"compute_v": 1, "lower": 0, "overwrite_a": 0}),
    "heevd_batched": (["a"], {"compute_v": 1, "lower": 0, "overwrite_a": 0}),
    "sygvd_batched": (["a", "b"], {"itype": 1, "jobz": "V", "uplo": "L", "overwrite_a": 0,
                                   "overwrite_b": 0}),
    "hegvd_batched": (["a", "b"], {"itype": 1, "jobz": "V", "uplo": "L", "overwrite_a": 0,
                                   "overwrite_b": 0}),
    "posv_batched": (["a", "b"], {"lower": 0, "overwrite_a": 0, "overwrite_b": 0}),
    "getri_batched": (["lu", "piv"], {"overwrite_lu": 0}),
    "getrf_nopiv_batched": (["a"], {"overwrite_a": 0}),
    "potri_batched": (["c"], {"lower": 0, "overwrite_c": 0}),
    "geqrf_batched": (["a"], {"overwrite_a": 0}),
    "orgqr_batched": (["a", "tau"], {"overwrite_a": 0}),
    "ormqr_batched": (["side", "trans", "a", "tau", "c"], {"overwrite_c": 0}),
    "gels_batched": (["a", "b"], {"trans": "N", "overwrite_a": 0, "overwrite_b": 0}),
    "gesvd_batched": (["a"], {"compute_uv": 1, "full_matrices": 1, "overwrite_a": 0}),
    "gemm": (["alpha", "a", "b"], {"beta": 0, "c": None, "trans_a": 0, "trans_b": 0,
                                   "overwrite_c": 0}),
    "igemm": (["a", "b"], {"trans_a": 0, "trans_b": 0}),
    "gemm_batched": (["alpha", "a", "b"], {"beta": 0, "c": None, "trans_a": 0, "trans_b": 0,
                                           "overwrite_c": 0}),
    "gemv_batched": (["alpha", "a", "x"], {"beta": 0, "y": None, "trans": 0, "overwrite_y": 0}),
    "symm_batched": (["alpha", "a", "b"], {"beta": 0, "c": None, "side": 0, "lower": 0,
                                           "overwrite_c": 0}),
    "syrk_batched": (["alpha", "a"], {"beta": 0, "c": None, "trans": 0, "lower": 0,
                                      "overwrite_c": 0}),
    "trmm_batched": (["alpha", "a", "b"], {"side": 0, "lower": 0, "trans_a": 0, "diag": 0,
                                           "overwrite_b": 0}),
    "trsv_batched": (["a", "x"], {"lower": 0, "trans": 0, "diag": 0, "overwrite_x": 0}),
    "det_batched": (["a"], {"overwrite_a": 0}),
    "slogdet_batched": (["a"], {"overwrite_a": 0}),
    "getrf_vbatched": (["a"], {"overwrite_a": 0}),
    "getrs_vbatched": (["lu", "piv", "b"], {"trans": 0, "overwrite_b": 0}),
    "gesv_vbatched": (["a", "b"], {"overwrite_a": 0, "overwrite_b": 0}),
    "potrf_vbatched": (["a"], {"lower": 0, "overwrite_a": 0}),
    "potrs_vbatched": (["c", "b"], {"lower": 0, "overwrite_b": 0}),
    "posv_vbatched": (["a", "b"], {"lower": 0, "overwrite_a": 0, "overwrite_b": 0}),
    "geqrf_vbatched": (["a"], {"overwrite_a": 0}),
    "ormqr_vbatched": (["side", "trans", "a", "tau", "c"], {"overwrite_c": 0}),
    "unmqr_vbatched": (["side", "trans", "a", "tau", "c"], {"overwrite_c": 0}),
    "gels_vbatched": (["a", "b"], {"trans": "N", "overwrite_a": 0, "overwrite_b": 0}),
    "syevd_vbatched": (["a"], {"compute_v": 1, "lower": 0, "overwrite_a": 0}),
    "heevd_vbatched": (["a"], {"compute_v": 1, "lower": 0, "overwrite_a": 0}),
    "gemm_vbatched": (["alpha", "a", "b"], {"beta": 0, "c": None, "trans_a": 0, "trans_b": 0,
                                            "overwrite_c": 0}),
    "trsm_vbatched": (["alpha", "a", "b"], {"side": 0, "lower": 0, "trans_a": 0, "diag": 0,
                                            "overwrite_b": 0}),
}
BY_HAND |= {second: BY_HAND[first] for first, second in (
    ("trmm_batched", "trsm_batched"), ("symm_batched", "hemm_batched"),
    ("syrk_batched", "herk_batched"), ("orgqr_batched", "ungqr_batched"),
    ("ormqr_batched", "unmqr_batched"))}
HOST = {"device": None, "memory": None}
KEYWORDS = {  # of blasx alone
    "igemm": {"scale": None, "bias": None, "activation": None},
    "getrf": {"mode": "auto"} | HOST, "potrf": {"mode": "auto"} | HOST, "geqrf": {"mode": "auto"},
    "gels": {"mode": "auto"}, "gesv": {"factor": None, "refine": "ir"} | HOST, "posv": HOST,
    "gemm": {"bias": None, "activation": None, "slope_at": None, "precision": "fp32",
             "variant": "auto"} | HOST}
SAME_AS = {"cunglq": "orglq", "zunglq": "orglq", "cunmlq": "ormlq", "zunmlq": "ormlq",
           "zcgesv": "dsgesv", "zcposv": "dsposv", "zcgels": "dsgels"}


def typed_names(table):
    for word in table.split():
        base, colon, letters = word.partition(":")
        yield from [letter + base for letter in letters] if colon else [word]


def generic_names(table):
    return [word.partition(":")[0] for word in table.split() if ":" in word]


TESTED = [*typed_names(BLAS), *typed_names(LAPACK), *typed_names(BATCHED)]
NAMES = [*TESTED, *typed_names(WITHOUT_TESTER)]
GENERIC = [*map(generic_names, (BLAS, LAPACK, BATCHED))]
GENERIC = sum(GENERIC, ["rot", "dot", "dotu", "dotc", "nrm2", "asum", "iamax"])


def scipys(name):
    return getattr(scipy.linalg.blas, name, None) or getattr(scipy.linalg.lapack, name, None)


LWORK = [name + "_lwork" for name in typed_names(LAPACK) if scipys(name + "_lwork")]


@pytest.mark.parametrize("name", NAMES)
def test_every_typed_name_is_public(name):
    f = getattr(blasx, name)
    assert f.__name__ == f.__qualname__ == name and name in dir(blasx)
    home = blasx.blas if name in typed_names(BLAS) else blasx.lapack
    assert name.endswith("batched") or getattr(home, name) is f


@pytest.mark.parametrize("name", GENERIC)
def test_every_generic_name_is_public(name):
    typed = next(x for x in (f"d{name}", f"z{name}", "idamax") if hasattr(blasx, x))
    ours = inspect.signature(getattr(blasx, name))
    assert list(ours.parameters) == list(inspect.signature(getattr(blasx, typed)).parameters)


def test_the_lists_lack_no_letter_that_scipy_has():
    for table in (BLAS, LAPACK):
        for base in generic_names(table):
            there = {x + base for x in "sdcz" if scipys(x + base)}
            assert there <= set(NAMES), base


def described(f):
    """Required and optional parameters of an f2py function, from its docstring's first line; the
    defaults that are constants from below."""
    call = re.search(r"\((.*)\)", f.__doc__.splitlines()[0])[1]
    required, _, optional = call.partition("[")
    required = [x for x in required.split(",") if x]
    defaults = dict.fromkeys(x for x in optional.rstrip("]").split(",") if x)
    for name, kind, text in re.findall(r"^(\w+) : (.*), optional\n\s+Default: (.*)$", f.__doc__,
                                       re.M):
        defaults[name] = None if "rank" in kind else constant(text)
    return required, defaults


def constant(text):
    """The value of a default that is a number or a character, None for an expression."""
    text = re.sub(r"^\((-?[\d.]+),\s*-?0?\.?0*\)$", r"\1", text.strip())  # (1.0, 0.0)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value.decode() if isinstance(value, bytes) else value


def ours_of(f):
    required, optional = [], {}
    own = KEYWORDS.get(f.__name__, KEYWORDS.get(f.__name__[1:], {}))
    for x in inspect.signature(f).parameters.values():
        assert (x.kind is x.KEYWORD_ONLY) is (x.name in own)
        assert x.kind in (x.POSITIONAL_OR_KEYWORD, x.KEYWORD_ONLY)
        if x.kind is x.KEYWORD_ONLY:
            assert x.default == own[x.name]
        elif x.default is x.empty:
            required.append(x.name)
        else:
            optional[x.name] = x.default
    return required, optional


def own(name):
    return getattr(blasx.blas if scipys(name) is getattr(scipy.linalg.blas, name, None)
                   else blasx.lapack, name)


@pytest.mark.parametrize("name", [x for x in [*NAMES, *LWORK] if scipys(x)])
def test_signatures_are_scipys(name):
    """A workspace's size that SciPy wants to be told may be left out."""
    (required, optional), (needed, defaults) = ours_of(own(name)), described(scipys(name))
    free = [x for x in needed if x.startswith("lwork") and x in optional]
    assert required + free == needed and list(optional) == free + list(defaults)
    assert all(optional[x] is None for x in free)
    for x, value in defaults.items():
        if value is not None:
            assert optional[x] == value, x


@pytest.mark.parametrize("name", [x for x in NAMES if not scipys(x)])
def test_signatures_of_names_that_scipy_lacks(name):
    f = getattr(blasx, name)
    base = SAME_AS.get(name, name if name in BY_HAND else name[1:])
    assert ours_of(f) == BY_HAND[base] and list(ours_of(f)[1]) == list(BY_HAND[base][1])


def refers(doc):
    """The routine whose docstring says the rest: 'As `syrk`, with ...'."""
    found = re.search(r"\b[Aa]s (?:of |those of )?`?(\w+)`?", doc)
    return getattr(blasx, found[1], None) if found else None


@pytest.mark.parametrize("name", [*NAMES, *GENERIC])
def test_every_routine_says_what_it_takes_and_returns(name):
    doc = getattr(blasx, name).__doc__
    assert doc and len(doc.strip().splitlines()[0]) <= 96
    texts = [doc]
    while refers(texts[-1]) and len(texts) < 4:
        texts.append(refers(texts[-1]).__doc__)
    whole = "\n".join(texts)
    assert "Parameters" in whole or name in ("rotg", "srotg", "drotg", "crotg", "zrotg")
    assert "Returns" in whole


@pytest.mark.parametrize("name", [x for x in NAMES if hasattr(blasx, x)])
def test_docstrings_name_the_parameters_there_are(name):
    f = getattr(blasx, name)
    head = re.search(r"Parameters\n\s+-+\n(.*?)(?:\n\s*\n\s+(?:Returns|Notes)|\Z)", f.__doc__, re.S)
    if head:
        named = re.findall(r"^    (\w[\w, ]*?)(?: :|$|;)", head[1], re.M)
        named = [x.strip() for words in named for x in words.split(",")]
        assert set(named) <= set(inspect.signature(f).parameters) | {"lrwork", "size_rwork"}


def test_every_typed_name_has_a_case_and_back():
    assert sorted(TESTED) == sorted(TYPED)
    assert all(case.typed for case in CASES)


@pytest.mark.parametrize("module, scipys, own", [
    (blasx.blas, scipy.linalg.blas, BLAS), (blasx.lapack, scipy.linalg.lapack, LAPACK)])
def test_no_import_of_scipys_breaks(module, scipys, own):
    """Names that blasx does not implement are SciPy's own, the private ones excepted."""
    ours = set(typed_names(own))
    for name in dir(scipys):
        if not name.startswith("__") and hasattr(scipys, name):
            assert hasattr(module, name) and name in dir(module), name
            if callable(getattr(scipys, name)) and getattr(module, name) is getattr(scipys, name):
                assert name not in ours
    with pytest.raises(AttributeError, match="dnosuch"):
        module.dnosuch


def test_a_name_that_blasx_lacks_works():
    from blasx.lapack import dgttrf

    assert dgttrf is scipy.linalg.lapack.dgttrf


@pytest.mark.parametrize("find, names", [
    ("get_blas_funcs", ["gemm", "nrm2", "dot", "ger", "scal", "axpy"]),
    ("get_lapack_funcs", ["getrf", "gesv", "potrf", "gesdd", "lange", "geqrf", "gttrf"])])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "f2"])
def test_get_funcs_finds_what_scipys_finds(find, names, dtype):
    a = np.ones((2, 2), dtype)
    module, scipys = ((blasx.blas, scipy.linalg.blas) if "blas" in find
                      else (blasx.lapack, scipy.linalg.lapack))
    ours, theirs = getattr(module, find)(names, (a,)), getattr(scipys, find)(names, (a,))
    for f, g in zip(ours, theirs, strict=True):
        assert (f.typecode, f.dtype, f.int_dtype) == (g.typecode, g.dtype, g.int_dtype)
    assert getattr(module, find)(names[0], dtype=dtype).typecode == ours[0].typecode
    with pytest.raises(ValueError, match="nosuch"):
        getattr(module, find)("nosuch")


def test_a_routine_as_an_attribute_of_a_class_is_no_method():
    """As SciPy's are not; and it is pickled by its name."""
    class Solver:
        solve, product = blasx.dgesv, staticmethod(blasx.dgemm)

    assert Solver().solve is Solver.solve
    assert Solver().solve(np.eye(2), np.ones(2))[-1] == 0
    assert Solver().product(1.0, np.eye(2), np.eye(2)).trace() == 2
    for routine in (blasx.dgesv, blasx.heevd, blasx.blas.dgemm):
        assert pickle.loads(pickle.dumps(routine)) is routine


def test_a_modules_documentation_names_its_routines():
    for module in (blasx.blas, blasx.lapack):
        names = set(module.__doc__.split())
        assert not [x for x in dir(module) if x[0] != "_" and x not in names]
