#!/usr/bin/env python3
"""Checks documents: links have targets, public declarations have comments, C++ blocks are compiled,
spans of traces are listed.

A C++ block with a main() must equal a program of docs/examples; any other block must be a part of
one. docs/CMakeLists.txt compiles these programs, and ctest runs them."""
import pathlib
import re

import tree

BUILD, EXAMPLES = pathlib.Path("docs/CMakeLists.txt"), pathlib.Path("docs/examples")
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
CPP_BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)
SPANS = pathlib.Path("docs/trace-format.md")
SPAN_ROW = re.compile(r"^\| `([^`]+)` \| \d (\w+) \|", re.M)
SPAN = re.compile(r"\btrace::(?:Scope \w+|span|span_between)\(\s*(?:trace::)?Category::(\w+),\s*\"([^\"]+)\"")
DECLARATION = re.compile(r"^PLUGRAD_API [^;{]*\(", re.M)


def documents():
    return [f for f in tree.tracked_files() if f.suffix == ".md"]


def link_breaches(path):
    for target in LINK.findall(tree.read(path)):
        if "://" in target or target.startswith("mailto:"):
            continue
        if not (tree.ROOT / path.parent / target).exists():
            yield f"{path}: the link to {target} leads nowhere"


def is_part(block, example):
    """True if the lines of the block are consecutive in an example, at any indentation."""
    block, example = block.strip("\n").splitlines(), example.splitlines()
    for start in range(len(example) - len(block) + 1):
        first = example[start]
        indent = first[:len(first) - len(block[0])]
        if not indent.strip() and all((indent + line).rstrip() == other for line, other in zip(block, example[start:])):
            return True
    return False


def example_breaches(path, text, examples):
    """C++ blocks that no compiled example contains; a whole program must be a whole example."""
    for block in CPP_BLOCK.findall(text):
        is_program = "int main(" in block
        if is_program and block.strip() in examples or not is_program and any(is_part(block, e) for e in examples):
            continue
        yield (f"{path}: the {'program' if is_program else 'code'} that starts with '{block.strip().splitlines()[0]}' is not in "
               "an example that docs/CMakeLists.txt compiles")


def compiled_examples():
    """Names of the programs listed in docs/CMakeLists.txt."""
    listed = re.search(r"foreach\(example\s(.*?)\)", tree.read(BUILD), re.S)
    return set(listed[1].split())


def undocumented(path):
    """Free functions of a public header without a comment directly above their group."""
    lines = tree.read(path).splitlines()
    for number, line in enumerate(lines):
        if not DECLARATION.match(line) or " operator" in line:  # operators need no comment
            continue
        above = number - 1
        # Declarations without a blank line between them share the comment above.
        while above >= 0 and lines[above].strip() and not lines[above].lstrip().startswith("//"):
            above -= 1
        commented = above >= 0 and lines[above].lstrip().startswith("//")
        if not commented and "//" not in line:
            yield f"{path}:{number + 1}: a public function without a word of what it does"


def span_breaches(page, sources):
    """Spans of a trace with a fixed name, and the rows of the page that describes them."""
    listed = {(name, category) for name, category in SPAN_ROW.findall(page)}
    recorded = {(name, category.lower()) for text in sources for category, name in SPAN.findall(text)}
    for name, category in sorted(recorded ^ listed):
        what = "has a span that no source records" if (name, category) in listed else "lacks a span of the sources"
        yield f"{SPANS}: {what}: {name} ({category})"


def main():
    breaches, files = [], documents()
    compiled = compiled_examples()
    programs = {f: str(f.relative_to(EXAMPLES).with_suffix("")) for f in tree.tracked_files()
                if EXAMPLES in f.parents and f.suffix == ".cpp"}
    breaches += [f"{f}: {BUILD} does not compile it" for f, name in programs.items()
                 if f.parent == EXAMPLES and name not in compiled]
    examples = {tree.read(f).strip() for f, name in programs.items() if name in compiled}
    blocks = 0
    for path in files:
        breaches += link_breaches(path)
        breaches += example_breaches(path, tree.read(path), examples)
        blocks += len(CPP_BLOCK.findall(tree.read(path)))
    breaches += span_breaches(tree.read(SPANS), [tree.read(f) for f in tree.sources("core")])
    headers = [f for f in tree.sources("core") if f.parts[1] == "include"]
    for path in headers:
        breaches += undocumented(path)
    tree.finish("docs", breaches, f"{len(files)} documents, {blocks} blocks of C++, {len(headers)} public headers")


if __name__ == "__main__":
    main()
