"""Compiles a kernel for the CPU with g++: the same text that NVRTC gets, behind cuda_sim.h."""

import os
import subprocess
from pathlib import Path

from blasx import _sources
from blasx._types import TYPES

SHIM = Path(__file__).with_name("cuda_sim.h")
FLAGS = ("-std=c++17", "-O1", "-g1", "-ffp-contract=off", "-fPIC", "-shared",
         "-Wno-unknown-pragmas", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         "-fno-gnu-unique")  # each library has its own shared memory, sized by its constants
PREFIX = "sim_"


ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, int schedule,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers); }}
"""


def build(folder, name, letter, constants, plant=None, entry=ENTRY):
    """A shared library with `sim_<name>(blocks, threads, schedule, numbers)`, or with another
    `entry`; returns its path. `plant` = (old, new) puts a bug into the text first.
    """
    text = _sources.program(name, TYPES[letter].cpp, constants)
    if plant:
        assert plant[0] in text, plant
        text = text.replace(*plant)
    values = "_".join(map(str, constants.values()))
    stem = Path(folder) / f"{name}_{letter}_{values}{'_bug' * bool(plant)}"
    cpp, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    cpp.write_text(f'#include "{SHIM}"\n{text}{entry.format(PREFIX + name, name)}')
    made = stem.with_suffix(f".{os.getpid()}")  # in place at once: another process may look
    subprocess.run(["g++", *FLAGS, str(cpp), "-o", str(made)], check=True)
    os.replace(made, library)
    return library


def runtimes():
    """LD_PRELOAD for a Python that loads such a library."""
    return " ".join(
        subprocess.run(["g++", f"-print-file-name={lib}"], check=True, capture_output=True,
                       text=True).stdout.strip() for lib in ("libasan.so", "libubsan.so"))
