"""template_check.py: checks the statements about the C template.

It is one file of at most 400 lines of C89 for every available compiler, as are the SDK's C headers
that it includes; the places to fill are marked; and neither template contains a renderer."""
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = SOURCE / "sdk/template"
FLAGS = ["-std=c89", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wno-long-long", "-fsyntax-only", "-x", "c",
         f"-I{SOURCE}/plugin_api/include", f"-I{SOURCE}/sdk/include"]
FILLED_LATER = ("health", "fill", "map", "sub_buffer", "disassemble", "limits", "pgr.queue")


def breaches():
    plugin = TEMPLATE / "c/plugin.c"
    text = plugin.read_text()
    if len(text.splitlines()) > 400:
        yield f"{plugin.name} has {len(text.splitlines())} lines; a synchronous device has at most 400"
    marks = [line for line in text.splitlines() if "FILL:" in line]
    for name in FILLED_LATER:
        if not any(name in mark for mark in marks):
            yield f"{plugin.name}: no FILL mark names {name}"
    sources = [text] + [f'#define _GNU_SOURCE\n#include "plugrad/sdk/{name}"\n'
                        for name in ("c_plugin.h", "c_host_compiler.h")]
    compilers = [c for c in ("gcc", "clang", "clang-19") if shutil.which(c)]
    for compiler in compilers:
        for source in sources:
            done = subprocess.run([compiler, *FLAGS, "-"], input=source, capture_output=True, text=True)
            if done.returncode != 0:
                yield f"{compiler}: not C89\n{done.stderr}"
    if not compilers:
        yield "no C compiler here"
    for path in TEMPLATE.rglob("*.c*"):
        if "renderer_api" in path.read_text():
            yield f"{path.name}: a template leaves rendering to the SDK"


found = list(breaches())
print("\n".join(found) or "templates: C89, within their length, marked")
sys.exit(bool(found))
