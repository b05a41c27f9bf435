#!/usr/bin/env python3
"""The C template under another name, as `plugrad new-plugin` makes it: usage: template_copy.py NAME OUTPUT_DIR."""
import pathlib
import sys

TEMPLATE = pathlib.Path("sdk/template/c")


def copy(name, output):
    output.mkdir(parents=True, exist_ok=True)
    for file, target in (("plugin.c", "plugin.c"), ("manifest.json", f"libplugrad_plugin_{name}.json")):
        text = (TEMPLATE / file).read_text()
        text = text.replace("acme", name).replace("ACME", name.upper())
        if not (output / target).exists() or (output / target).read_text() != text:
            (output / target).write_text(text)


if __name__ == "__main__":
    copy(sys.argv[1], pathlib.Path(sys.argv[2]))
