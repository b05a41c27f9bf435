"""Prints the directory to give to CMake as CMAKE_PREFIX_PATH: python -m plugrad_backend."""
from . import prefix

print(prefix)
