#!/usr/bin/env python3
"""Tests that lavapipe's kernels of different vector widths can share Mesa's disk cache.

shared_cache.py PLUGRAD TEST: runs a test program at two widths, and measures the cache. Exit code 77: no lavapipe."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def cached_bytes(width, folder):
    environment = dict(os.environ, LP_NATIVE_VECTOR_WIDTH=str(width), MESA_SHADER_CACHE_DIR=folder)
    subprocess.run([sys.argv[2]], env=environment, stdout=subprocess.DEVNULL, check=True, timeout=250)
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.name != "index")


listed = subprocess.run([sys.argv[1], "devices", "--json"], capture_output=True, text=True, check=True, timeout=250)
if "llvmpipe" not in str([one for one in json.loads(listed.stdout)["devices"] if one["name"].startswith("VULKAN")]):
    sys.exit(77)
with tempfile.TemporaryDirectory() as cache:
    first, other, again = (cached_bytes(width, cache) for width in (256, 512, 256))
print(f"bytes in the cache: {first} after width 256, {other} after 512, {again} after 256 again")
assert other > 1.5 * first, "kernels of width 512 are those of width 256"
# Mesa writes behind the program; what it drops at its end is compiled again.
assert again - other < 0.2 * first, "kernels of width 256 are compiled again"
