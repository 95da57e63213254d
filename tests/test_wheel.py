"""The wheel: built, installed into a fresh environment, and used from another directory."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import cffi
import numpy
import pip
import pytest
import scipy

ROOT = Path(__file__).parent.parent


def run(*command, cwd, check=True):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy: setuptools leaves its build/ in the source tree, and reads it again."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    files = ["pyproject.toml", "setup.py", "README.md", "LICENSE", "blasx", "kernels", "testing"]
    run("cp", "-r", *files, source, cwd=ROOT)
    for built in source.glob("blasx/*.so"):
        built.unlink()
    core = source / "blasx/_batch_build.py"  # what it is compiled to is tested elsewhere
    core.write_text(core.read_text().replace('"-O3"', '"-O0"'))
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        "-w", out, source, cwd=out)
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The bin/ of an environment with the wheel in it, and NumPy, SciPy and cffi from outside."""
    home = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    (packages,) = home.glob("lib/python*/site-packages")
    outside = {str(Path(m.__file__).parent.parent) for m in (cffi, numpy, pip, scipy)}
    (packages / "outside.pth").write_text("\n".join(outside))
    run(home / "bin/python", "-m", "pip", "install", "-q", "--no-deps", "--no-index",
        "--ignore-installed", wheel, cwd=home)
    return home / "bin"


def test_everything_is_inside(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, package in (("kernels", "blasx/kernels"), ("testing", "blasx/testing"),
                            ("blasx", "blasx")):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".c", ".h", ".cu", ".cuh", ".json"):
                assert f"{package}/{file.relative_to(ROOT / folder).as_posix()}" in names
    assert any(x.startswith("blasx/_batch") and x.endswith(".so") for x in names)
    assert any(x.endswith("LICENSE") for x in names)
    assert not any(x.startswith(("tests/", "bench/", "testing/", "kernels/")) for x in names)


def test_it_computes_from_another_directory(environment, tmp_path):
    done = run(environment / "python", "-c", """
import numpy as np, blasx, pathlib, sys
assert pathlib.Path(blasx.__file__).is_relative_to(sys.prefix), blasx.__file__
lu, piv, info = blasx.dgetrf(np.eye(3) * 2)
assert info == 0 and (lu.diagonal() == 2).all()
assert not blasx.gesv_batched(np.eye(3)[None], np.ones((1, 3)))[3].any()
from blasx.blas import dgemm
import blasx.kernels, blasx.nn, blasx.testing
assert blasx.nn.Conv2d(1, 1, 1).forward(np.ones((1, 1, 2, 2), "f4")).shape == (1, 1, 2, 2)
assert list(pathlib.Path(blasx.kernels.__path__[0]).glob("*.cu"))
blasx.show_config()
""", cwd=tmp_path)
    assert "SciPy" in done.stdout


def test_its_testers_run(environment, tmp_path):
    arguments = ["dgetrf", "-n", "10", "--check", "--device", "cpu"]
    for command in ([environment / "python", "-m", "blasx.testing"], [environment / "blasx-test"]):
        assert "ok" in run(*command, *arguments, cwd=tmp_path).stdout
    wrong = run(environment / "blasx-test", "dnosuch", "-n", "10", cwd=tmp_path, check=False)
    assert wrong.returncode == 1
