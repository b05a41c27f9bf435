#!/usr/bin/env python3
"""Checks sizes of files, functions and lines; prints the size of core, the op count and the option
count.

Files: warn over 300 lines, fail over 500. Functions: warn over 40, fail over 70. Lines: warn over
100 columns, fail over 140. Tables (op lists, test vectors) are exempt from the limits on files and
lines; lines between clang-format marks from the limit on lines. Folders: fail over 25 files."""
import collections
import re
import statistics

import tree

FILE_WARN, FILE_FAIL = 300, 500
FUNCTION_WARN, FUNCTION_FAIL = 40, 70
COLUMNS_WARN, COLUMNS_FAIL = 100, 140
TABLES = {"ops.def", "kernel_ops.h", "vectors.h", "numpy_files.h"}
TABLE_FOLDER = "tests/ops/rows"  # rows of op cases
FOLDER_FAIL = 25
FOLDERS_EXEMPT = {
    "docs": "pages, which the README lists",
    "docs/decisions": "one page a decision, read by name",
    "core/include/plugrad": "users include <plugrad/NAME.h>",
}
STRIP = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                   r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)
MARKS = re.compile(r"[{};\n]")
CONTROL = re.compile(r"\b(if|for|while|switch|catch|do|else|try)\b\s*(constexpr\s*)?(\(|$)")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$")


def blank(text):
    """Replaces comments and literals by spaces and keeps line breaks, so that all remaining braces
    are code."""
    return STRIP.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def functions(text):
    """(first line, length) of every outermost function body, found by matching braces."""
    code, stack, found = blank(text), [], []
    start_of_statement = 0
    for match in MARKS.finditer(code):
        at, char = match.start(), match.group()
        if char == "{":
            head = code[start_of_statement:at].strip()
            inside = any(kind == "function" for kind, _ in stack)
            is_function = (not inside and ")" in head and not SCOPE.search(head)
                           and not CONTROL.match(head) and not head.startswith("#")
                           and "=" not in head.split("(", 1)[0].replace("operator", "op"))
            line = code.count("\n", 0, start_of_statement + len(code[start_of_statement:at]) -
                              len(code[start_of_statement:at].lstrip())) + 1
            stack.append(("function" if is_function else "scope", line))
            start_of_statement = at + 1
        elif char == "}" and stack:
            kind, line = stack.pop()
            if kind == "function":
                found.append((line, code.count("\n", 0, at) + 2 - line))
            start_of_statement = at + 1
        elif char == ";" or (char == "\n" and code[start_of_statement:at].lstrip().startswith("#")
                             and not code[start_of_statement:at].endswith("\\")):
            start_of_statement = at + 1
    return found


def widest_line(lines):
    """Line number and width; tables between clang-format marks are excluded."""
    widest, columns, by_hand = 0, 0, False
    for number, line in enumerate(lines, 1):
        if "clang-format off" in line or "clang-format on" in line:
            by_hand = "off" in line
        elif not by_hand and len(line) > columns:
            widest, columns = number, len(line)
    return widest, columns


def check_file(path, warnings, breaches):
    text = tree.read(path)
    lines = text.splitlines()
    if path.name not in TABLES and not (path.suffix == ".cpp" and path.parent.as_posix() == TABLE_FOLDER):
        if len(lines) > FILE_FAIL:
            breaches.append(f"{path}: {len(lines)} lines; at most {FILE_FAIL}: split it by subject")
        elif len(lines) > FILE_WARN:
            warnings.append(f"{path}: {len(lines)} lines")
        widest, columns = widest_line(lines)
        if columns > COLUMNS_WARN:
            found = breaches if columns > COLUMNS_FAIL else warnings
            found.append(f"{path}:{widest}: a line of {columns} columns")
    lengths = functions(text)
    for line, length in lengths:
        if length > FUNCTION_FAIL:
            breaches.append(f"{path}:{line}: a function of {length} lines; at most {FUNCTION_FAIL}")
        elif length > FUNCTION_WARN:
            warnings.append(f"{path}:{line}: a function of {length} lines")
    return len(lines), [length for _, length in lengths]


def folder_breaches(paths):
    """Folders with too many of these files."""
    counts = collections.Counter(path.parent.as_posix() for path in paths)
    for folder, count in sorted(counts.items()):
        if count > FOLDER_FAIL and folder not in FOLDERS_EXEMPT:
            yield f"{folder}: {count} files; at most {FOLDER_FAIL}: put them into folders by subject"


def growth():
    core = sum(len(tree.read(f).splitlines()) for f in tree.sources("core"))
    rows = re.compile(r"^\s*(?:X|OP|GRAPH_OP|PGR_OP|PLUGRAD_OP)\w*\(", re.M)
    ops = sum(len(rows.findall(tree.read(f))) for f in tree.sources("core", "plugin_api")
              if f.name in ("ops.def", "kernel_ops.h"))
    return f"core {core} lines, {ops} op rows"


def main():
    warnings, breaches, sizes, lengths = [], [], [], []
    for path in tree.sources("plugin_api", "sdk", "plugins", "core", "tools", "tests", "bench", "docs", "python"):
        if "frozen" in path.parts:
            continue
        size, own = check_file(path, warnings, breaches)
        sizes.append(size)
        lengths += own
    breaches += folder_breaches(tree.tracked_files())
    for warning in warnings:
        print(f"sizes: warning: {warning}")
    tree.finish("sizes", breaches,
                f"{len(sizes)} files (median {statistics.median(sizes):.0f} lines), {len(lengths)} functions "
                f"(median {statistics.median(lengths):.0f}), {growth()}, {len(warnings)} warning(s)")


if __name__ == "__main__":
    main()
