"""The command line of a tester: MAGMA's options and its range grammar.

    -n m[,n[,k]]    each of m, n, k an integer or an inclusive range start:end:step

Only m: n = k = m; only m,n: k = n. Several ranges advance together and stop with the first that
ends; a plain number stays. Steps may be negative. `-n` repeats, and the sizes add up.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_SIZES = "1088:10304:1024"  # MAGMA's
DEFAULT_SIZES_BATCHED = "32:512:32"


@dataclass
class Options:
    """What the command line sets, with its defaults. Sizes are (m, n, k)."""

    sizes: list = field(default_factory=list)
    check: int = 0
    lapack: bool = False
    niter: int = 1
    warmup: bool = True
    cold: bool = False
    verbose: int = 0
    tol: float = 30.0
    batch: int = 300
    nrhs: int = 1
    kl: int = 1
    ku: int = 1
    matrix: str = ""
    cond: float = 0.0
    condD: float = 1.0
    seed: int = 0
    device: str = ""
    mode: str = "auto"
    host: bool = False
    memory: int = 0
    allow_fallback: bool = False
    factor: str = ""
    refine: str = "ir"
    precisions: str = "d"
    all_flags: bool = False
    json: str = ""
    flags: dict = field(default_factory=dict)


def target(text):
    """A file that can be written when all is measured."""
    path = Path(text)
    if text and (path.is_dir() or not path.parent.is_dir()):
        raise argparse.ArgumentTypeError(f"{text}: no such folder, or one itself")
    return text


def integer_range(text):
    """'10' -> (10, 10, 0); '10:30:5' -> (10, 30, 5)."""
    parts = text.split(":")
    try:
        numbers = [int(p) for p in parts]
    except ValueError:
        raise ValueError(f"range {text!r}: expected an integer or start:end:step") from None
    if len(numbers) == 1:
        numbers += [numbers[0], 0]
    if len(numbers) != 3:
        raise ValueError(f"range {text!r}: expected an integer or start:end:step")
    start, end, step = numbers
    if start < 0 or end < 0:
        raise ValueError(f"range {text!r}: sizes must not be negative")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise ValueError(f"range {text!r}: the step never reaches the end")
    return start, end, step


def parse_sizes(text):
    """The (m, n, k) of one -n argument: '100,200:1000:100,300' gives 9 of them."""
    ranges = [integer_range(part) for part in text.split(",")]
    if len(ranges) > 3:
        raise ValueError(f"sizes {text!r}: at most m,n,k")
    ranges += [ranges[-1]] * (3 - len(ranges))
    counts = [(end - start) // step + 1 for start, end, step in ranges if step]
    return [tuple(start + i * step for start, _, step in ranges)
            for i in range(min(counts, default=1))]


class Parser(argparse.ArgumentParser):
    """argparse that leaves with status 1, as MAGMA's testers do on a bad option."""

    def error(self, message):
        self.exit(1, f"{self.prog}: error: {message}; --help lists the options\n")


def checked(kind, low, high=float("inf")):
    def convert(text):
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not in {low} ... {high}")
        return value

    convert.__name__ = kind.__name__
    return convert


def sizes(text):
    try:
        return parse_sizes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class SetFlag(argparse.Action):
    """-TN, -SL, -U ...: several flags of the routine from one option without a value."""

    def __call__(self, parser, options, values, option_string=None):
        options.flags = {**options.flags, **self.const}


def add_flags(parser):
    def flag(*names, **const):
        group.add_argument(*names, dest="flags", nargs=0, action=SetFlag, const=const,
                           help=", ".join(f"{k}={v}" for k, v in const.items()))

    group = parser.add_argument_group("flags of the routine")
    flag("-L", uplo="L")
    flag("-U", uplo="U")
    flag("-F", uplo="F")
    for a in "NTC":
        for b in "NTC":
            flag("-" + a + b, transA=a, transB=b)
    flag("-T", trans="T", transA="T")
    flag("-C", trans="C", transA="C")
    flag("-SL", side="L")
    flag("-SR", side="R")
    flag("-DN", diag="N")
    flag("-DU", diag="U")
    flag("-JN", jobz="N")
    flag("-JV", jobz="V")
    flag("-LN", jobvl="N")
    flag("-LV", jobvl="V")
    flag("-RN", jobvr="N")
    flag("-RV", jobvr="V")
    return group


class Value(argparse.Action):
    """An option whose value is a flag of the routine: --itype 2, --jobu s."""

    def __call__(self, parser, options, value, option_string=None):
        options.flags = {**options.flags, self.const: value}


def letters(text):
    if not text or set(text) - set("sdczhbi"):
        raise argparse.ArgumentTypeError(f"{text!r}: precisions are letters of sdczhbi")
    return text


def job(text):
    if text.upper() not in ("N", "S", "A"):
        raise argparse.ArgumentTypeError(f"{text!r}: SciPy's names compute n, s or a")
    return text.upper()


def parser(prog, description=None):
    """All options of a tester; what they set is an Options."""
    p = Parser(prog=prog, description=description, allow_abbrev=False, epilog=EPILOG,
               formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", "-N", "--range", dest="sizes", metavar="m[,n[,k]]", type=sizes,
                   action="extend", help="sizes; each an integer or start:end:step, repeatable")
    p.add_argument("-c", "--check", action="store_const", const=1, help="check the results")
    p.add_argument("-c2", "--check2", dest="check", action="store_const", const=2,
                   help="check more (getrf: a solve too; potrf: LAPACK too)")
    p.add_argument("--nocheck", dest="check", action="store_const", const=0)
    p.add_argument("-l", "--lapack", action="store_true", help="time LAPACK on the CPU beside it")
    p.add_argument("--nolapack", dest="lapack", action="store_false")
    p.add_argument("--niter", type=checked(int, 1), help="the time is the median of so many calls")
    p.add_argument("--warmup", action="store_true", help="one untimed call first (the default)")
    p.add_argument("--nowarmup", dest="warmup", action="store_false")
    p.add_argument("--cold", action="store_true", help="a column for the first call's time")
    p.add_argument("-v", "--verbose", action="count", help="what ran, and the errors over eps")
    p.add_argument("--tol", "--tolerance", type=checked(float, 0, 1000),
                   help="in units of eps = 2^-53 or 2^-24 (default 30; BLAS: fixed 3)")
    p.add_argument("--batch", type=checked(int, 0))
    p.add_argument("--nrhs", type=checked(int, 0))
    p.add_argument("--kl", type=checked(int, 0))
    p.add_argument("--ku", type=checked(int, 0))
    p.add_argument("--matrix", help="type[_distribution][_scaling][_dominant], see below")
    p.add_argument("--cond", type=checked(float, 1), help="default sqrt(1/eps)")
    p.add_argument("--condD", type=checked(float, 1))
    p.add_argument("--seed", type=checked(int, 0))
    p.add_argument("--device", choices=("cpu", "gpu"), help="default: gpu if CuPy sees one")
    p.add_argument("--mode", choices=("native", "hybrid", "vendor", "auto"),
                   help="what must have done the work: a line that ran otherwise fails")
    p.add_argument("--host", action="store_true",
                   help="the GPU works on arrays of the host, which it overwrites")
    p.add_argument("--memory", type=checked(int, 1), metavar="BYTES",
                   help="with --host: of the GPU; what is free by default")
    p.add_argument("--allow-fallback", action="store_true",
                   help="mixed precision: iter < 0 is no failure")
    p.add_argument("--factor", choices=("fp32", "tf32", "fp16", "bf16"),
                   help="gesv: factor in this precision, and refine")
    p.add_argument("--refine", choices=("ir", "gmres"), help="how")
    p.add_argument("-p", dest="precisions", type=letters, metavar="sdcz",
                   help="precisions, where the name has no letter")
    p.add_argument("-a", "--all-flags", action="store_true", help="all flags of the routine")
    p.add_argument("--json", type=target, metavar="FILE")
    flags = add_flags(p)

    def valued(*names, const, **how):
        flags.add_argument(*names, dest="flags", const=const, action=Value, **how)

    valued("--itype", const="itype", type=int, choices=(1, 2, 3))
    valued("--jobu", "--jobv", "--jobvt", const="jobu", type=job, metavar="n|s|a")
    valued("--norm", const="norm", choices=tuple("M1IF"))
    valued("--rng", const="range", choices=tuple("AIV"), help="eigenvalues: all, index, value")
    p.set_defaults(**vars(Options()))
    return p


def parse(prog, arguments):
    return Options(**vars(parser(prog).parse_args(arguments)))


EPILOG = """\
Every line is one problem; it ends in ok or failed, and the exit status is the number of failed
lines (at most 255). 1 is also a bad option, 2 a mode that the routine does not have. The time is
the median of --niter calls after one warm-up; the first call's own time is in --cold and --json.

matrix types   zero ones identity jordan kronecker hilbert kahan wilkinson rand rands randn ties
               (-1, 0, 1) diag svd poev=spd heev=syev geev geevx. A tester of Hermitian matrices
               takes heev, of positive definite ones poev, where svd is asked; a triangular one
               the R of the matrix.
distributions  rand rands randn logrand arith geo cluster0 cluster1 rarith rgeo rcluster0 rcluster1
               (of the singular values, 1 to 1/cond)
scalings       ufl ofl small large; dominant makes the diagonal dominant
"""
