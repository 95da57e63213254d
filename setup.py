"""The compiled part, blasx/_batch_build.py; all else is in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["blasx/_batch_build.py:ffi"])
