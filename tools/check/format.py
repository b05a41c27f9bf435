#!/usr/bin/env python3
"""Checks that clang-format would not change any C++ file; --write formats the files.

plugin_api is frozen and excluded. Without clang-format 19 the check is skipped (exit 77): other
versions break lines differently."""
import os
import re
import shutil
import subprocess
import sys
from concurrent import futures

import tree

FOLDERS = ("core", "sdk", "plugins", "bench", "tools", "tests", "docs", "python")
VERSION = 19
SKIPPED = 77
PARTS = 16  # number of parts of the file list, processed in parallel


def formatter():
    """The clang-format of the required version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and re.search(rf"version {VERSION}\.", subprocess.run(
                [path, "--version"], capture_output=True, text=True, check=True).stdout):
            return path
    return None


def unformatted(program, files):
    """The files that the program would change, from its warnings."""
    done = subprocess.run([program, "--dry-run", "--ferror-limit=1", *files], cwd=tree.ROOT, capture_output=True,
                          text=True, check=True)
    return {line.split(":", 1)[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line}


def main(arguments):
    if arguments not in ([], ["--write"]):
        sys.exit("usage: tools/check/format.py [--write]")
    program = formatter()
    if program is None:
        print(f"format: skipped: no clang-format {VERSION} here; tools/setup --all installs it")
        sys.exit(SKIPPED)
    files = [str(f) for f in tree.sources(*FOLDERS) if f.suffix in (".h", ".cpp")]
    if arguments:
        subprocess.run([program, "-i", *files], cwd=tree.ROOT, check=True)
    parts = [files[i::PARTS] for i in range(PARTS)]
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        breaches = sorted(set().union(*pool.map(lambda part: unformatted(program, part), parts)))
    tree.finish("format", [f"{f}: tools/check/format.py --write formats it" for f in breaches], f"{len(files)} files")


if __name__ == "__main__":
    main(sys.argv[1:])
