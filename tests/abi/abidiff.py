#!/usr/bin/env python3
"""Runs abidiff on a library that uses every struct of plugin_api, built from plugin_api/include and
from the minor's frozen headers. Then with a field inserted in the middle, which abidiff must report
as harmful."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CURRENT = pathlib.Path("plugin_api/include")
FROZEN = pathlib.Path("plugin_api/frozen")
CHANGED = 4  # bits of abidiff's exit status
INCOMPATIBLE = 8


def structs():
    text = pathlib.Path("tests/abi/layout/layout_fields.h").read_text()
    return re.findall(r"^  S\((pgr_\w+)\)", text, re.M)


def probe_source():
    includes = "".join(f'#include "{h.relative_to(CURRENT)}"\n' for h in sorted(CURRENT.rglob("*.h"))
                       if h.name != "kernel_ops.h")
    entry = "pgr_plugin_entry_fn probe_entry;\npgr_component_entry_fn probe_component;\n"
    return includes + entry + "".join(f"{s} probe_{s};\n" for s in structs())


def build(include, directory, name):
    source = directory / "probe.c"
    source.write_text(probe_source())
    library = directory / f"libprobe_{name}.so"
    subprocess.run(["gcc", "-std=c11", "-g", "-shared", "-fPIC", "-I", str(include), str(source), "-o", str(library)],
                   check=True)
    return library


def abidiff(old, new):
    return subprocess.run(["abidiff", "--no-show-locs", str(old), str(new)], capture_output=True, text=True)


def with_inserted_field(directory):
    include = directory / "changed"
    shutil.copytree(CURRENT, include)
    header = include / "plugrad/plugin_api/memory.h"
    text = header.read_text()
    changed = text.replace("  uint64_t align_bytes;", "  uint64_t inserted;\n  uint64_t align_bytes;")
    assert changed != text
    header.write_text(changed)
    return include


def release():
    text = (CURRENT / "plugrad/plugin_api/plugin.h").read_text()
    return ".".join(re.search(rf"#define PGR_API_{part} (\d+)u", text).group(1) for part in ("MAJOR", "MINOR"))


def main():
    if not shutil.which("abidiff"):
        sys.exit("abidiff is missing: tools/setup --all installs abigail-tools")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        frozen = build(FROZEN / release(), directory, "frozen")
        same = abidiff(frozen, build(CURRENT, directory, "current"))
        changed = abidiff(frozen, build(with_inserted_field(directory), directory, "changed"))
    breaches = []
    if same.returncode != 0:
        breaches.append(f"the headers differ from the frozen ones:\n{same.stdout}{same.stderr}")
    if not changed.returncode & (CHANGED | INCOMPATIBLE) or "inserted" not in changed.stdout:
        breaches.append(f"abidiff does not see a field put in the middle: {changed.returncode}\n{changed.stdout}")
    print("\n".join(breaches) or f"abidiff: {len(structs())} structs as in plugin_api/frozen/{release()}")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
