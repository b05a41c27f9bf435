#!/usr/bin/env python3
"""Checks that names and words which the project replaced do not come back; docs/glossary.md has the terms."""
import os
import re

import tree

REPLACED = {  # in lower case
    "optimisation list": "schedule of a kernel", "optimisation lists": "schedules of kernels", "underway": "in flight",
    "running_kernels": "scan and scatter kernels", "late_loads": "load sinking", "place_reductions": "fusion roots",
    "choose_stored": "materialisation", "stage_result": "cache_write", "copies_ahead": "software pipelining",
    "runtime/search": "runtime/discovery", "schedule/rows": "row-reduction fusion", "search/rows": "row-kernel tiling",
    "group_rows": "workgroup per row", "row_blocks": "attention tiling", "local_rows": "bank-conflict padding",
    "column_sums": "column reduction", "split_borders": "loop partitioning", "gate_items": "predication",
    "collapse_loops": "reduction elimination", "count_loops": "dynamic loop bounds", "bound_loops": "bound tightening",
    "sizedoubts": "pending size checks", "doubts": "pending size checks", "exact_values": "bitwise comparable",
    "pair_math": "int64 emulation", "pair_casts": "int64 emulation", "wide_integers": "int64 emulation",
    "unsigned_words": "u32 on i32", "long_sums": "blocked summation", "transposed_stores": "register transpose",
    "link_consumers": "use lists", "tile_model": "cost model", "nobody listens": "inactive",
}
KINDS = tree.SOURCE_SUFFIXES | {".md", ".txt", ".py", ".cmake"}


def breaches_of(path, text):
    text = text.lower()
    for old in filter(text.__contains__, REPLACED):
        for match in re.finditer(rf"\b{old}\b", text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {old}: say {REPLACED[old]}"


def main():
    own = os.path.relpath(__file__, tree.ROOT)
    files = [f for f in tree.tracked_files() if f.suffix in KINDS and str(f) not in (own, "tests/checks/checks_test.py")]
    tree.finish("words", [b for f in files for b in breaches_of(f, tree.read(f))], f"{len(files)} files")


if __name__ == "__main__":
    main()
