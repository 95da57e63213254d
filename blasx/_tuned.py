"""What was measured to be best: (kernel, letter, n) -> constants.

The first row whose `to` covers n and whose constants fit the GPU (_spaces.fits) wins; its capitals
are the kernel's compile-time constants. A row without capitals says that there another kernel, or
NVIDIA's library, is faster. Batch counts are not among the keys, so that results do not depend on
them; but in LU, whose bits are the same by every row, some rows are for few members, and some
leave members of different sizes to the next row (`joins`).

The rows that ship are kernels/tuned/<arch>/<kernel>.json, {letter: [row, ...]}; an architecture
without a folder of its own uses the nearest. What `python -m blasx.tune` measured on a GPU is
in the cache folder, tuned/<gpu>/<kernel>/<letter><to>.json, a row to a file, and replaces the row
with the same `to`, or goes between two. Such a file names the GPU, the driver, the hash of the
kernel's source and the schema it was made with, and ends in a checksum: a file that is damaged or
stale is ignored, with one warning. As a row is a file, put in place at once, processes may tune at
the same time.
"""

import hashlib
import json
import re
import warnings
from bisect import bisect_left
from contextlib import contextmanager
from functools import cache, lru_cache
from math import inf

from . import _cache, _spaces
from ._sources import FOLDER, source

LARGEST = 32  # the largest order that fits a team's registers (kernels/lanes.cuh)
SCHEMA = 2
_forced = {}  # (kernel, letter) -> constants or None, while `using`
_warned = set()
_caches = []


def looked_up(function, most=None):
    """functools.cache, or of the `most` last ones, for what depends on the table; emptied when the
    table changes."""
    cached = lru_cache(most)(function)
    _caches.append(cached.cache_clear)
    return cached


def forget():
    """The table has changed."""
    for clear in _caches:
        clear()


@contextmanager
def using(letter, **kernels):
    """These constants for matrices of every order; None: not this kernel."""
    before = dict(_forced)
    _forced.update({(kernel, letter): values for kernel, values in kernels.items()})
    forget()
    try:
        yield
    finally:
        _forced.clear()
        _forced.update(before)
        forget()


def row(kernel, letter, n, gpu, lines=inf, plain=False):
    """The row that serves matrices of order `n`, or None where this kernel does not. `gpu`: a Gpu,
    or a compute capability, which asks for the rows that ship. A row may say up to how many `lines`
    (columns, or members) of that order it serves; asked for any, it does not. `plain`: no row that
    takes members as lines."""
    return why(kernel, letter, n, gpu, lines, plain)[0]


def at_least(kernel, letter, n, gpu):
    """The row that serves matrices of order `n`, or where there is none the next above that has
    constants: for what is to be done by this kernel anyway."""
    return row(kernel, letter, n, gpu) or next(
        r for r, _ in rows(kernel, letter, gpu) if n <= r["to"] and capitals(r))


# Kernels of whose members a block has something in shared memory for every row
BY_BLOCKS = ("getrf_block", "getrf_nopiv", "getrs_block", "geqrf_block", "orgqr_block",
             "ormqr_block", "lasr_rows")


@looked_up
def most(letter, gpu):
    """The largest order that these have constants for on a GPU."""
    def too_large(eighth):
        try:
            for kernel in BY_BLOCKS:
                row(kernel, letter, 8 * eighth, gpu)
        except RuntimeError:  # nothing fits
            return True
        return False

    return 8 * (bisect_left(range(1, _spaces.MOST // 8 + 1), True, key=too_large))


def constants(kernel, letter, n, gpu):
    """The constants with which `kernel` runs on matrices of order `n`."""
    return capitals(row(kernel, letter, n, gpu))


def capitals(row):
    return {k: v for k, v in row.items() if k.isupper()}


def by_line(row):
    """Whether the row takes members as lines of memory: all of a block as one (kernels/lanes.cuh),
    for which they must be equal, or each with what is above the diagonal (cholesky_large.cuh), for
    which they should not be in place. A row to the same order serves others."""
    return row.get("ONE_LINE") == 2 or "ONE_LINE" in row and "unless" in row


def serves(row, n):
    """Whether an order that the row's `to` covers is the row's: `unless` it is a multiple of one
    number, `only` if it is of another."""
    return not ("unless" in row and n % row["unless"] == 0) and n % row.get("only", 1) == 0


def instead(new, old):
    """Whether a row that was measured stands in the place of this one."""
    return (old["to"] == new["to"] and "lines" not in old and by_line(old) >= by_line(new)
            and all((rule in old) == (rule in new) for rule in ("unless", "only")))


def place(row):
    """Of rows to the same order those for some members or orders come first."""
    return row["to"], row.get("lines", inf), not (by_line(row) or "unless" in row or "only" in row)


def why(kernel, letter, n, gpu, lines=inf, plain=False):
    """(row or None, where it comes from)"""
    if (kernel, letter) in _forced:
        values = _forced[kernel, letter]
        return values and {"to": n} | values, "using"
    covering = [(r, origin) for r, origin in rows(kernel, letter, gpu)
                if n <= r["to"] and lines <= r.get("lines", lines)
                and serves(r, n) and not (plain and by_line(r))]
    for found, origin in covering:
        values = capitals(found)
        if not values:
            return None, origin
        if isinstance(gpu, int) or _spaces.fits(kernel, letter, n, values, gpu):
            return found, origin
    if not covering:
        return None, "past the last row"
    values = _spaces.nearest(kernel, letter, n, capitals(covering[0][0]), gpu)
    if values is None and not _spaces.SPACES[kernel].may_leave(n):
        raise RuntimeError(f"{kernel} for order {n}, type {letter}: nothing fits into the "
                           f"{gpu.shared} bytes of shared memory of {gpu.name}")
    return values and {"to": n} | values, "the nearest constants that fit this GPU"


def rows(kernel, letter, gpu):
    """[(row, where it comes from), ...] by rising `to`, those for few `lines` or by lines of memory
    first."""
    if isinstance(gpu, int):
        return _shipped(kernel, letter, gpu)
    return _in_effect(kernel, letter, gpu)


@looked_up
def _in_effect(kernel, letter, gpu):
    own = _own(kernel, letter, gpu)
    kept = [(r, origin) for r, origin in _shipped(kernel, letter, gpu.capability)
            if not any(instead(mine, r) for mine, _ in own)]
    return sorted(kept + own, key=lambda found: place(found[0]))


# -- the rows that ship


def _shipped(kernel, letter, capability):
    """Without what GPUs of this capability lack."""
    origin = f"kernels/tuned/{_folder(capability).name}/{kernel}.json"
    lacking = {k for k, least in _spaces.SINCE.items() if capability < least}
    return [({k: v for k, v in r.items() if k not in lacking}, origin)
            for r in table(capability)[kernel].get(letter, [])]


@cache
def _folder(capability):
    """The rows of the architecture nearest to a compute capability (90: Hopper)."""
    return min((FOLDER / "tuned").glob("sm*"),
               key=lambda folder: abs(int(re.search(r"\d+", folder.name)[0]) - capability))


@cache
def table(capability):
    """{kernel: {letter: rows}} that ships."""
    files = sorted(_folder(capability).glob("*.json"))
    return {f.stem: json.loads(f.read_text()) for f in files}


# -- a user's own rows


def own_folder(gpu):
    """Where the rows measured on a GPU of this name are, or None if no folder can be ours."""
    base = _cache.folder()
    return base and base / "tuned" / re.sub(r"[^A-Za-z0-9]+", "-", gpu.name)


def write(kernel, letter, row, gpu):
    """Keep a measured row; returns its file."""
    folder = own_folder(gpu)
    if folder is None:
        raise OSError("there is no folder for what is measured: set XDG_CACHE_HOME")
    file = folder / kernel / f"{letter}{row['to']}.json"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {"made": _made(kernel, letter, gpu), "row": row}
    content["sha256"] = _digest(content["made"], row)
    _cache.put(file, (json.dumps(content) + "\n").encode())
    forget()
    return file


def _made(kernel, letter, gpu):
    """What a row was measured with, and must be used with."""
    return {"schema": SCHEMA, "gpu": gpu.name, "driver": gpu.driver, "kernel": kernel,
            "letter": letter, "source": _source_hash(kernel)}


@cache
def _source_hash(kernel):
    text = source(kernel + ".cu") if _spaces.SPACES[kernel].compiled else ""
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(made, row):
    return hashlib.sha256(json.dumps([made, row], sort_keys=True).encode()).hexdigest()


def _own(kernel, letter, gpu):
    folder = own_folder(gpu)
    files = sorted((folder / kernel).glob(f"{letter}*.json")) if folder else []
    return [(r, str(f)) for f in files if (r := _read(f, kernel, letter, gpu))]


def _read(file, kernel, letter, gpu):
    """The row in a file; None, and the first time a warning, if it cannot be used."""
    try:
        content = json.loads(file.read_bytes())
        made, row = content["made"], content["row"]
        whole = content["sha256"] == _digest(made, row)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        return _ignored(file, "is damaged")
    wanted = _made(kernel, letter, gpu)
    if changed := [k for k, v in wanted.items() if made.get(k) != v]:
        return _ignored(file, f"was made with another {' and '.join(changed)}")
    to, values = row.get("to"), capitals(row)
    if type(to) is not int or to < 0 or f"{letter}{to}" != file.stem:
        return _ignored(file, "is not named after its row")
    if not (_spaces.fits(kernel, letter, min(to, _spaces.MOST), values, gpu) if values
            else _spaces.SPACES[kernel].may_leave(to)):
        return _ignored(file, "does not fit this GPU")
    return row


def _ignored(file, reason):
    if file.parent.parent not in _warned:
        _warned.add(file.parent.parent)
        warnings.warn(f"{file} {reason}, and is ignored; `python -m blasx.tune` makes it anew",
                      RuntimeWarning, stacklevel=3)
