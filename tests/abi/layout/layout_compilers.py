#!/usr/bin/env python3
"""Compares the layouts of gcc and clang: layout.c by each, as C and C++, against layout.golden; and
checks that every kept layout of a release is a prefix of the current one."""
import pathlib
import subprocess
import sys
import tempfile

import layout

COMPILERS = [("gcc", "c"), ("g++", "c++"), ("clang-19", "c"), ("clang++-19", "c++")]


def layout_by(compiler, language, directory):
    program = pathlib.Path(directory) / f"layout-{compiler}"
    subprocess.run([compiler, "-x", language, "-Iplugin_api/include", "-Itests/abi/layout", "tests/abi/layout/layout.c",
                    "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def main():
    golden = pathlib.Path("tests/abi/layout/layout.golden").read_text()
    breaches = []
    with tempfile.TemporaryDirectory() as directory:
        for compiler, language in COMPILERS:
            found = layout_by(compiler, language, directory)
            breaches += [f"{compiler}: {b}" for b in layout.compare(layout.parse(golden), layout.parse(found))]
            if not breaches and found != golden:
                breaches.append(f"{compiler} has more than the golden file")
    kept = sorted(pathlib.Path("tests/abi/kept").glob("*/layout.golden"))
    for old in kept:
        breaches += [f"{old}: {b}" for b in layout.compare(layout.parse(old.read_text()), layout.parse(golden))]
    if not kept:
        breaches.append("no layout of a release is kept")
    print("\n".join(breaches) or f"layout: {', '.join(c for c, _ in COMPILERS)} agree; {len(kept)} kept")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
