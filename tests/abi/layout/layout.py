#!/usr/bin/env python3
"""Checks that the layout of plugin_api only grows: usage: layout.py LAYOUT_PROGRAM GOLDEN_FILE.

Every field in the golden file keeps its offset and size, and every struct its number. New fields
follow the last one of a struct; new structs and numbers follow the last. Additions must be in the
golden file.
To write a new golden file: build/dev/tests/pgr_abi_layout > tests/abi/layout/layout.golden"""
import pathlib
import re
import subprocess
import sys


def parse(text):
    """{struct: [(field, offset, size)]}, {struct: number}"""
    structs, numbers, current = {}, {}, None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("  "):
            current.append((words[0], int(words[1]), int(words[2])))
        elif words[0] == "number":
            numbers[words[1]] = int(words[2])
        else:
            current = structs[words[0]] = []
    return structs, numbers


def compare(golden, now):
    for name, fields in golden[0].items():
        if name not in now[0]:
            yield f"{name} is gone"
            continue
        for index, field in enumerate(fields):
            found = now[0][name][index] if index < len(now[0][name]) else None
            if found != field:
                yield f"{name}: field {index} was {field} (name, offset, size), is {found}"
    for name, number in golden[1].items():
        if now[1].get(name) != number:
            yield f"{name}: its number was {number}, is {now[1].get(name)}"


def unlisted(now):
    """Structs in the headers that layout_fields.h lacks."""
    for header in sorted(pathlib.Path("plugin_api/include").rglob("*.h")):
        for name in re.findall(r"^\} (pgr_\w+);", header.read_text(), re.M):
            if name not in now[0]:
                yield f"{name} of {header.name} is not in layout_fields.h"


def main():
    program, golden_file = sys.argv[1], pathlib.Path(sys.argv[2])
    done = subprocess.run([program], capture_output=True, text=True)
    breaches = done.stderr.splitlines()
    now = parse(done.stdout)
    golden_text = golden_file.read_text()
    breaches += list(compare(parse(golden_text), now)) + list(unlisted(now))
    if sorted(now[1].values()) != list(range(1, len(now[1]) + 1)):
        breaches.append("struct numbers are not 1, 2, 3, …")
    if not breaches and golden_text != done.stdout:
        breaches.append(f"{golden_file} lacks what is new: write it anew (see {sys.argv[0]})")
    print("\n".join(breaches) or f"layout: {len(now[0])} structs as frozen")
    sys.exit(bool(breaches or done.returncode))


if __name__ == "__main__":
    main()
