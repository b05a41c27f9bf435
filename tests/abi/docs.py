#!/usr/bin/env python3
"""Checks that docs/abi.md mentions every function and struct of plugin_api, and docs/kernel-ir.md
every op, dtype and record."""
import pathlib
import re
import sys

HEADERS = pathlib.Path("plugin_api/include/plugrad/plugin_api")


def missing(document, names):
    text = pathlib.Path(document).read_text()
    words = set(re.findall(r"`([\w.]+)", text))
    return [f"{document} does not mention `{name}`" for name in names if name not in words]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def main():
    texts = {h.stem: without_comments(h.read_text()) for h in sorted(HEADERS.glob("*.h"))}
    abi = "\n".join(text for name, text in texts.items() if not name.startswith("kernel"))
    functions, structs = [], re.findall(r"^\} (pgr_\w+);", abi, re.M)
    for table, body in re.findall(r"typedef struct (pgr_\w+_api) \{(.*?)\n\}", abi, re.S):
        prefix = table.removeprefix("pgr_").removesuffix("_api")
        functions += [f"{prefix}.{name}" for name in re.findall(r"\(\*(\w+)\)", body)]
    statuses = re.findall(r"^  X\((\w+), +\d+, +\"", texts["status"], re.M)
    ops = re.findall(r"^  X\((\w+),", texts["kernel_ops"], re.M)
    dtypes = re.findall(r'^  X\(\w+,.*"(\w+)"\)', texts["kernel_ir"], re.M)
    records = re.findall(r"^\} (pgr_\w+);", texts["kernel_ir"], re.M)
    flags = re.findall(r"^#define (PGR_\w+) \w+u$", texts["kernel_ir"], re.M)
    breaches = missing("docs/abi.md", functions + structs + statuses)
    breaches += missing("docs/kernel-ir.md", ops + dtypes + records + flags)
    counts = f"{len(functions)} functions, {len(structs)} structs, {len(ops)} ops"
    if min(len(functions), len(structs), len(statuses), len(ops), len(dtypes), len(records)) == 0:
        breaches.append(f"the headers were not understood: {counts}")
    print("\n".join(breaches) or f"docs: {counts}")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
