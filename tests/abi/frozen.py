#!/usr/bin/env python3
"""Checks that the frozen headers are unchanged, and that the current headers equal the frozen ones
of their minor.

frozen.sha256 has the digests of all frozen headers. Changing plugin_api requires a new minor:
increment PGR_API_MINOR, append additions at the ends, and add plugin_api/frozen/1.MINOR with its
digests."""
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


def digest_breaches():
    """Lines 'digest path', in the format of sha256sum, for every frozen header."""
    listed = dict(reversed(line.split()) for line in (FROZEN / "frozen.sha256").read_text().splitlines())
    frozen = {str(p.relative_to(FROZEN)): p for p in FROZEN.rglob("*.h")}
    for name in sorted(listed.keys() | frozen.keys()):
        digest = hashlib.sha256(frozen[name].read_bytes()).hexdigest() if name in frozen else "gone"
        if listed.get(name) != digest:
            yield f"{FROZEN / name}: {digest}, was {listed.get(name, 'not listed')}"


def main():
    now = version()
    breaches = list(differences(contents(FROZEN / now), contents(CURRENT))) + list(digest_breaches())
    print("\n".join(breaches) or f"frozen: plugin_api {now} equals its frozen headers")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
