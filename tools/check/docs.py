#!/usr/bin/env python3
"""Documents keep their word: links reach a file, public declarations say what they do, shown C++ is
an example that is compiled and run.

A C++ block in README.md or docs/ that has a main() must equal a file of docs/examples, which ctest runs.
"""
import re

import tree

LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
CPP_BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)
DECLARATION = re.compile(r"^PLUGRAD_API [^;{]*\(", re.M)


def documents():
    return [f for f in tree.tracked_files() if f.suffix == ".md"]


def link_breaches(path):
    for target in LINK.findall(tree.read(path)):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (tree.ROOT / path.parent / target).exists():
            yield f"{path}: the link to {target} leads nowhere"


def example_breaches(path, examples):
    for block in CPP_BLOCK.findall(tree.read(path)):
        if "int main(" in block and block.strip() not in examples:
            first = block.strip().splitlines()[0]
            yield f"{path}: the program that starts with '{first}' is not a file of docs/examples"


def undocumented(path):
    """Free functions of a public header without a comment in the lines directly above their group."""
    lines = tree.read(path).splitlines()
    for number, line in enumerate(lines):
        if not DECLARATION.match(line) or " operator" in line:  # an operator's name says what it does
            continue
        above = number - 1
        # A group of declarations without a blank line shares the comment above it.
        while above >= 0 and lines[above].strip() and not lines[above].lstrip().startswith("//"):
            above -= 1
        commented = above >= 0 and lines[above].lstrip().startswith("//")
        if not commented and "//" not in line:
            yield f"{path}:{number + 1}: a public function without a word of what it does"


def main():
    breaches, files = [], documents()
    examples = {tree.read(f).strip() for f in tree.tracked_files() if f.parts[:2] == ("docs", "examples")}
    for path in files:
        breaches += link_breaches(path)
        breaches += example_breaches(path, examples)
    headers = [f for f in tree.sources("core") if f.parts[1] == "include"]
    for path in headers:
        breaches += undocumented(path)
    tree.finish("docs", breaches, f"{len(files)} documents, {len(headers)} public headers")


if __name__ == "__main__":
    main()
