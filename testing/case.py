"""What a tester knows about its routine (Case), and one instance of it (Problem)."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from blasx._types import TYPES

from . import errors, matrices
from .options import Options

DEFAULT_FLAGS = {  # the first is what a tester takes without an option
    "uplo": "LU", "trans": "NTC", "transA": "NTC", "transB": "NTC", "side": "LR", "diag": "NU",
    "jobz": "NV", "jobvl": "NV", "jobvr": "NV", "jobu": "NSA", "itype": (1, 2, 3), "norm": "M1IF",
    "range": "AIV", "inc": ((1, 1), (2, -1), (-1, 3))}


class Problem:
    """Sizes, flags and random data of one call.

    `args` and `kwargs` are what the routine gets. A Case's `make` leaves on the Problem whatever
    its `check` needs (A, b, ...): those are never handed to the routine themselves.
    """

    def __init__(self, letter, sizes, flags, rng, options, default_matrix):
        self.letter, self.rng, self.options = letter, rng, options
        self.m, self.n, self.k = sizes
        self.nrhs, self.batch, self.kl, self.ku = (
            options.nrhs, options.batch, options.kl, options.ku)
        self.flags = flags
        self.dtype, self.real = TYPES[letter].dtype, TYPES[letter].real
        self.eps = errors.EPS[letter]
        self.kind = matrices.parse(options.matrix or default_matrix)
        self.scale = matrices.scale(self.kind, self.dtype)
        self.exponent = int(np.log2(self.scale))
        self.sigma = None
        self.args, self.kwargs = (), {}

    def __getattr__(self, flag):  # p.uplo, p.trans ...
        try:
            return self.__dict__["flags"][flag]
        except KeyError:
            raise AttributeError(flag) from None

    @property
    def is_complex(self):
        return self.dtype.kind == "c"

    @property
    def H(self):
        """The transpose that real and complex names share: 'T' or 'C'."""
        return "C" if self.is_complex else "T"

    @property
    def lower(self):
        return int(self.uplo == "L")

    def call(self, *args, **kwargs):
        """Sets the routine's arguments; arrays are copied, in column-major order."""
        def own(x):
            return x.copy(order="F" if x.ndim == 2 else "C") if isinstance(x, np.ndarray) else x

        self.args = tuple(map(own, args))
        self.kwargs = {name: own(x) for name, x in kwargs.items()}

    # Matrices. The first one drawn is of the kind that --matrix asks for.

    def _generate(self, m, n, kind):
        o = self.options
        a, self.sigma = matrices.generate(kind, m, n, self.dtype, self.rng, o.cond or None, o.condD)
        return a

    def _kind(self, **changes):
        return matrices.Kind(**{**vars(self.kind), **changes})

    def matrix(self, m, n):
        """A general m x n matrix; of another type where the type asked for is square only."""
        square_only = ("poev", "heev", "geev", "geevx")
        kind = self._kind(type="svd") if m != n and self.kind.type in square_only else self.kind
        return self._generate(m, n, kind)

    def hermitian(self, n, transpose=errors.H):
        """Hermitian (transpose=np.transpose: symmetric), svd and geev becoming heev."""
        t = self.kind.type
        a = self._generate(n, n, self._kind(type="heev") if t in ("svd", "geev", "geevx")
                           else self.kind)
        known = self.kind.type in (*matrices.HERMITIAN, "svd") and (
            not self.is_complex or transpose is errors.H)
        a = np.tril(a) + transpose(np.tril(a, -1))
        if transpose is errors.H:
            a[range(n), range(n)] = a.diagonal().real
        if not known:
            self.sigma = np.full(n, np.nan)
        return a

    def positive(self, n):
        """Hermitian, and positive definite where the type allows: svd, heev, geev become poev."""
        kind, t = self.kind, self.kind.type
        self.kind = self._kind(type="poev") if t in ("svd", "heev", "geev", "geevx") else kind
        a = self.hermitian(n)
        self.kind = kind
        return a

    def triangular(self, n):
        """A triangular matrix with its diagonal: the triangle of a drawn one, or, where that has
        known singular values, the R of its QR (for a lower one turned round), which keeps them."""
        a = self.matrix(n, n)
        if self.kind.type in matrices.WITH_SPECTRUM and not np.isnan(self.sigma).any():
            y, e = errors.unit(a)
            a = errors.shift(np.linalg.qr(y)[1], e).astype(self.dtype)
            a = a if self.uplo == "U" else a[::-1, ::-1]
        a = np.triu(a) if self.uplo == "U" else np.tril(a)
        if self.flags.get("diag") == "U":
            d = a.diagonal()
            a = a / np.where(d == 0, self.dtype.type(1), d)[:, None]
            a[range(n), range(n)] = 1
            self.sigma, self.scale, self.exponent = np.full(n, np.nan), 1.0, 0
        return a

    def hidden(self, a, uplo=None):
        """`a` with NaN wherever a routine of this uplo (and diag) must not look."""
        a, uplo = a.copy(), uplo or self.uplo
        other = np.triu if uplo == "L" else np.tril
        mask = other(np.ones(a.shape[-2:], bool),
                     (1 if uplo == "L" else -1) * (self.flags.get("diag") != "U"))
        a[..., mask] = np.nan
        return a

    def random(self, *shape, scale=1.0):
        """Uniform on (-1, 1), in both parts."""
        a = matrices.random(self.rng, shape, self.is_complex, "rands")
        return (a * scale).astype(self.dtype)

    def operand(self, *shape):
        """What a product takes beside the matrix: scaled so that the product is near 1."""
        return self.random(*shape, scale=1 / self.scale)

    def rhs(self, *shape):
        """A right-hand side on the matrix's own scale, so that the solution is near 1."""
        return self.random(*shape, scale=self.scale)

    def number(self, real=False):
        """A scalar of modulus 1/2 to 1."""
        x = 0.5 + self.rng.random() / 2
        return x if real or not self.is_complex else complex(x * np.exp(6j * self.rng.random()))

    def vector(self, n, inc=1, scale=1.0):
        """The buffer of a BLAS vector: n random elements, `inc` apart."""
        return self.random(1 + (n - 1) * abs(inc) if n else 0, scale=scale)

    def matrix_vector(self, n, inc=1):
        """A BLAS vector of the kind that --matrix asks for."""
        x = self.vector(n, inc)
        elements(x, n, inc)[...] = self.matrix(n, 1)[:, 0]
        return x

    def stack(self, draw):
        """`batch` of what `draw()` returns."""
        first = [draw() for _ in range(self.batch)]
        return np.stack(first) if first else np.zeros((0, *draw().shape), self.dtype)


def elements(x, n, inc):
    """The n elements of a BLAS vector: from its end where inc is negative."""
    return x[: 1 + (n - 1) * abs(inc) if n else 0 : abs(inc)][:: 1 if inc > 0 else -1]


@dataclass(frozen=True)
class Case:
    """A routine, as all testers see it.

    make(p) draws the data of Problem p and sets its arguments with p.call(...).
    check(p, *outputs) returns {what: value}; a float is an error, to be below `limit` eps
    (--tol where limit is None; `limits` for one column), a bool a verdict.
    """

    name: str  # without the letter
    group: str  # blas lu chol qr syev svd geev hesv band mixed aux batched vbatched
    returns: str  # names of the outputs; `work` is not judged, info must be 0 if check is silent
    make: Callable
    check: Callable
    flops: Callable | None = None  # flops(p) -> (multiplications, additions); None: time only
    names: str | dict = "sdcz"  # the letters, or {letter: typed name}
    flags: dict | str = ""  # its flags, with their values where not the default ones
    columns: str = "N"  # of M N K NRHS BatchCount KL KU
    matrix: str = "rand"  # the kind of matrix unless --matrix says otherwise
    limit: float | None = None
    limits: dict = field(default_factory=dict)
    always: bool = False  # checked without -c too
    unit: str = "sec"  # of the time in the performance cells: sec or ms
    rate: str = "Gflop/s"
    in_place: bool = False  # SciPy's name overwrites operands without being asked
    lapack: Callable | None = None  # lapack(p): the reference where SciPy has no such name
    modes: tuple = ("vendor",)  # beside auto, on the GPU; none where it runs on the CPU
    refined: "Case | None" = None  # of the same name, told a precision to factor in
    members: "Case | None" = None  # of members of different sizes: the Case of each, a batch of one

    @property
    def typed(self):
        """{letter: typed name}."""
        if isinstance(self.names, dict):
            return self.names
        return {x: x + self.name for x in self.names}

    @property
    def outputs(self):
        return self.returns.split()

    def named(self, outputs):
        """{name: output}, counted from the last: geev returns w or wr, wi before the same rest."""
        return dict(zip(reversed(self.outputs), reversed(outputs)))

    def variants(self):
        """All combinations of its flags, the default one first."""
        flags = self.flags
        if isinstance(flags, str):
            flags = dict.fromkeys(flags.split())
        values = [tuple(v or DEFAULT_FLAGS[f]) for f, v in flags.items()]
        return [dict(zip(flags, combination)) for combination in product(*values)]

    def problem(self, letter, sizes, flags=None, rng=None, options=None):
        """A Problem with its arguments, for sizes = (m, n, k)."""
        p = Problem(letter, sizes, {**self.variants()[0], **(flags or {})},
                    rng or np.random.default_rng(0), options or Options(), self.matrix)
        self.make(p)
        return p

    def function(self, letter):
        """The public function of blasx."""
        import blasx

        return getattr(blasx, self.typed[letter])

    def takes_mode(self, letter):
        """True if the routine can be told who works."""
        return "mode" in inspect.signature(self.function(letter)).parameters

    def reference(self, p):
        """LAPACK's result from SciPy, or None where there is none."""
        name = self.typed[p.letter]
        f = getattr(scipy.linalg.blas, name, None) or getattr(scipy.linalg.lapack, name, None)
        if self.lapack:
            return self.lapack(p)
        return f(*p.args, **p.kwargs) if f else None

    def has_reference(self, letter):
        name = self.typed[letter]
        return bool(self.lapack or hasattr(scipy.linalg.blas, name)
                    or hasattr(scipy.linalg.lapack, name))

    def call(self, p):
        """Run the routine on the arguments as they are; the outputs as a tuple of NumPy arrays."""
        return as_tuple(self.function(p.letter)(*p.args, **p.kwargs))

    def errors(self, p, outputs):
        """{what: error or verdict} of the outputs: those of `check`, and what holds of all."""
        found = {what: bool(value) if isinstance(value, np.bool_) else value
                 for what, value in self.check(p, *outputs).items()}
        named = self.named(outputs)
        if "info" in named:
            found.setdefault("info", bool(np.all(np.asarray(named["info"]) == 0)))
        if "iter" in named:
            # One equation cannot be judged: its residual is rounding, of the size of the bound.
            found.setdefault("iter", p.options.allow_fallback or p.n < 2 or bool(
                named["iter"] >= 0))
        found.setdefault("dtype", all(x.dtype in (p.dtype, p.real) for x in outputs
                                      if isinstance(x, np.ndarray) and x.dtype.kind in "fcV"))
        return found

    def limit_of(self, what, options):
        """The largest error allowed, in units of eps: a fixed few for BLAS, else at least --tol."""
        limit = self.limits.get(what, self.limit)
        return options.tol if limit is None else limit if limit < 30 else max(limit, options.tol)

    def failures(self, p, found):
        """What is not right, by name; empty if the problem passes. NaN never passes."""
        return [what for what, value in found.items()
                if (value is not True if isinstance(value, bool)
                    else value is not None and not value < self.limit_of(what, p.options) * p.eps)]


def as_tuple(result):
    """Outputs as NumPy sees them; what is on the GPU is fetched."""
    result = result if isinstance(result, tuple) else (result,)
    return tuple(map(fetched, result))


def fetched(x):
    if isinstance(x, list):
        return list(map(fetched, x))
    return x.get() if hasattr(x, "get") else x


def on_device(x, device):
    """Arguments for the device: arrays in the memory order they have here."""
    if isinstance(x, list):
        return [on_device(y, device) for y in x]
    if device != "gpu" or not isinstance(x, np.ndarray):
        return x
    import cupy

    return cupy.array(x, order="K")
