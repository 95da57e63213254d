"""The products of a block and the batched BLAS kernels without a GPU."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blasx import _sources, _tuned
from blasx._types import TYPES
from tests.sim.process import under_sanitizers

every_letter = pytest.mark.parametrize("letter", "sdcz")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("blas")


@every_letter
def test_products_of_a_block(folder, letter):
    """multiply.cuh under the sanitizers (tests/sim/run_multiply.py)."""
    from tests.sim import run_multiply
    from tests.sim.build import SHIM, put_library
    warps = 2
    file, library = folder / f"multiply_{letter}.cpp", folder / f"multiply_{letter}.so"
    file.write_text(f'#include "{SHIM.name}"\n#define BLASX\n#define SCALAR {TYPES[letter].cpp}\n'
                    f"constexpr int WARPS = {warps}, RAGGED = 0;\n{_sources.source('multiply.cuh')}"
                    f"{run_multiply.KERNEL}")
    put_library(library, file)
    run = under_sanitizers("run_multiply", library, letter, warps)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


SMALL = ("gemm_thread", "gemm_warp", "gemv_batched", "other_triangle")
SPLIT = ("split_lines", "crt_split", "crt_join")
BLOCKS = ("gemm_block", "gemm_split", "symm_block", "syrk_block", "syrk_split")


def rows(kernels):
    return [(kernel, letter) for kernel in kernels for letter in _tuned.table(90)[kernel]]


def constants(kernel, letter, place):
    return {k: v for k, v in _tuned.table(90)[kernel][letter][place].items() if k.isupper()}


def sanitize(folder, kernel, letter, values, plant=None):
    from tests.sim import build, run_blas
    library = build.build(folder, kernel, letter, values, plant, run_blas.ENTRY)
    run = under_sanitizers("run_blas", library, kernel, letter, json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize(("kernel", "letter"), rows(SMALL))
def test_products_of_a_batch(folder, kernel, letter):
    """The kernels under the sanitizers and four schedules (tests/sim/run_blas.py)."""
    for place in (0, 1 if kernel == "other_triangle" else 2) if letter in "sd" else (0,):
        sanitize(folder, kernel, letter, constants(kernel, letter, place))


@pytest.mark.parametrize(("kernel", "letter", "tile", "slices", "teams"), [
    ("gemm_block", "s", (32, 32, 16, 32), (8, 2, 0), 1),
    ("gemm_block", "d", (32, 32, 32, 32), (24, 1, 1), 2),
    ("gemm_split", "s", (32, 32, 16, 32), (8, 3, 0), 1),
    ("gemm_split", "s", (32, 32, 32, 16), (16, 2, 1), 1),
    ("gemm_split", "c", (32, 24, 16, 24), (8, 3, 0), 1),
    ("gemm_block", "c", (16, 16, 16, 16), (8, 2, 0), 1),
    ("gemm_block", "z", (16, 32, 16, 16), (8, 3, 0), 1),
    ("gemm_block", "h", (32, 32, 16, 32), (16, 2, 0), 1),
    ("gemm_block", "b", (16, 32, 16, 32), (32, 1, 1), 2),
    ("symm_block", "s", (48, 32, 16, 32), (48, 1, 1), 1),
    ("symm_block", "c", (16, 16, 8, 16), (16, 3, 0), 1),
    ("symm_block", "d", (32, 16, 16, 16), (32, 2, 0), 1),
    ("syrk_block", "s", (32, 32, 16, 32), (8, 3, 1), 1),
    ("syrk_block", "z", (16, 16, 16, 16), (8, 2, 0), 1),
    ("syrk_split", "c", (32, 32, 16, 16), (16, 2, 0), 1),
    # with a border beside the tiles
    ("gemm_block", "s", (16, 32, 8, 16), (24, 1, 1, 4), 1),
    ("gemm_block", "d", (16, 16, 16, 16), (16, 2, 1, 4), 2),
    ("gemm_block", "c", (24, 16, 8, 16), (12, 2, 1, 4), 1),
    ("gemm_block", "z", (32, 16, 16, 16), (24, 1, 1, 4), 1),
    ("gemm_split", "s", (32, 16, 16, 16), (16, 2, 1, 4), 1),
    ("gemm_split", "c", (16, 16, 16, 8), (24, 1, 1, 4), 1)])
def test_products_by_teams(folder, kernel, letter, tile, slices, teams):
    """The same of kernels/products.cuh, with tiles that reach every branch; every layout, by the
    program that is made for it, and by the others, which only take longer."""
    (bm, bn, tm, tn), (deep, stages, resident, *border) = tile, slices
    for across in product((0, 1), (0,) if kernel.startswith("syrk") else (0, 1)):
        sanitize(folder, kernel, letter, dict(
            BM=bm, BN=bn, TM=tm, TN=tn, BK=deep, STAGES=stages, RESIDENT=resident,
            WARPS=bm // tm * (bn // tn) * teams, BLOCKS=1, A_ACROSS=across[0], B_ACROSS=across[1],
            **dict(zip(["BORDER"], border))))


@pytest.mark.parametrize(("kernel", "letter"), [
    ("gemm_block", "d"), ("gemm_split", "s"), ("gemm_block", "h"), ("gemm_block", "b")])
def test_products_of_gpus_before_ampere(folder, kernel, letter):
    """The same where lanes send each other what tensor cores would see (kernels/turing.cuh)."""
    values = dict(BM=32, BN=32, TM=16, TN=32, BK=16, STAGES=2, RESIDENT=0, WARPS=2, BLOCKS=1)
    sanitize(folder, kernel, letter, values, ("|| defined(BLASX_TURING)", "|| 1"))


ADJACENT, PADDED, BULK = {"ADJACENT": 1}, {"PADDED": 1}, {"BULK": 1}


@pytest.mark.parametrize(("letter", "team", "tiles", "slices", "warps", "rows"), [
    ("s", (1, 1), (3, 5), (64, 1, 1), 2, {}), ("s", (2, 3), (1, 2), (32, 2, 0), 6, ADJACENT),
    ("s", (2, 1), (1, 5), (32, 2, 1), 2, PADDED), ("d", (1, 2), (2, 3), (16, 3, 0), 2, {}),
    ("d", (1, 1), (1, 5), (16, 2, 1), 4, ADJACENT), ("d", (1, 2), (2, 3), (16, 2, 0), 2, PADDED),
    ("c", (1, 1), (2, 5), (64, 1, 1), 2, {}), ("c", (2, 2), (1, 3), (16, 2, 0), 4, ADJACENT),
    ("z", (3, 1), (1, 5), (64, 1, 1), 3, {}), ("z", (1, 2), (1, 2), (8, 2, 0), 2, ADJACENT),
    ("z", (1, 2), (1, 3), (8, 2, 1), 2, PADDED), ("s", (1, 1), (3, 5), (64, 1, 1), 2, BULK),
    ("d", (1, 2), (2, 3), (16, 2, 0), 2, BULK),
    ("d", (3, 1), (1, 5), (16, 2, 1), 3, ADJACENT | BULK),
    ("c", (1, 1), (3, 5), (16, 3, 1), 4, BULK)])
def test_products_of_lines(folder, letter, team, tiles, slices, warps, rows):
    """gemm_lines: the same of members whose rows begin anywhere."""
    sanitize(folder, "gemm_lines", letter, dict(
        DOWN=team[0], ACROSS=team[1], RM=tiles[0], RN=tiles[1], DEEP=slices[0], STAGES=slices[1],
        RESIDENT=slices[2], WARPS=warps, BLOCKS=1, **rows))


@pytest.mark.parametrize(("letter", "team", "tiles", "slices", "warps", "rows"), [
    ("s", (1, 1), (3, 5), (64, 1), 2, {}), ("s", (2, 3), (2, 2), (32, 2), 6, ADJACENT),
    ("s", (3, 1), (1, 5), (64, 1), 3, PADDED), ("d", (1, 2), (4, 3), (16, 3), 2, {}),
    ("d", (3, 1), (1, 5), (48, 1), 3, ADJACENT), ("d", (1, 1), (3, 5), (16, 2), 4, PADDED),
    ("c", (2, 2), (2, 3), (48, 1), 4, {}), ("c", (1, 1), (3, 5), (16, 2), 4, ADJACENT),
    ("c", (1, 2), (3, 3), (48, 1), 2, PADDED), ("z", (3, 1), (1, 5), (64, 1), 3, {}),
    ("z", (2, 2), (2, 3), (8, 2), 4, ADJACENT), ("z", (1, 2), (2, 2), (32, 1), 2, PADDED),
    ("s", (1, 1), (3, 5), (64, 1), 2, BULK), ("d", (1, 2), (3, 3), (16, 2), 2, BULK)])
def test_symmetric_products_of_lines(folder, letter, team, tiles, slices, warps, rows):
    """symm_lines: A on the left and, of one slice, on the right; both triangles."""
    sanitize(folder, "symm_lines", letter, dict(
        DOWN=team[0], ACROSS=team[1], RM=tiles[0], RN=tiles[1], DEEP=slices[0], STAGES=slices[1],
        RESIDENT=1, WARPS=warps, BLOCKS=1, **rows))


TWO, FOUR = {"ADJACENT": 2}, {"ADJACENT": 4}


@pytest.mark.parametrize(("letter", "team", "tiles", "slices", "warps", "rows"), [
    ("s", 1, 3, (32, 1), 2, {}), ("s", 4, 1, (32, 2), 4, TWO), ("s", 3, 2, (32, 3), 3, FOUR),
    ("d", 1, 1, (16, 1), 4, TWO), ("d", 5, 1, (16, 2), 5, {}), ("d", 2, 2, (16, 1), 2, FOUR),
    ("c", 1, 2, (16, 1), 1, {}), ("c", 4, 1, (16, 1), 4, {}), ("c", 3, 1, (32, 2), 3, TWO),
    ("z", 1, 2, (8, 1), 2, {}), ("z", 2, 1, (8, 3), 2, FOUR), ("z", 5, 1, (8, 1), 5, TWO),
    ("s", 1, 3, (32, 1), 2, BULK), ("d", 5, 1, (16, 1), 5, TWO | BULK),
    ("s", 4, 1, (32, 1), 4, PADDED), ("s", 1, 3, (32, 2), 2, PADDED),
    ("d", 2, 2, (16, 1), 2, PADDED), ("c", 3, 1, (16, 1), 3, PADDED),
    ("z", 1, 2, (8, 1), 2, PADDED)])
def test_ranks_of_lines(folder, letter, team, tiles, slices, warps, rows):
    """syrk_lines: circles of one group and of more, odd and even; A whole and in slices."""
    sanitize(folder, "syrk_lines", letter, dict(
        TEAM=team, RM=tiles, DEEP=slices[0], STAGES=slices[1], WARPS=warps, BLOCKS=1, **rows))


@pytest.mark.parametrize(("warps", "held", "lines"), [(8, 2, 32), (4, 1, 16)])
def test_operands_split_to_pairs(folder, warps, held, lines):
    """split_lines against a model in NumPy (tests/sim/run_split.py); a block for a cluster."""
    from tests.sim import build, run_split
    values = dict(WARPS=warps, HELD=held, LINES=lines, CLUSTER=1)
    run = under_sanitizers("run_split",
                           build.build(folder, "split_lines", "s", values, entry=run_split.ENTRY),
                           json.dumps(values))
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 100), st.booleans())
@settings(max_examples=200, deadline=None)
def test_elements_that_are_not_computed_again_are_good(seed, spread, k, apart):
    """The rule of gemm_wgmma: what lost numbers do to an element that it takes is less than 2^-21
    of it; the rest are three errors of 2^-22 a term, and all that is left where what lost numbers
    lack is added. `apart`: the large ones meet zeros."""
    from tests.sim.run_split import good, split
    rng = np.random.default_rng(seed)
    a, b = ((rng.standard_normal((4, k)) * 2.0 ** rng.integers(-spread, spread + 1, (4, k)))
            .astype("f4") for _ in "ab")
    if apart:
        b[:, np.abs(a).max(0) >= 1] = 0
    (a_pair, a_scale, *of_a, a_lost), (b_pair, b_scale, *of_b, b_lost) = split(a), split(b)
    (ah, al), (bh, bl) = a_pair.astype(float), b_pair.astype(float)
    sums = al @ bh.T + ah @ bl.T + ah @ bh.T
    found = np.ldexp(sums, -(a_scale[:, None] + b_scale))
    exact, size = a.astype(float) @ b.T.astype(float), np.abs(a.astype(float)) @ np.abs(b.T)
    bound = 2.0**-21 * np.abs(exact) + 3.001 * 2.0**-22 * size
    assert (np.abs(found - exact) <= 1.001 * bound)[good(sums, of_a, of_b)].all()
    a, b = (np.ldexp(x.astype(float), e[:, None]) for x, e in ((a, a_scale), (b, b_scale)))
    sums += ((a - ah - al) * a_lost) @ b.T + (ah + al) @ ((b - bh - bl) * b_lost).T
    assert (np.abs(sums - a @ b.T) <= 3.01 * 2.0**-22 * np.abs(a) @ np.abs(b.T)).all()


def test_products_by_pairs(simulated):
    """sgemm on a simulated GPU, gemm_wgmma itself a model in NumPy (tests/sim/run_pairs.py)."""
    run = under_sanitizers("run_pairs", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("part", ["halves", "of_bytes", "pairs", "of_few", "digits", "remainders"])
def test_products_by_tiles(simulated, part):
    """The kernels that use Hopper's tensor cores, on a simulated GPU (tests/sim/run_tiles.py)."""
    run = under_sanitizers("run_tiles", simulated, part)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_products_by_remainders(simulated):
    """dgemm on a simulated GPU, gemm_crt itself exact sums in NumPy (tests/sim/run_crt.py)."""
    run = under_sanitizers("run_crt", simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@given(st.integers(-2**31 + 2**14, 2**31 - 2**14), st.integers(-3, 3))
def test_bytes_of_sums(x, beside):
    """What gemm_crt stores is right modulo p for all sums, those beside multiples of p among
    them."""
    from tests.sim.run_crt import MODULI, remainder
    for p in MODULI:
        remainder(np.array([x, min(max(x // p * p + beside, -2**31 + 2**14), 2**31 - 2**14)]), p)


@pytest.mark.parametrize(("kernel", "letter"), [("gemm_wgmma", "s"), ("gemm_half", "h"),
                                                ("gemm_crt", "d"), ("gemm_int8", "i")])
def test_products_of_four_warps_compile(kernel, letter):
    """Every row, for Hopper: no spills, no products that wait for each other."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    places = range(len(_tuned.table(90)[kernel][letter]))
    found = resources.measure(sorted({resources.label(kernel, letter, values) for place in places
                                      if (values := constants(kernel, letter, place))}))
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)


# Blocks of bfloat16 are those of half precision, of c those of z: with other types.
@pytest.mark.parametrize(("kernel", "letter"), [
    row for row in rows((*SMALL, "gemm_lines", "syrk_lines", *BLOCKS, *SPLIT))
    if row[0] not in BLOCKS or row[1] not in "bc"])
def test_compiles_without_drift_or_spills(kernel, letter):
    """On Hopper, the largest; all of them is `python -m tests.sim.resources`."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    rows = [x for row in _tuned.table(90)[kernel][letter] if (x := _tuned.capitals(row))]
    key = resources.label(kernel, letter, rows[-1])
    found = resources.measure([key], ["sm_90a"])
    wrong = list(resources.complaints(found, resources.recorded()))
    assert not wrong, "\n".join(wrong)
