"""python -m testing <routine> [options] | run | kinds | selfcheck | generate | parse_opts"""

import sys

COMMANDS = ("run", "kinds", "selfcheck", "generate", "parse_opts")


def main(arguments=None):
    """Run the command line; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        return usage()
    name, rest = arguments[0], arguments[1:]
    from . import tester

    try:
        if name == "run":
            from . import run
            return run.main(rest)
        if name == "kinds":
            from . import kinds
            return kinds.main(rest)
        if name == "selfcheck":
            from . import selfcheck
            return selfcheck.main(rest)
        if name == "generate":
            from . import generate
            return generate.main(rest)
        if name == "parse_opts":
            return parse_opts(rest)
        return tester.main(name, rest)
    except (tester.Refused, ValueError) as error:
        print(f"testing {name}: error: {error}", file=sys.stderr)
        return getattr(error, "status", 1)


def parse_opts(arguments):
    """Print the sizes and options that a command line means."""
    from . import tester
    from .options import parse

    options = parse("testing parse_opts", arguments)
    tester.prepare(options)
    for m, n, k in options.sizes:
        print(f"m {m:5d}  n {n:5d}  k {k:5d}")
    for name, value in vars(options).items():
        if name != "sizes":
            print(f"% {name} = {value!r}")
    return 0


def usage():
    from .cases import CASES
    from .options import EPILOG

    print(__doc__ + "\n")
    print("    python -m testing dgetrf -n 123 -n 1000:20000:1000 --lapack --check\n"
          "    python -m testing dgemm --help\n"
          "    python -m testing run --small -p sdcz\n"
          "    python -m testing generate --all --check\n")
    for group in dict.fromkeys(case.group for case in CASES):
        names = [case.name for case in CASES if case.group == group]
        print(f"{group:8} " + " ".join(names))
    print("\n" + EPILOG)
    return 0


if __name__ == "__main__":
    sys.exit(main())
