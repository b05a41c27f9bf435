#!/usr/bin/env python3
"""Adds an op to a copy of the tree at the places listed in CONTRIBUTING.md, and tests it there.

new_op_test.py SOURCE BUILD [--run]. The op is curve(x) = 1 / (1 + x²), which is not in kernel IR.
PLACES contains the whole change: the test fails if an op needs another place. The files of PLACES
must compile; without the op's row the evaluator must not compile. With --run the copy is built
(some minutes), and values and gradients of the op are compared with the evaluator and with central
differences."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

TABLE = "core/src/ir/ops.def"
EVALUATOR = "tests/oracle/evaluator.cpp"

# Per file: an existing line, and the line to insert before it. {number} is the next free number of
# the table.
PLACES = {
    TABLE: [(r"  X\(FloorDiv, ", r'  X(Curve, {number}, 1, 1, None, Alu, TensorKernel, Floats, Root, Fixed, "1 / (1 + x * x)") \ ')],
    "core/src/autodiff/rules.cpp": [
        (r'    derivative\("d-sin", ',
         '    derivative("d-curve", as(out, node(Op::Curve, x)), flows(g * (x * (out * out) * -2.0))),')],
    "core/src/codegen/lowering/basic_ops.cpp": [
        (r'    rule\("sub-is-add-neg", ', '    rule("curve", node(Op::Curve, x), recip(x * x + 1)),')],
    "tests/oracle/alu.cpp": [(r"    case Op::Recip:", "    case Op::Curve: return 1.0 / (1.0 + x[0] * x[0]);")],
    EVALUATOR: [(r"      return elementwise\(node\);", "    case Op::Curve:")],
    "core/include/plugrad/tensor.h": [(r"  Tensor sqrt\(\) const;", "  Tensor curve() const;       ///< 1 / (1 + x²)")],
    "core/src/tensor/elementwise/elementwise.cpp": [
        (r"Tensor Tensor::sqrt\(\) const \{",
         'Tensor Tensor::curve() const { return unary("curve", Op::Curve, *this, Takes::Floats); }')],
    "tests/ops/rows/unary.cpp": [
        (r'    \{"sqrt", ', '    {"curve", "1 / (1 + x * x)", {{{45, 65}}}, [](const In& x) { return x[0].curve(); }},')],
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"new op: {' '.join(map(str, command))}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return done.stdout


def copy_tree(source, tree):
    """Copies the working tree with modification times, so that a second run compiles only changed
    files."""
    tree.mkdir(parents=True, exist_ok=True)
    files = run("git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    wanted = {name for name in files if name and (source / name).is_file()}
    for name in wanted:
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (source / name).read_bytes()
        if name in PLACES:
            text = with_rows(name, text.decode()).encode()
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
            shutil.copymode(source / name, target)
    for old in [path for path in tree.rglob("*") if path.is_file() and str(path.relative_to(tree)) not in wanted]:
        old.unlink()


def with_rows(name, text):
    number = max(map(int, re.findall(r"X\(\w+, +(\d+),", text)), default=0) + 1
    for anchor, row in PLACES[name]:
        found = re.search(rf"^{anchor}", text, re.MULTILINE)
        if not found:
            sys.exit(f"new op: {name} has no line {anchor}")
        text = text[:found.start()] + row.replace("{number}", str(number)).rstrip(" ") + "\n" + text[found.start():]
    return text


def check_compiles(source, build, tree):
    """Compiles the changed files as BUILD compiles the originals; for headers and tables, the files
    that include them."""
    commands = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        commands[command["file"]] = command
        if "/Unity/unity_" in command["file"]:  # a batch of files
            commands |= dict.fromkeys(re.findall(r'#include "(.*)"', pathlib.Path(command["file"]).read_text()), command)

    def compile_copy(name):
        command = commands[str(source / name)]
        text = command["command"].replace(command["file"], str(source / name))
        # Folders of the tree refer to the copy, those of the build remain.
        words = re.sub(rf"{re.escape(str(source))}/(?!build/)", f"{tree}/", text).split()
        words = [word for word in words if word != "-c"]
        del words[words.index("-o"):words.index("-o") + 2]
        return subprocess.run([*words, "-fsyntax-only"], cwd=command["directory"], text=True, capture_output=True)

    for name in PLACES:
        if name.endswith(".cpp"):
            done = compile_copy(name)
            if done.returncode != 0:
                sys.exit(f"new op: {name} does not compile\n{done.stderr[-4000:]}")
    evaluator = tree / EVALUATOR
    evaluator.write_text((source / EVALUATOR).read_text())
    done = compile_copy(EVALUATOR)
    evaluator.write_text(with_rows(EVALUATOR, (source / EVALUATOR).read_text()))
    if done.returncode == 0 or "Curve" not in done.stderr:
        sys.exit(f"new op: the evaluator compiles without the row\n{done.stderr[-2000:]}")


def check_values(tree, build):
    run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O0 -g0",
        "-DPLUGRAD_PLUGINS=cpu_clang;reference", "-DPLUGRAD_BUILD_BENCH=OFF")
    run("cmake", "--build", build, "--target", "pgr_test_ops")
    environment = os.environ | {"PLUGRAD_PLUGIN_PATH": str(build / "lib/plugrad/plugins"),
                                "PLUGRAD_CACHE_DIR": str(build / "cache")}
    for device in ("REFERENCE", "CPU"):
        report = run(build / "tests/pgr_test_ops", "--gtest_filter=elementwise.curve*", env=environment | {"DEV": device})
        if "1 test" not in report:
            sys.exit(f"new op: no test of the op ran on {device}\n{report}")


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    tree = build / "new_op/tree"
    copy_tree(source, tree)
    check_compiles(source, build, tree)
    if "--run" in sys.argv:
        check_values(tree, build / "new_op/build")
    print(f"new op: {len(PLACES)} files")


if __name__ == "__main__":
    main()
