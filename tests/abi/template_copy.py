#!/usr/bin/env python3
"""Copies the C template under another name, as `plugrad new-plugin` does: usage: template_copy.py
NAME OUTPUT_DIR [TEMPLATE]."""
import json
import pathlib
import sys

TEMPLATE = pathlib.Path("sdk/template/c")


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def copy(name, output, template=TEMPLATE):
    """Writes plugin.c, the manifest next to the library, and note.c, which embeds it."""
    output.mkdir(parents=True, exist_ok=True)
    for file, target in (("plugin.c", "plugin.c"), ("manifest.json", f"libplugrad_plugin_{name}.json")):
        text = (template / file).read_text()
        text = text.replace("acme", name).replace("ACME", name.upper())
        write_if_changed(output / target, text)
    write_if_changed(output / "note.c", '#include "plugrad/plugin_api/plugin.h"\n'
                     f"__extension__ PGR_PLUGIN_NOTE({json.dumps(text)});\n")


if __name__ == "__main__":
    copy(sys.argv[1], *map(pathlib.Path, sys.argv[2:]))
