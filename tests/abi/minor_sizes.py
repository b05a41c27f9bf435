#!/usr/bin/env python3
"""Writes the size of every struct at each minor: usage: minor_sizes.py OUTPUT_HEADER.

Reads tests/abi/layout/layout.golden (this minor) and tests/abi/kept/1.N/layout.golden (earlier
minors) and writes a table with which a host imitates any of them."""
import pathlib
import re
import sys

TESTS = pathlib.Path("tests/abi")


def minor_now():
    text = pathlib.Path("plugin_api/include/plugrad/plugin_api/plugin.h").read_text()
    return int(re.search(r"#define PGR_API_MINOR (\d+)u", text).group(1))


def goldens():
    kept = {int(p.parent.name.split(".")[1]): p for p in sorted(TESTS.glob("kept/1.*/layout.golden"))}
    return {**kept, minor_now(): TESTS / "layout/layout.golden"}


def rows():
    for minor, golden in sorted(goldens().items()):
        sizes, numbers = {}, {}
        for line in golden.read_text().splitlines():
            words = line.split()
            if line.startswith("number "):
                numbers[words[1]] = int(words[2])
            elif not line.startswith(" "):
                sizes[words[0]] = int(words[1])
        for name, number in sorted(numbers.items(), key=lambda row: row[1]):
            yield f"  {{{minor}, {number}, {sizes[name]}}}, /* {name} */\n"


def main():
    output = pathlib.Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    text = ("/* minor, struct id, size: written by tests/abi/minor_sizes.py */\n"
            "static const struct { unsigned minor, struct_id, size; } kMinorSizes[] = {\n" +
            "".join(rows()) + "};\n")
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
