#!/usr/bin/env python3
"""leaks.py REPORT...: prints the leaks of LeakSanitizer's reports that plugrad's code allocated.

CPython and NumPy leave memory behind at exit, and most stacks of plugrad's functions have frames of
CPython, so that a suppression file would hide plugrad's leaks with theirs. A leak is plugrad's if one of its
libraries is among the first frames, before CPython evaluates the function that called it. The exit
status is 1 if there is one. docs/python-packaging.md has the commands.
"""
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^(?:Direct|Indirect) leak of .*?(?=^\n|\Z)", re.M | re.S)
OURS = re.compile(r"/_plugrad\.|/libplugrad_|/_nb_backend")  # nanobind makes the objects
EVALUATION = re.compile(r"\b_PyEval_EvalFrame|\bPyEval_EvalCode")


def is_ours(block: str) -> bool:
    for frame in block.splitlines()[1:]:
        if OURS.search(frame):
            return True
        if EVALUATION.search(frame):
            return False
    return False


def main(*paths: str) -> int:
    blocks = [block for path in paths for block in BLOCK.findall(Path(path).read_text())]
    found = [block for block in blocks if is_ours(block)]
    print(*found, sep="\n")
    print(f"{len(blocks)} leaks, {len(found)} of plugrad's")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
