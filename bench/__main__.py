"""python -m bench compare FAMILY | ladder | overhead | report | rows | speed | sweep | tune_cpu |
variants (each with --help)"""

import sys
from importlib import import_module

COMMANDS = ("compare", "ladder", "overhead", "report", "rows", "speed", "sweep", "tune_cpu",
            "variants")


def main(arguments):
    """Run one command; returns its exit status."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    return import_module(f"bench.{arguments[0]}").main(arguments[1:]) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
