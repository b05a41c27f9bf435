#!/usr/bin/env python3
"""Measures calls from Python against C++, PyTorch and tinygrad, in turns.

    bench/python/compare.py [--prefix INSTALLATION] [--torch PYTHON] [--tinygrad PYTHON] [--turns N]

Runs with a Python that has plugrad and NumPy; the two others may be in interpreters of their own.
INSTALLATION has plugrad's headers and libraries for the program in C++ (default: plugrad_backend).
Each turn starts every process once; each number of a process is a median of rounds. The table
has the least and the median of the turns. An import is a fresh process, with files in the page cache.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
IMPORT = ("import time; start = time.perf_counter(); import {}; "
          "print(time.perf_counter() - start)")
NAMES = {"import": "import in a fresh process", "record": "a + b, recorded",
         "value": "a + b of 4 floats to a list (C++: a vector)",
         "value as an array": "a + b of 4 floats to a NumPy array",
         "jit": "jitted call of 60 kernels", "to tensor, copy": "NumPy to tensor, 64 MiB, copied",
         "to tensor, in place": "NumPy to tensor, 64 MiB, in place",
         "to array, copy": "tensor to NumPy, 64 MiB, copied",
         "to array, in place": "tensor to NumPy, 64 MiB, in place"}
LIBRARIES = ["plugrad", "C++", "torch", "tinygrad"]


def compile_calls(prefix: Path, folder: str) -> list[str]:
    program = f"{folder}/calls"
    library = prefix / "lib"
    subprocess.run(["c++", "-std=c++20", "-O2", str(HERE / "calls.cpp"), f"-I{prefix / 'include'}",
                    f"-L{library}", "-lplugrad_core", f"-Wl,-rpath,{library.resolve()}", "-o",
                    program], check=True)
    return [program]


def output(command: list[str]) -> str:
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout.splitlines()[-1]


def measure(pythons: dict[str, str], calls: list[str],
            turns: int) -> dict[tuple[str, str], list[float]]:
    """(what, library) -> seconds of each turn."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(turns):
        for library, python in pythons.items():
            for _ in range(3):
                seconds = float(output([python, "-c", IMPORT.format(library)]))
                found["import", library].append(seconds)
            printed = output([python, str(HERE / "workers.py"), library])
            for what, seconds in json.loads(printed).items():
                found[what, library].append(seconds)
        for what, seconds in json.loads(output(calls)).items():
            found[what, "C++"].append(seconds)
        print(f"turn {turn + 1} of {turns}", file=sys.stderr)
    return found


def text_of(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, help="an installation of plugrad")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--tinygrad", metavar="PYTHON", help="an interpreter that has tinygrad")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    if given.prefix is None:
        import plugrad_backend
        given.prefix = Path(plugrad_backend.prefix)
    pythons = {"plugrad": sys.executable}
    pythons |= {name: python for name in ("torch", "tinygrad") if (python := getattr(given, name))}
    with tempfile.TemporaryDirectory() as folder:
        found = measure(pythons, compile_calls(given.prefix, folder), given.turns)
    print("| what | " + " | ".join(LIBRARIES) + " |\n|---|" + "---|" * len(LIBRARIES))
    for what, name in NAMES.items():
        cells = []
        for library in LIBRARIES:
            seconds = found.get((what, library))
            cells.append(f"{text_of(min(seconds))} ({text_of(statistics.median(seconds))})"
                         if seconds else "")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors", file=sys.stderr)


if __name__ == "__main__":
    main()
