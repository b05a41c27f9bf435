#!/usr/bin/env python3
"""Checks the symbols of plugins and components: usage: exports.py LIBRARY_DIR.

A plugin exports only pgr_plugin_entry_v1, a component only pgr_component_entry_v1; neither imports
a symbol of the project, because the host's functions are passed as a table."""
import pathlib
import subprocess
import sys


def symbols(path, kind):
    out = subprocess.run(["nm", "-D", kind, str(path)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return [row[-1].split("@")[0] for row in rows if row[-2] != "A"]


def breaches_of(path, entry):
    exported = symbols(path, "--defined-only")
    if exported != [entry]:
        yield f"{path.name} exports {', '.join(exported) or 'nothing'}; allowed is {entry}"
    for name in symbols(path, "--undefined-only"):
        if name.startswith("pgr_") or "plugrad" in name:
            yield f"{path.name} imports {name}"


def main():
    libraries = pathlib.Path(sys.argv[1])
    plugins = sorted((libraries / "plugrad/plugins").glob("libplugrad_plugin_*.so"))
    components = [p for p in sorted(libraries.glob("libplugrad_*.so")) if p.name not in ("libplugrad_core.so", "libplugrad_onnx.so")]
    breaches = [b for p in plugins for b in breaches_of(p, "pgr_plugin_entry_v1")]
    breaches += [b for p in components for b in breaches_of(p, "pgr_component_entry_v1")]
    for plugin in plugins:
        if not plugin.with_suffix(".json").exists():
            breaches.append(f"{plugin.name} has no manifest beside it")
    if not plugins:
        breaches.append(f"no plugin is built in {libraries}")
    print("\n".join(breaches) or f"exports: {len(plugins)} plugins, {len(components)} components")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
