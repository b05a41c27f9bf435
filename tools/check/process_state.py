#!/usr/bin/env python3
"""Checks that docs/decisions/process-wide-state.md lists every mutable object of core that outlives
a call, with a reason.

Finds thread_local objects, mutable static locals, and mutable namespace-scope objects of standard
library types."""
import re

import tree

PAGE = "docs/decisions/process-wide-state.md"
OBJECT = re.compile(
    r"^(?:(?P<thread>\s*(?:static )?thread_local )|(?P<local>\s+static (?!constexpr|thread_local))"
    r"|(?P<global>(?:static |inline )*std::(?:atomic|mutex|recursive_mutex|once_flag|map|set|vector|string|unique_ptr|shared_ptr)\b))"
    r"(?P<rest>[^(]*?)\b(?P<name>\w+)(?: =|;|\{)")


def objects(path):
    for line in tree.read(path).splitlines():
        found = OBJECT.match(line)
        if not found or re.match(r"\s*static const(?:expr)? (?!.*\* ?const)", line) or " constexpr " in line:
            continue
        if found["global"] and re.search(r"\bconst\b", line.split(found["name"])[0]):
            continue
        yield found["name"]


def main():
    found = {(path.relative_to("core/src").as_posix(), name)
             for path in tree.sources("core") if "src" in path.parts for name in objects(path)}
    listed = set()
    for line in tree.read(PAGE).splitlines():
        row = re.match(r"\| `([\w/.]+)` \| ([^|]+) \|", line)
        if row:
            listed |= {(row[1], name) for name in re.findall(r"`(\w+)`", row[2])}
    breaches = [f"core/src/{path}: {name} outlives a call: give it an owner, or a row in {PAGE}"
                for path, name in sorted(found - listed)]
    breaches += [f"{PAGE}: {path} has no {name} any more" for path, name in sorted(listed - found)]
    tree.finish("process_state", breaches, f"{len(found)} objects")


main()
