"""The CPU's core (blasx/core) under sanitizers, all widths compiled for what every machine has."""

import subprocess
from pathlib import Path

from blasx import _batch_build

FLAGS = (*_batch_build.FLAGS, "-O0", "-g1", "-DANY_MACHINE", "-fPIC", "-shared",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build(folder, plant=None):
    """A shared library of blasx/core; returns its path. `plant` = (file, old, new) puts a bug in
    first, and leaves the wider vectors out, which are checked last."""
    source = Path(folder) / ("core_bug" if plant else "core")
    source.mkdir()
    for file in _batch_build.CORE.iterdir():
        text = file.read_text()
        if plant and plant[0] == file.name:
            assert plant[1] in text, plant
            text = text.replace(*plant[1:])
        if plant:
            text = text.replace("#define WIDER\n", "")
        (source / file.name).write_text(text)
    library = source.with_suffix(".so")
    subprocess.run(["gcc", *FLAGS, str(source / "batch.c"), "-o", str(library)], check=True)
    return library
