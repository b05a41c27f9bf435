#!/usr/bin/env python3
"""Checks that docs/conformance.md names exactly the families of the suite: usage: families.py
PLUGRAD PAGE"""
import json
import re
import subprocess
import sys


def main():
    listed = subprocess.run([sys.argv[1], "conformance", "--list", "--full", "--json"], capture_output=True, text=True,
                            check=True).stdout
    families = {".".join(test["id"].split(".")[:2]) for test in json.loads(listed)}
    with open(sys.argv[2], encoding="utf-8") as page:
        rows = [line for line in page if re.match(r"\| `(l[0-3]|perf)\.", line)]
    named = set(re.findall(r"`((?:l[0-3]|perf)\.\w+)", " ".join(row.split("|")[1] for row in rows)))
    for family in sorted(families - named):
        print(f"{sys.argv[2]}: no row for {family}")
    for family in sorted(named - families):
        print(f"{sys.argv[2]}: {family} is no family of the suite")
    sys.exit(1 if families ^ named else 0)


if __name__ == "__main__":
    main()
