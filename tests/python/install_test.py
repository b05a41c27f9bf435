"""install_test.py WHEELS: installs the wheels with every CPython of this machine; then, with one, tests the messages of a
missing or other backend, and that the command's exit status, signals and closed pipes are the program's own."""
import pathlib
import re
import signal
import sys
import zipfile

import fresh
from fresh import expect

PROGRAM = """
import plugrad as pg
x = pg.Tensor([[1.0, 2.0], [3.0, 4.0]])
print((x @ x).tolist())
print(pg.__version__)
"""
RESULT = "[[7.0, 10.0], [15.0, 22.0]]"


def check_every_interpreter(wheels: list[str]) -> fresh.Environment:
    for python in fresh.interpreters():
        environment = fresh.Environment(python)
        environment.pip("install", *wheels)
        printed = environment.python(PROGRAM, variables={"DEV": "CPU"})
        expect(RESULT in printed, f"{python}: {printed}")
        expect("CPU:0" in environment.run("plugrad", "devices"), f"{python}: plugrad devices lists CPU:0")
        expect("CPU:0" in environment.run("python", "-m", "plugrad", "devices"), "python -m plugrad devices")
        print(f"{python}: imports, computes, lists devices")
    return environment


def check_command(environment: fresh.Environment) -> None:
    version = environment.python("import plugrad; print(plugrad.__version__)").strip()
    expect(version in environment.run("plugrad", "--version"), f"plugrad --version is {version}")
    environment.run("plugrad", "no-such-command", status=2)
    environment.run("python", "-m", "plugrad", "no-such-command", status=2)
    # In the program's place a script that says what it was given, and dies of a signal.
    program = pathlib.Path(environment.python("import plugrad_backend as b; print(b.prefix)").strip()) / "bin/plugrad"
    kept = program.rename(program.with_name("kept"))
    program.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\necho\ngrep SigIgn /proc/$$/status\nkill -TERM $$\n")
    program.chmod(0o755)
    for command in (("plugrad",), ("python", "-m", "plugrad")):
        printed = environment.run(*command, "a b", "--c", status=-signal.SIGTERM)
        expect("<a b><--c>" in printed, f"arguments: {printed}")
        ignored = int(printed.split()[-1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            expect(not ignored >> (number - 1) & 1, f"{command} ignores {number.name}")
    kept.rename(program)


def check_messages(environment: fresh.Environment, wheels: list[str]) -> None:
    thin, backend = (next(w for w in wheels if f"/{name}-" in w) for name in ("plugrad", "plugrad_backend"))
    version = re.search(r"/plugrad-([\d.]+)-", thin)[1]
    site = environment.python("import plugrad_backend as b; print(b.prefix)").strip()
    text = f"{site}/__init__.py"
    whole = open(text).read()
    with open(text, "w") as file:
        file.write(whole.replace(version, "0.9.0"))
    printed = environment.python("import plugrad", status=1)
    expect("ImportError" in printed and f"pip install plugrad-backend=={version}" in printed and "0.9.0" in printed,
           f"another version: {printed}")
    with open(text, "w") as file:
        file.write(whole)
    environment.run("mv", f"{site}/lib/libplugrad_core.so", f"{site}/lib/moved.so")
    printed = environment.python("import plugrad", status=1)
    expect(f"pip install --force-reinstall plugrad-backend=={version}" in printed, f"a lost file: {printed}")
    environment.pip("uninstall", "-y", "plugrad-backend")
    environment.run("rm", "-rf", site)
    for command in (("python", "-c", "import plugrad"), ("python", "-m", "plugrad", "devices"), ("plugrad", "devices")):
        printed = environment.run(*command, status=1)
        expect(f"ImportError: plugrad {version} needs the package plugrad-backend, which is not installed: pip install "
               f"plugrad-backend=={version}" in printed, f"no backend: {printed}")
    environment.pip("install", backend)
    expect(RESULT in environment.python(PROGRAM), "the installation is mended")


def check_contents(wheels: list[str]) -> None:
    names = [name for wheel in wheels for name in zipfile.ZipFile(wheel).namelist()]
    for part in ("plugrad/py.typed", "licenses/LICENSE", "licenses/third-party/llvm-19-dev.txt",
                 "lib/plugrad/plugins/libplugrad_plugin_reference.so", "lib/plugrad/plugins/libplugrad_plugin_opencl.so",
                 "lib/plugrad/plugins/libplugrad_plugin_vulkan.so", "lib/plugrad/plugins/libplugrad_plugin_cuda.so",
                 "include/plugrad/plugrad.h", "include/plugrad/plugin_api/plugin.h", "lib/libplugrad_sdk.a",
                 "share/plugrad/template/c/plugin.c", "lib/cmake/plugrad/plugradConfig.cmake",
                 "bin/plugrad-conformance-worker"):
        expect(any(name.endswith(part) for name in names), f"the wheels have {part}")
    for foreign in ("libOpenCL", "libvulkan", "libcuda", "libLLVM", "libicu"):
        expect(not any(foreign in name for name in names), f"the wheels have no {foreign}")


def main(folder: str) -> None:
    wheels = fresh.wheels_in(folder)
    check_contents(wheels)
    environment = check_every_interpreter(wheels)
    check_command(environment)
    check_messages(environment, wheels)


main(*sys.argv[1:])
