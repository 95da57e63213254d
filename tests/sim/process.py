"""Programs of this folder under AddressSanitizer and UBSan, which libraries that build.py made need
from their process's beginning.

A process of pytest has one such Python, which has imported what takes longest, and forks for every
run: imports were a tenth of the time of all tests.
"""

import atexit
import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]


def sanitized():
    """The environment of a process that may load what build.py makes; the sanitizer sees all of
    Python's memory, but does not note who in the interpreter asked for it."""
    from .build import runtimes
    options = "detect_leaks=0:quarantine_size_mb=16:malloc_context_size=1"
    return os.environ | {"LD_PRELOAD": runtimes(), "ASAN_OPTIONS": options,
                         "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1",
                         "PYTHONPATH": str(ROOT)}


@cache
def parent():
    """The Python that forks."""
    made = subprocess.Popen([sys.executable, "-m", "tests.sim.process"], cwd=ROOT, text=True,
                            env=sanitized(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(made.stdin.close)
    return made


def under_sanitizers(program, *arguments):
    """A module of this folder, or the text of a program, with these arguments: returncode, stdout,
    stderr."""
    process = parent()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("stdout", "stderr")]
        asked = [program, *map(str, arguments)]
        process.stdin.write(json.dumps([asked, *map(str, files)]) + "\n")
        process.stdin.flush()
        returncode = int(process.stdout.readline())
        return SimpleNamespace(returncode=returncode, stdout=files[0].read_text(),
                               stderr=files[1].read_text(errors="replace"))


def child(asked, out, err):
    """The run itself; does not return."""
    for file, number in (out, 1), (err, 2):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    code = 0
    try:
        sys.argv = asked
        if asked[0].isidentifier():
            runpy.run_module(f"tests.sim.{asked[0]}", run_name="__main__", alter_sys=True)
        else:
            exec(compile(asked[0], "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main():
    import blasx.batched._block  # noqa: F401
    import testing.cases  # noqa: F401
    from tests.sim import gpu  # noqa: F401
    gc.freeze()  # what is imported is no garbage of a child's
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
