"""show_config(): what blasx found on this machine."""

import importlib.util
import platform

import numpy as np
import scipy

from . import _lapack


def show_config():
    """Print versions, the CPU's LAPACK, the GPUs and where compiled kernels are kept.

    Works everywhere: without CuPy or without a GPU it says so.
    """
    from . import __version__
    print(f"blasx {__version__}, Python {platform.python_version()}, {platform.machine()}")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}")
    blas = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
    print(f"CPU: LAPACK of SciPy ({blas['name']} {blas['version']}), "
          f"{8 * _lapack.INT.itemsize}-bit integers")
    print("GPU:", _gpu())


def _gpu():
    if importlib.util.find_spec("cupy") is None:
        return "none; CuPy is not installed (pip install blasx[cuda13] or blasx[cuda12])"
    try:
        import cupy
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # a missing driver, a broken install: the reason is the answer
        return f"none; {type(error).__name__}: {error}"
    version = cupy.cuda.runtime.runtimeGetVersion()
    lines = [f"CuPy {cupy.__version__}, CUDA {version // 1000}.{version % 1000 // 10}"]
    for i in range(count):
        p = cupy.cuda.runtime.getDeviceProperties(i)
        lines.append(f"  {i}: {p['name'].decode()}, {p['totalGlobalMem'] / 2**30:.0f} GiB, "
                     f"{p['multiProcessorCount']} multiprocessors, sm_{p['major']}{p['minor']}")
    return "\n".join(lines)
