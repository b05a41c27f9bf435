#!/usr/bin/env python3
"""Checks that no file contains a local path, and that scripts are executable."""
import os
import re

import tree

MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.$}])/(work|home|root|Users|mnt|farm)/\w")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BINARY = {".png", ".webp", ".gz", ".safetensors", ".bin"}


def breaches_of(path):
    text = tree.read(path)
    suspect = MACHINE_PATH.search(text) or UNFINISHED.search(text)
    for number, line in enumerate(text.splitlines() if suspect else [], 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of one machine: {line.strip()[:100]}"
        if UNFINISHED.search(line) and path.suffix in tree.SOURCE_SUFFIXES:
            yield f"{path}:{number}: unfinished work belongs in an issue: {line.strip()[:100]}"
    if text.startswith("#!") and not os.access(tree.ROOT / path, os.X_OK):
        yield f"{path}: has an interpreter line but is not executable"


def main():
    own = os.path.relpath(__file__, tree.ROOT)
    files = [f for f in tree.tracked_files() if f.suffix not in BINARY and str(f) != own]
    tree.finish("portable", [b for f in files for b in breaches_of(f)], f"{len(files)} files")


if __name__ == "__main__":
    main()
