#!/usr/bin/env python3
"""Runs tests that import tinygrad on plugrad: run.py PATH/test_ops.py [argument of unittest…]

plugrad must be importable (pip install plugrad, or PYTHONPATH=build/python); DEV names the device.
"""
import runpy
import sys
from pathlib import Path


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, str(Path(__file__).parent))
    path = Path(sys.argv[1]).resolve()
    sys.argv = [str(path), *sys.argv[2:]]
    runpy.run_path(str(path), run_name="__main__")


main()
