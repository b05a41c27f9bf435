#!/usr/bin/env python3
"""Checks that the licence of every file is stated.

The first line of the SDK's headers says Apache-2.0, that of the template's sources 0BSD.
plugin_api's headers are frozen without a licence line, so that REUSE.toml names theirs. LICENSE is
the text of LICENSES/Apache-2.0.txt."""
import re
import tomllib

import tree

# Split, so that licence scanners do not match this line.
TAG = "SPDX-" + "License-Identifier: "
SOURCES = {".c", ".cpp", ".h", ".txt"}


def licence_of(text):
    """The identifier in a first line, or None."""
    found = re.search(TAG + r"(\S+)", text.partition("\n")[0])
    return found[1] if found else None


def expected(path):
    """The required licence in the first line, or None if no line is required."""
    if path.is_relative_to("sdk/include"):
        return "Apache-2.0"
    if path.is_relative_to("sdk/template") and path.suffix in SOURCES:
        return "0BSD"
    return None


def covered(pattern):
    """The licence in REUSE.toml for a pattern of paths."""
    entries = tomllib.loads(tree.read("REUSE.toml"))["annotations"]
    return next((entry["SPDX-License-Identifier"] for entry in entries if entry["path"] == pattern), None)


def main():
    breaches, files = [], [f for f in tree.tracked_files() if expected(f)]
    for path in files:
        found = licence_of(tree.read(path))
        if found != expected(path):
            breaches.append(f"{path}: the first line names {found or 'no licence'}; it is under {expected(path)}")
    for pattern, licence in (("**", "Apache-2.0"), ("plugin_api/**", "Apache-2.0"), ("sdk/template/**", "0BSD")):
        if covered(pattern) != licence:
            breaches.append(f"REUSE.toml: {pattern} is under {covered(pattern)}, not {licence}")
    if tree.read("LICENSE") != tree.read("LICENSES/Apache-2.0.txt"):
        breaches.append("LICENSE is not LICENSES/Apache-2.0.txt")
    tree.finish("licences", breaches, f"{len(files)} files")


if __name__ == "__main__":
    main()
