"""Compiles a kernel for the CPU with g++: the same text that NVRTC gets, behind cuda_sim.h."""

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from blasx import _sources
from blasx._types import TYPES

SHIM, SCHEDULER = (Path(__file__).with_name(name) for name in ("cuda_sim.h", "scheduler.cpp"))
FLAGS = ("-std=c++17", "-O0", "-g1", "-ffp-contract=off", "-fPIC", "-shared",
         "-Wno-unknown-pragmas", "-Wno-psabi",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         "-fno-sanitize=null,pointer-overflow,object-size",  # a fifth of the time; ASan sees it
         "-fno-gnu-unique")  # each library has its own shared memory, sized by its constants
if shutil.which("ld.gold"):
    FLAGS += ("-fuse-ld=gold",)  # half of a link, a tenth of a kernel
PREFIX = "sim_"


ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, int schedule,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, {2}); }}
"""


def shim(folder):
    """A folder in `folder` with the shim compiled ahead, which is more than half of what a small
    kernel takes; made if no process has."""
    text = SHIM.read_bytes() + SCHEDULER.read_bytes()
    place = Path(folder) / hashlib.sha256(text).hexdigest()[:12]
    ahead = place / f"{SHIM.name}.gch"
    if not ahead.exists():
        place.mkdir(exist_ok=True)
        shutil.copy(SHIM, place)
        # no kernel's text, it is not looked into, but tells AddressSanitizer of its fibers
        put(place / "scheduler.o", "-w", "-c", "-O2", "-fvisibility=hidden", "-fno-sanitize=all",
            "-D__SANITIZE_ADDRESS__", str(SCHEDULER))
        put(ahead, "-w", "-x", "c++-header", str(SHIM))
    return place


@cache
def own_shim():
    """That of this process."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return shim(folder)


def put(file, *arguments):
    """Compile to `file`, which is there at once: another process may look."""
    made = file.with_suffix(f".{os.getpid()}")
    environment = os.environ.copy()
    environment.pop("LD_PRELOAD", None)  # under the sanitizer g++ itself takes twice as long
    subprocess.run(["g++", *FLAGS, *arguments, "-o", str(made)], check=True, env=environment)
    os.replace(made, file)


def build(folder, name, letter, constants, plant=None, entry=ENTRY, ahead=None, shared=0):
    """A shared library with `sim_<name>(blocks, threads, schedule, numbers)`, or with another
    `entry`; returns its path. `plant` = (old, new) puts a bug into the text first. `ahead`: a
    shim's folder. `shared`: the bytes of dynamic shared memory, where `entry` is not told.
    """
    text = _sources.program(name, TYPES[letter].cpp, constants)
    if plant:
        assert plant[0] in text, plant
        text = text.replace(*plant)
    values = "_".join(f"{k}{v}" for k, v in constants.items())
    stem = Path(folder) / f"{name}_{letter}_{values}{'_bug' * bool(plant)}"
    cpp, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    cpp.write_text(f'#include "{SHIM.name}"\n{text}{entry.format(PREFIX + name, name, shared)}')
    put_library(library, cpp, ahead)
    return library


def put_library(library, cpp, ahead=None):
    """Compile a text that includes the shim."""
    place = ahead or own_shim()
    put(library, f"-I{place}", str(cpp), str(place / "scheduler.o"))


def runtimes():
    """LD_PRELOAD for a Python that loads such a library."""
    return " ".join(
        subprocess.run(["g++", f"-print-file-name={lib}"], check=True, capture_output=True,
                       text=True).stdout.strip() for lib in ("libasan.so", "libubsan.so"))
