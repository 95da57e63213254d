"""The folder that is ours on a user's disk: compiled kernels, and what blasx.tune measured."""

import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path


@cache
def folder():
    """A folder that is ours and that nobody else can write to, or None."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
        return _private(base / "blasx" / "kernels")
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return (_private(Path(caches) / "blasx")
            or _private(Path(tempfile.gettempdir()) / f"blasx-{os.getuid()}"))


def _private(folder):
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or not os.access(folder, os.W_OK):
            return None
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return None
        return folder
    except OSError:
        return None


def put(file, content):
    """Several processes may write the same file: each its own, put in place at once."""
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
        os.replace(temporary, file)
    except OSError:
        os.unlink(temporary)
        raise
