#!/usr/bin/env python3
"""Generates a made-up next minor of plugin_api: usage: next_minor.py OUTPUT_INCLUDE_DIR.

Copies plugin_api/include, appends a field to every struct and every record of kernel IR and a slot
to every table, and increments PGR_API_MINOR and PGR_IR_VERSION, as a real minor would. The tests
combine hosts and plugins built with it and with today's headers."""
import pathlib
import re
import sys

HEADERS = pathlib.Path("plugin_api/include")
SLOT = "  pgr_status (*next_minor_slot)(void); /* what the next minor adds */\n"
FIELD = "  uint64_t next_minor_field; /* what the next minor adds */\n"


def numbered_structs():
    text = (HEADERS / "plugrad/plugin_api/status.h").read_text()
    return set(re.findall(r"^  X\(\w+, +(pgr_\w+), +\d+\)", text, re.M))


def records():
    text = (HEADERS / "plugrad/plugin_api/kernel_ir.h").read_text()
    return set(re.findall(r"^\} (pgr_ir_\w+);", text, re.M))


def grown(text, structs, seen):
    def add(match):
        name = match.group(1)
        if name not in structs:
            return match.group(0)
        seen.add(name)
        return (SLOT if name.endswith("_api") else FIELD) + match.group(0)
    return re.sub(r"^\} (pgr_\w+);", add, text, flags=re.M)


def next_number(match):
    return f"{match.group(1)}{int(match.group(2)) + 1}u"


def write(output):
    structs, seen, minors = numbered_structs() | records(), set(), 0
    for header in sorted(HEADERS.rglob("*.h")):
        text, found = re.subn(r"(#define PGR_(?:API_MINOR|IR_VERSION) )(\d+)u", next_number, header.read_text())
        minors += found
        target = output / header.relative_to(HEADERS)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = grown(text, structs, seen)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    if minors != 2 or seen != structs or not structs:
        sys.exit(f"next_minor: the headers were not understood; missing {sorted(structs - seen)}")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
