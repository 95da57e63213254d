"""What all tests share: one BLAS thread, reproducible Hypothesis, and where tests run.

`pytest` runs everything that this machine can; `pytest -m gpu` what needs a GPU, the tests by
property on CuPy arrays included.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402

settings.register_profile(
    "blasx", derandomize=True, deadline=None, max_examples=25, database=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking costs minutes; a failure prints its draw
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.load_profile("blasx")


def gpu_seen():
    """True if CuPy is there and finds a device."""
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # whatever a CUDA that is half installed raises: there is no GPU to test on
        return False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`-n 2`: a process that has nothing left takes from the other, which may be at the kernels."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


# Files whose tests take seconds each
LONG = ("test_kernels", "test_large", "test_simulated", "test_wheel")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.name.startswith(LONG))  # they end with short ones
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not gpu_seen():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="CuPy finds no GPU"))


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def xp(request):
    """NumPy, and CuPy on a machine that has a GPU."""
    return np if request.param == "cpu" else pytest.importorskip("cupy")


@pytest.fixture(scope="session")
def simulated(tmp_path_factory):
    """A folder for the kernels of the simulated GPU (tests/sim/gpu.py), of all processes of this
    run: what one has built serves the others."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "simulated"
    place.mkdir(exist_ok=True)
    return place
