#!/usr/bin/env python3
"""Tests that the append-only checker detects: a field inserted in the middle, resized, removed or
renamed, and a struct renumbered or removed; and that it accepts growth at the ends."""
import pathlib
import sys

import layout

GOLDEN = pathlib.Path("tests/abi/layout/layout.golden").read_text()


def shifted(line, by):
    name, offset, size = line.split()
    return f"  {name} {int(offset) + by} {size}"


def inserted_field():
    """Inserts a field in front of the key of pgr_option."""
    lines = GOLDEN.splitlines()
    at = lines.index("pgr_option 48")
    lines[at] = "pgr_option 56"
    fields = lines[at + 4:at + 6]
    lines[at + 4:at + 6] = ["  inserted 16 8"] + [shifted(f, 8) for f in fields]
    return "\n".join(lines)


def replaced(old, new):
    assert GOLDEN.count(old) == 1, (old, GOLDEN.count(old))
    return GOLDEN.replace(old, new)


# An int32 in a struct's former padding: sizeof is unchanged, the field list is not.
BREACHES = {
    "a field in the middle": inserted_field(),
    "a field of another size": replaced("  native_code 44 4\n", "  native_code 44 2\n"),
    "a field of another name": replaced("  native_code 44 4\n", "  vendor_code 44 4\n"),
    "a field is gone": replaced("  native_code 44 4\n", ""),
    "two fields swapped": replaced("  code 40 4\n  native_code 44 4\n", "  native_code 40 4\n  code 44 4\n"),
    "a struct renumbered": replaced("number pgr_option 6\n", "number pgr_option 28\n"),
    "two structs swap numbers": replaced("number pgr_option 6\nnumber pgr_option_schema 7\n",
                                         "number pgr_option 7\nnumber pgr_option_schema 6\n"),
    "a number is gone": replaced("number pgr_counter 27\n", ""),
}
GROWTH = {
    "nothing": GOLDEN,
    "a field at the end": replaced("pgr_error 48\n", "pgr_error 56\n").replace(
        "  native_code 44 4\n", "  native_code 44 4\n  added 48 8\n"),
    "a struct at the end": GOLDEN + "number pgr_new 28\n",
}


def main():
    golden, failures = layout.parse(GOLDEN), []
    for what, text in BREACHES.items():
        if not list(layout.compare(golden, layout.parse(text))):
            failures.append(f"not seen: {what}")
    for what, text in GROWTH.items():
        failures += [f"refused, {what}: {b}" for b in layout.compare(golden, layout.parse(text))]
    print("\n".join(failures) or f"layout checker: sees {len(BREACHES)} breaches, allows {len(GROWTH)} kinds of growth")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
