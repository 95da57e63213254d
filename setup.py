"""The compiled loop of blasx/_loop_build.py; all else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["blasx/_loop_build.py:ffi"])
