#!/usr/bin/env python3
"""Writes torch_expected.json: what PyTorch computes for the cases. Run it where torch is installed.

    cd python/tests && python -m surface.record
"""
import json

from . import creation, elementwise, functions, movement, reduce  # noqa: F401
from .harness import CASES, EXPECTED, to_record, torch_values


def main() -> None:
    records = {case.identity: to_record(torch_values(case)) for case in CASES if case.torch}
    lines = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
             for name, value in sorted(records.items())]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{EXPECTED}: {len(records)} cases")


if __name__ == "__main__":
    main()
