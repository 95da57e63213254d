"""The text of a kernel: its file in kernels/, the headers in place, the constants in front."""

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent  # kernels/ is inside the package in a wheel, beside it in a checkout
FOLDER = next(d for d in (_HERE / "kernels", _HERE.parent / "kernels") if d.is_dir())


# Constants that the operands of a call decide, or few tuned rows; 0 unless given.
CHOSEN = ("RAGGED", "A_ACROSS", "B_ACROSS", "COMPLEX", "BIAS", "ACTIVATION",
          "SINGLY", "HIGH_ONLY", "MARKED", "PAIRS", "FOURS", "FIRST_PASS", "OF_SUMS", "ROUNDED",
          "KNOWN", "FEWER", "HALF_OF_C", "SCALE_OF", "CELL", "ONE_LINE", "SLIM", "BORDER", "SPREAD",
          "STAY", "TIGHT", "TILED", "FACTORED", "ADJACENT", "PADDED", "BULK", "UNPIVOTED",
          "STAGED", "ODD_ROWS")


def program(name, scalar, constants):
    """Kernel `name` for the C++ type `scalar` and a set of compile-time constants."""
    constants = {x: 0 for x in CHOSEN if x in source(name + ".cu")} | constants
    prologue = ["#define BLASX", f"#define SCALAR {scalar}",
                *(f"constexpr int {k} = {v};" for k, v in sorted(constants.items()))]
    return "\n".join(prologue) + "\n" + source(name + ".cu")


@cache
def source(file):
    """A file of kernels/ with the headers it includes in place, each once."""
    seen = set()

    def flat(name):
        if name in seen:
            return ""
        seen.add(name)
        text = (FOLDER / name).read_text().replace("#pragma once\n", "")
        return re.sub(r'^#include "(.+?)".*\n', lambda m: flat(m[1]), text, flags=re.M)

    return flat(file)
