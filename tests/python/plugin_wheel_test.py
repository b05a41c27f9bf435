"""plugin_wheel_test.py WHEELS: tests that a vendor needs the wheels alone to write, build, judge and ship a plugin.

`plugrad new-plugin` makes a project; the CMake command that it prints builds it; it passes level L1. Then the project becomes
a wheel whose entry point of the group plugrad.plugins names its directory, and another environment finds its device."""
import pathlib
import re
import sys

import fresh
from fresh import expect

PYPROJECT = """\
[build-system]
requires = ["scikit-build-core", "plugrad-backend"]
build-backend = "scikit_build_core.build"

[project]
name = "plugrad-acme"
version = "1.0"
dependencies = ["plugrad-backend"]

[project.entry-points."plugrad.plugins"]
acme = "plugrad_acme.lib.plugrad.plugins"

[tool.scikit-build]
wheel.py-api = "py3"
wheel.install-dir = "plugrad_acme"
"""
PROGRAM = """
import plugrad as pg
print((pg.Tensor([1.0, 2.0], device="ACME") + 1).tolist())
"""


def build_and_judge(environment: fresh.Environment) -> pathlib.Path:
    printed = environment.run("python", "-m", "plugrad", "new-plugin", "acme", "--lang", "cpp")
    commands = re.findall(r"^  ((?:cmake|plugrad) .+)$", printed, re.M)
    expect(len(commands) == 2, f"new-plugin prints how to build and to judge: {printed}")
    environment.run("sh", "-c", commands[0])
    summary = environment.run("sh", "-c", commands[1])
    expect(re.search(r"^L1 core +\d+ passed +0 failed", summary, re.M), f"level L1: {summary[-2000:]}")
    library = environment.folder / "acme/build"
    printed = environment.run("plugrad", "devices", variables={"PLUGRAD_PLUGIN_PATH": str(library)})
    expect("ACME:0" in printed, f"plugrad devices lists it: {printed}")
    return environment.folder / "acme"


def make_wheel(environment: fresh.Environment, project: pathlib.Path) -> str:
    environment.run("rm", "-rf", str(project / "build"))
    (project / "pyproject.toml").write_text(PYPROJECT)
    environment.pip("install", "scikit-build-core", "pip")
    environment.run("python", "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", "out", str(project))
    return str(next(environment.folder.glob("out/*.whl")))


def check_installed(wheels: list[str], plugin: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *wheels, plugin)
    expect("ACME:0" in environment.run("plugrad", "devices"), "the command finds the wheel's plugin")
    expect("[2.0, 3.0]" in environment.python(PROGRAM), "the package finds the wheel's plugin")
    # The user's own path goes first, and a broken package disturbs nobody.
    site = pathlib.Path(environment.python("import plugrad_acme; print(list(plugrad_acme.__path__)[0])").strip()).parent
    broken = site / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[plugrad.plugins]\nbroken = broken_plugin\n")
    printed = environment.python(PROGRAM + "import os; print(os.environ['PLUGRAD_PLUGIN_PATH'])",
                                 variables={"PLUGRAD_PLUGIN_PATH": "/tmp/mine"})
    expect("the plugin broken is not used: its entry point names broken_plugin, which cannot be found" in printed, printed)
    expect("[2.0, 3.0]" in printed and f"/tmp/mine:{site}/plugrad_acme/lib/plugrad/plugins" in printed, printed)


def main(folder: str) -> None:
    wheels = fresh.wheels_in(folder)
    environment = fresh.Environment()
    environment.pip("install", *wheels)
    check_installed(wheels, make_wheel(environment, build_and_judge(environment)))


main(*sys.argv[1:])
