#!/usr/bin/env python3
"""Builds the binary and copies the scaffold kept for a release: usage: keep.py (at the release's commit).

Builds the C template as the plugin "kept" with the frozen headers of this minor, strips it, and
puts the library, manifest, golden layout and a note on its build into tests/abi/kept/1.MINOR. These
files never change afterwards: hosts of later minors must still run them."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from minor_sizes import minor_now  # noqa: E402
from template_copy import TEMPLATE, copy  # noqa: E402

FLAGS = ["-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id=none", "-s",
         "-Wl,--version-script=cmake/plugin.map", "-Wl,--no-undefined"]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main():
    release = f"1.{minor_now()}"
    kept = pathlib.Path("tests/abi/kept") / release
    if kept.exists():
        sys.exit(f"{kept} is there; what is kept of a release is never made anew")
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory)
        copy("kept", source)
        manifest = source / "libplugrad_plugin_kept.json"
        json.loads(manifest.read_text())
        kept.mkdir(parents=True)
        library = kept / "libplugrad_plugin_kept.so"
        subprocess.run(["gcc", *FLAGS, f"-ffile-prefix-map={directory}=.", "-I", f"plugin_api/frozen/{release}",
                        "-I", "sdk/include", str(source / "plugin.c"), str(source / "note.c"), "-ldl", "-o", str(library)], check=True)
        shutil.copy(manifest, kept)
    (kept / "scaffold").mkdir()
    for file in ("plugin.c", "manifest.json"):
        shutil.copy(TEMPLATE / file, kept / "scaffold")
    shutil.copy("tests/abi/layout/layout.golden", kept / "layout.golden")
    (kept / "README.md").write_text(
        f"# A plugin of {release}, as a binary\n\n"
        f"`sdk/template/c` of commit {output_of('git', 'rev-parse', 'HEAD')} under the name `kept`, built by\n"
        f"`tests/abi/keep.py` with the headers of `plugin_api/frozen/{release}` and {output_of('gcc', '--version').splitlines()[0]}.\n"
        "`pgr_test_abi_minor` and `pgr_test_abi_core` run it on today's host. Never made anew: it stands for a file that a\n"
        "vendor shipped. `layout.golden` is what the structs measured then.\n"
        "`scaffold` is what `plugrad new-plugin` wrote in C; it is built with today's SDK.\n")
    print(f"kept {library}: {library.stat().st_size} bytes")


if __name__ == "__main__":
    main()
