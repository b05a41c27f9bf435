"""package_test.py BUILD_TREE CXX [SANITIZERS]: installs the build tree, moves the prefix, and uses
it from another CMake project.

The moved tree must not depend on its original location: docs/examples/project is configured, built
and run with the new path only, in an environment without a plugin path; the command must find its
plugins too."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(what, condition, seen):
    if not condition:
        sys.exit(f"{what}\nseen: {seen}")


def places_named(prefix, text):
    """Package files used in a user's build that contain `text`."""
    readable = [p for p in prefix.rglob("*") if p.suffix in (".cmake", ".json", ".h")]
    return [str(p) for p in readable if text in p.read_text(encoding="utf-8")]


MODELS_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(models LANGUAGES CXX)
find_package(plugrad REQUIRED COMPONENTS core onnx)
add_executable(models main.cpp)
target_link_libraries(models PRIVATE plugrad::onnx)
"""
MODELS_PROGRAM = """
#include <plugrad/onnx.h>
#include <iostream>
using namespace plugrad;
int main() {
  const Tensor x = Tensor::from<float>({1, 2, 3});
  onnx::save([](const std::vector<Tensor>& given) { return std::vector{given[0] * 2}; }, {x}, "twice.onnx");
  std::cout << onnx::Model::load("twice.onnx")({x})[0].sum().item<float>() << std::endl;
}
"""


def check_models(prefix, folder, environment, *settings):
    """A program that links plugrad::onnx; core has no RE2."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(MODELS_PROJECT)
    (folder / "main.cpp").write_text(MODELS_PROGRAM)
    run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *settings, env=environment)
    run("cmake", "--build", folder / "build", env=environment)
    printed = run(folder / "build/models", env=environment, cwd=folder)
    expect("a model is saved, loaded and run", printed == "12\n", printed)
    for name, has_re2 in (("core", False), ("onnx", True)):
        needed = run("ldd", prefix / f"lib/libplugrad_{name}.so")
        expect(f"libplugrad_{name}.so needs RE2: {has_re2}", ("libre2" in needed) == has_re2, needed)


def main(build_tree, compiler, sanitizers=""):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        installed, prefix = folder / "installed", folder / "some where" / "else"
        run("cmake", "--install", build_tree, "--prefix", installed)
        prefix.parent.mkdir()
        shutil.move(installed, prefix)
        for path in (str(installed), str(build_tree), str(SOURCE)):
            expect(f"the package names {path}", not places_named(prefix, path + "/"), places_named(prefix, path + "/"))

        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PLUGRAD_PLUGIN", "DEV"))}
        environment["PLUGRAD_CACHE_DIR"] = str(folder / "cache")
        flags = f"-fsanitize={sanitizers}" if sanitizers else ""
        settings = f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={flags}"
        run("cmake", "-S", SOURCE / "docs/examples/project", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *settings,
            env=environment)
        run("cmake", "--build", folder / "build", env=environment)
        printed = run(folder / "build" / "uses_plugrad", env=environment)
        expect("the program's output", printed == "CPU 1 9\n" or printed == "CPU:0 1 9\n", printed)
        check_models(prefix, folder / "models", environment, *settings)

        for file in ("LICENSE", "LICENSES/Apache-2.0.txt", "LICENSES/0BSD.txt"):
            carried = prefix / "share/doc/plugrad" / file
            expect(f"the package carries {file}", carried.exists() and carried.read_text() == (SOURCE / file).read_text(), carried)

        devices = json.loads(run(prefix / "bin" / "plugrad", "devices", "--json", env=environment))
        outside = [p["path"] for p in devices["plugins"] if not p["path"].startswith(str(prefix))]
        expect("every plugin comes from the moved prefix", devices["plugins"] and not outside, devices["plugins"])
        for file in ("man/man1/plugrad.1", "bash-completion/completions/plugrad", "zsh/site-functions/_plugrad",
                     "fish/vendor_completions.d/plugrad.fish"):
            expect(f"{file} names the options", "completion" in (prefix / "share" / file).read_text() and
                   "roofline" in (prefix / "share" / file).read_text(), file)
        listed = run(prefix / "bin" / "plugrad", "explain", "--list", env=environment)
        expect("explain --list", "matmul" in listed, listed)


main(*sys.argv[1:])
