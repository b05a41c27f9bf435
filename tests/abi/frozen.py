#!/usr/bin/env python3
"""The frozen headers stay as they were released; the current ones equal the frozen ones of their own minor.

A change of plugin_api within a minor is made in plugin_api/include, looked at by all who build on it, and then copied
to plugin_api/frozen/0.MINOR. Frozen headers of older minors are never touched: their digests stand in frozen.sha256.
"""
import hashlib
import pathlib
import re
import sys

CURRENT = pathlib.Path("plugin_api/include")
FROZEN = pathlib.Path("plugin_api/frozen")


def version():
    text = (CURRENT / "plugrad/plugin_api/plugin.h").read_text()
    return "{}.{}".format(*(re.search(rf"#define PGR_API_{part} (\d+)u", text).group(1)
                            for part in ("MAJOR", "MINOR")))


def contents(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.h"))}


def differences(frozen, current):
    for name in sorted(frozen.keys() | current.keys()):
        if frozen.get(name) != current.get(name):
            yield f"{name} differs from the frozen one"


def digest_breaches(now):
    """Lines 'digest path' for every frozen header of an older minor."""
    listed = dict(reversed(line.split()) for line in (FROZEN / "frozen.sha256").read_text().splitlines())
    older = {str(p.relative_to(FROZEN)): p for p in FROZEN.rglob("*.h") if p.relative_to(FROZEN).parts[0] != now}
    for name in sorted(listed.keys() | older.keys()):
        digest = hashlib.sha256(older[name].read_bytes()).hexdigest() if name in older else "gone"
        if listed.get(name) != digest:
            yield f"{FROZEN / name}: {digest}, was {listed.get(name, 'not listed')}"


def main():
    now = version()
    breaches = list(differences(contents(FROZEN / now), contents(CURRENT))) + list(digest_breaches(now))
    print("\n".join(breaches) or f"frozen: plugin_api {now} equals its frozen headers")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
