#!/usr/bin/env python3
"""Compiles each header of plugin_api by itself in every language mode: usage: header_matrix.py
INCLUDE_DIR.

C89 (with 64-bit integers) to C11 and C++98 to C++20, with every installed C and C++ compiler;
warnings, including padding, are errors. Headers include only <stddef.h>, <stdint.h> and each
other."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

C_MODES = ["c89", "c99", "c11"]
CXX_MODES = ["c++98", "c++11", "c++14", "c++17", "c++20"]
FLAGS = ["-Wall", "-Wextra", "-pedantic-errors", "-Werror", "-Wpadded", "-Wno-long-long", "-fsyntax-only"]
ALLOWED = re.compile(r'<stddef\.h>|<stdint\.h>|"plugrad/plugin_api/\w+\.h"')
COMPILERS = ["gcc", "clang", "clang-19"]


def compile_header(compiler, language, mode, include, header):
    source = f'#include "{header}"\n'
    command = [compiler, f"-std={mode}", "-x", language, "-I", str(include), *FLAGS, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{compiler} -std={mode} {header}:\n{done.stderr}"


def include_breaches(path):
    for line in path.read_text().splitlines():
        if line.startswith("#include") and not ALLOWED.search(line):
            yield f"{path.name}: {line}"


def main():
    include = pathlib.Path(sys.argv[1])
    headers = sorted(include.rglob("*.h"))
    compilers = [c for c in COMPILERS if shutil.which(c)]
    jobs = [(c, language, mode, include, header.relative_to(include))
            for c in compilers
            for language, modes in (("c", C_MODES), ("c++", CXX_MODES))
            for mode in modes for header in headers]
    breaches = [b for h in headers for b in include_breaches(h)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        breaches += [b for b in pool.map(lambda job: compile_header(*job), jobs) if b]
    if not jobs:
        breaches.append("no compiler or no header found")
    print("\n".join(breaches) or f"header matrix: {len(jobs)} compilations by {', '.join(compilers)}")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
