#!/usr/bin/env python3
"""Chooses the tests that depend on the files that differ from a commit: usage: affected.py BUILD_DIR BASE.

Prints two lines, the targets to build and a regular expression of tests; the reasons go to stderr. A file chooses
the tests in the folders named as one of its folders, those compiled from it, and those that name it in their command.
All tests link core, the SDK and the plugins: a change there chooses the tests of its room and SMOKE."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMOKE = ["example_first", "pgr_test_e2e_engine", "pgr_test_jit", "pgr_test_mnist", "pgr_test_ops_nn", "pgr_test_promises"]
LINKED_BY_ALL = {"plugin_api", "sdk", "plugins", "core", "cmake", "CMakeLists.txt", "CMakePresets.json"}
SAME_AS = {"plugin_api": "abi", "check": "checks", "symbolic": "rules", "core/include": "tensor", "render": "dialects",
           "plugins/reference": "interpreter", "sdk/include": "sdk", "tools/plugrad": "cli"}
FEW = 10  # a header that more test programs include is a header of all


def folders_about(path, folders):
    """The folders of tests that are about a file: the nearest around it, or those with the name of a folder of it."""
    parents = [str(parent) for parent in pathlib.PurePosixPath(path).parents]
    if path.startswith("tests/"):
        return set(next(([parent] for parent in parents if parent in folders), []))
    if path.endswith(".md"):
        return set()
    names = {*parents[0].split("/")} - {"docs", "plugrad"}
    names |= {other for name, other in SAME_AS.items() if f"/{name}/" in f"/{parents[0]}/"}
    return {folder for folder in folders if folder.rsplit("/", 1)[-1] in names}


def choose(changed, tests, compiled):
    """The reason of each chosen test. tests: name -> (folder, words of its command, programs that it runs);
    compiled: file -> test programs that are compiled from it."""
    folders = {folder for folder, _, _ in tests.values()}
    reasons = {}
    for path in changed:
        programs = compiled.get(path, set())
        about = set() if programs and path.startswith("tests/") else folders_about(path, folders)
        few = len(programs) <= FEW or path.startswith("tests/")
        for name, (folder, words, runs) in tests.items():
            if folder in about:
                reasons.setdefault(name, f"{path}: {folder} tests it")
            elif few and programs & runs:
                reasons.setdefault(name, f"{path} is compiled into {', '.join(sorted(programs & runs))}")
            elif path in words:
                reasons.setdefault(name, f"{path} is in the command")
        if path.split("/")[0] in LINKED_BY_ALL:
            reasons |= {name: f"{path} is linked by all tests" for name in SMOKE if name in tests and name not in reasons}
    return reasons


def changed_files(base):
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({*git("diff", "--name-only", git("merge-base", base, "HEAD")[0]),
                   *git("ls-files", "--others", "--exclude-standard")})


def read_targets(build):
    """Name -> (folder, artifacts, names of dependencies, sources) of each target, from CMake's file API."""
    targets = {}
    for file in (build / ".cmake/api/v1/reply").glob("target-*.json"):
        target = json.loads(file.read_text())
        targets[target["name"]] = (
            target["paths"]["source"], [artifact["path"] for artifact in target.get("artifacts", [])],
            [dependency["id"].split("::")[0] for dependency in target.get("dependencies", [])],
            [source["path"] for source in target["sources"]])
    return targets


def read_compiled(build, targets):
    """File -> test programs whose own objects, or those of the libraries of tests and tools, are compiled from it."""
    users = {}  # target -> targets outside of core, SDK and plugins that link it
    for name, (folder, _, dependencies, _) in targets.items():
        for dependency in dependencies:
            if dependency in targets and targets[dependency][0].split("/")[0] not in LINKED_BY_ALL:
                users.setdefault(dependency, set()).add(name)

    def programs(target, seen):
        if target in seen:
            return set()
        seen.add(target)
        own = {target} if targets[target][0].startswith(("tests", "docs")) else set()
        return own.union(*(programs(user, seen) for user in users.get(target, ())))

    of_target = {target: programs(target, set()) for target in targets}
    compiled = {}
    for target, (_, _, _, sources) in targets.items():
        for source in sources:
            compiled.setdefault(source, set()).update(of_target[target])
    dump = subprocess.run(["ninja", "-C", build, "--quiet", "-t", "deps"], capture_output=True, text=True, check=True).stdout
    prefix, now = f"{ROOT}/", set()
    for line in dump.splitlines():
        if line.startswith("    "):
            if line.startswith(prefix, 4):
                compiled.setdefault(line[4 + len(prefix):], set()).update(now)
        elif found := re.search(r"CMakeFiles/([^/]+)\.dir/", line):
            now = of_target.get(found[1], set())
    return compiled


def read_tests(build, targets):
    """Name -> (folder, words of the command relative to the tree, names of the targets among them)."""
    names = {artifact: name for name, (_, artifacts, _, _) in targets.items() for artifact in artifacts}
    tests = {}
    for file in build.rglob("CTestTestfile.cmake"):
        for name, command in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", file.read_text(), re.M):
            words = re.findall(r'"([^"]*)"', command)
            inside = [word.removeprefix(f"{build}/") for word in words]
            runs = {names[word] for word in inside if word in names}
            if any(word.startswith(str(build)) and word.removeprefix(f"{build}/") not in names for word in words):
                runs.add("all")  # a folder of the build, which holds whatever it holds
            tests[name] = (str(file.parent.relative_to(build)), {word.removeprefix(f"{ROOT}/") for word in words}, runs)
    return tests


def main(build, base):
    build = pathlib.Path(build).resolve()
    changed = changed_files(base)
    targets = read_targets(build)
    tests = read_tests(build, targets)
    chosen = choose(changed, tests, read_compiled(build, targets))
    print(f"affected: {len(changed)} files differ from {base}, {len(chosen)} of {len(tests)} tests are chosen; run all of "
          "tools/test before the change lands", file=sys.stderr)
    for reason in sorted(set(chosen.values())):
        print(f"  {reason}:", *sorted(name for name in chosen if chosen[name] == reason), file=sys.stderr)
    programs = {"plugrad_tool"}.union(*(tests[name][2] for name in chosen))
    print(*({"all"} if "all" in programs else sorted(programs)) if chosen else "")
    print(f"^({'|'.join(map(re.escape, sorted(chosen)))})$" if chosen else "")


if __name__ == "__main__":
    main(*sys.argv[1:])
