#!/usr/bin/env python3
"""Checks the libraries that a build's products link, directly or indirectly: usage: links.py
[BUILD_DIR]; without one, the folder of a preset that was built, or nothing (exit 77).

Core, which also links no RE2, tools, tests and benchmarks link no LLVM, no Clang, no MPI and no device library; a plugin and
an adapter for MPI export exactly one symbol."""
import pathlib
import re
import subprocess
import sys

import tree

FORBIDDEN = re.compile(r"lib(LLVM|clang|OpenCL|vulkan|cuda|nvrtc|hip|amdhip|shaderc|mpi(?!r))[-.\w]*so")
PEERS = {"pgr_bench_all_reduce_by_mpi"}  # what ours are measured against


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def linked(path):
    """The libraries that the loader would load; only the direct ones if ldd cannot run the file."""
    done = subprocess.run(["ldd", str(path)], capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    return subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True)
    return [line.split()[-1].split("@")[0] for line in out.stdout.splitlines()
            if " A " not in line]


def link_breaches(path):
    for name in sorted(set(m.group(0) for m in FORBIDDEN.finditer(linked(path)))):
        yield f"{path.name} links {name}"


def main():
    if len(sys.argv) > 2:
        sys.exit("usage: links.py [BUILD_DIR]")
    builds = sys.argv[1:] or [tree.ROOT / "build" / preset for preset in ("dev", "demo", "release")]
    core = next((c for c in (pathlib.Path(b).resolve() / "lib/libplugrad_core.so" for b in builds) if c.exists()), None)
    if core is None:
        print("links: skipped: no build of core's library here")
        sys.exit(1 if sys.argv[1:] else 77)
    build = core.parents[1]
    libraries = [core] + [p for p in [build / "lib/libplugrad_onnx.so"] if p.exists()]  # preset demo has core alone
    programs = libraries + [p for folder in ("bin", "tests", "bench") for p in sorted((build / folder).glob("*"))
                         if p.is_file() and is_elf(p) and p.name not in PEERS]
    breaches = [b for p in programs for b in link_breaches(p)]
    if "libre2" in linked(libraries[0]):
        breaches.append("libplugrad_core.so links libre2, which libplugrad_onnx.so alone needs")
    plugins = sorted([*(build / "lib/plugrad/plugins").glob("*.so"), *(build / "lib").glob("libplugrad_mpi_*.so")])
    for plugin in plugins:
        names = exported(plugin)
        if len(names) != 1 or not names[0].startswith("pgr_"):
            breaches.append(f"{plugin.name} exports {names or 'nothing'}; it must export one pgr_ symbol")
    tree.finish("links", breaches, f"{len(programs)} programs and libraries, {len(plugins)} plugins")


if __name__ == "__main__":
    main()
