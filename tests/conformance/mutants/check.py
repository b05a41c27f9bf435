"""check.py PREFIX [--half | NAME…]: checks that each mutant of table.py is detected by its named test.

PREFIX is an installed or built plugrad. The unmodified plugins must pass every named test; each
mutant, compiled from the one modified file, must fail, crash or time out in exactly its test.
--half takes every second mutant.
--write-page writes docs/conformance-mutants.md; otherwise the page must match the table."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import table  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = {"c": SOURCE / "sdk/template/c", "cpp": SOURCE / "sdk/template/cpp",
           "reference": SOURCE / "plugins/reference"}
TITLES = {"c": "the C template", "cpp": "the C++ template", "reference": "REFERENCE"}
PAGE = SOURCE / "docs/conformance-mutants.md"
INCLUDES = [f"-I{SOURCE / room / 'include'}" for room in ("plugin_api", "sdk")]
COMMON = ["-O1", "-fPIC", "-w", "-fvisibility=hidden", *INCLUDES]
CXX = ["c++", "-std=c++20", "-O0", *COMMON[1:]]
LANGUAGES = {"c": ["cc", *COMMON], "cpp": CXX, "reference": CXX}
CAUGHT = {"fail", "crash", "timeout"}
# A hang costs its whole time limit; this factor keeps it below a second.
TIME_FACTOR = "0.05"


def run(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def manifest_of(language):
    return (FOLDERS[language] / "manifest.json").read_text().replace("@PLUGRAD_SANITIZE@", "")


def note_of(language):
    text = json.dumps(manifest_of(language))
    return f'#include "plugrad/plugin_api/plugin.h"\nPGR_PLUGIN_NOTE({text});\n'


class Builder:
    """Compiles a template once, and afterwards only the file that a mutant changes."""

    def __init__(self, prefix, folder):
        self.prefix, self.folder = prefix, folder
        self.objects = {}
        for language in LANGUAGES:
            (folder / language).mkdir()
            (folder / f"{language}/note.c").write_text(note_of(language))
        files = [(language, path) for language in LANGUAGES
                 for path in [folder / language / "note.c", *sorted(FOLDERS[language].glob("*.c*"))]]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for (language, path), made in zip(files, pool.map(lambda job: self.compile(*job, folder / job[0]), files)):
                self.objects.setdefault(language, {})[path.name] = made

    def compile(self, language, path, target):
        compiler = LANGUAGES["c" if path.suffix == ".c" else language]
        made = target / (path.stem + ".o")
        run(*compiler, f"-I{FOLDERS[language]}", "-c", path, "-o", made)
        return made

    def link(self, language, objects, target):
        library = target / "libplugrad_plugin_acme.so"
        archives = [self.prefix / f"lib/libplugrad_{name}.a" for name in ("interpreter", "sdk")] if language != "c" else []
        run(LANGUAGES[language][0], "-shared", *objects.values(), *archives, "-o", library, "-Wl,--exclude-libs,ALL",
            f"-Wl,--version-script={SOURCE / 'cmake/plugin.map'}")
        return library

    def original(self, language):
        target = self.folder / f"{language}-original"
        target.mkdir(exist_ok=True)
        (target / "libplugrad_plugin_acme.json").write_text(manifest_of(language))
        return self.link(language, self.objects[language], target)

    def mutant(self, name, file, replacements):
        language, _, base = file.partition("/")
        path = FOLDERS[language] / base
        text = path.read_text() if path.suffix != ".json" else manifest_of(language)
        for old, new in replacements:
            if text.count(old) != 1:
                raise RuntimeError(f"the template has {text.count(old)} times:\n{old}")
            text = text.replace(old, new)
        target = self.folder / name
        target.mkdir()
        objects, manifest = dict(self.objects[language]), manifest_of(language)
        if path.suffix == ".json":
            manifest = text
        else:
            changed = target / path.name
            changed.write_text(text)
            objects[path.name] = self.compile(language, changed, target)
        (target / "libplugrad_plugin_acme.json").write_text(manifest)
        return self.link(language, objects, target)


def judge(prefix, library, tests, factor="1"):
    """Status of each test, by id."""
    command = [prefix / "bin/plugrad", "conformance", "--plugin", library, "--filter", ",".join(tests), "--json",
               "--time-limit-factor", factor]
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    try:
        found = {test["id"]: test for test in json.loads(done.stdout)["tests"]}
    except (ValueError, KeyError):
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}") from None
    return {test: found.get(test, {"status": "not among the suite's tests"}) for test in tests}


def check_mutant(builder, row):
    name, _, file, replacements, test = row
    try:
        library = builder.mutant(name, file, replacements)
        factor = TIME_FACTOR if name == "hang" else "1"
        result = judge(builder.prefix, library, [test], factor)[test]
        return "" if result["status"] in CAUGHT else f"{test} gave {result['status']} {result.get('message', '')}"
    except RuntimeError as error:
        return str(error)


def check_unknown_option(prefix, library):
    """Checks that an unknown plugin-wide option is rejected by name."""
    done = subprocess.run([str(prefix / "bin/plugrad"), "conformance", "--plugin", str(library), "--plugin-option",
                           "colour=red"], text=True, capture_output=True)
    told = "NOT_FOUND" in done.stderr and "colour" in done.stderr
    return [] if done.returncode == 1 and told else [f"{library}: --plugin-option colour=red: {done.stderr}"]


def check_originals(builder, rows):
    breaches = []
    for language in LANGUAGES:
        tests = sorted({row[4] for row in rows if row[2].startswith(language + "/")})
        if not tests:
            continue
        library = builder.original(language)
        breaches += check_unknown_option(builder.prefix, library)
        for test, result in judge(builder.prefix, library, tests).items():
            # A false claim is one that the template does not make.
            if result["status"] != "pass" and test != "l2.alu.sin.f32":
                breaches.append(f"{TITLES[language]} itself: {test} {result['status']} {result.get('message', '')}")
    return breaches


def page():
    lines = ["# Mutants: bugs that the suite detects", "",
             "A mutant is a plugin with one deliberate bug. Each row names a mutant and the test of the conformance suite "
             "that must detect it.", "`tests/conformance/mutants` makes the mutants. `tools/test` runs half of them, "
             "`tools/test --full` each, against its test; the unchanged plugins pass all of these tests.", "`tests/conformance/mutants/check.py --write-page` generates "
             "this page.", "",
             "| mutant | bug | base | detected by |", "|---|---|---|---|"]
    for name, broken, file, _, test in table.ROWS:
        lines.append(f"| {name} | {broken} | {TITLES[file.partition('/')[0]]} | `{test}` |")
    return "\n".join(lines) + "\n"


def main(prefix, *names):
    if prefix == "--write-page":
        PAGE.write_text(page())
        return
    if names == ("--half",):
        rows, names = table.ROWS[::2], ()
    else:
        rows = [row for row in table.ROWS if not names or row[0] in names]
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(pathlib.Path(prefix).resolve(), pathlib.Path(folder))
        breaches = check_originals(builder, rows)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for row, breach in zip(rows, pool.map(lambda row: check_mutant(builder, row), rows)):
                if breach:
                    breaches.append(f"mutant {row[0]} ({row[1]}): {breach}")
    if not names and PAGE.read_text() != page():
        breaches.append(f"{PAGE.name} is not what table.py says: run {pathlib.Path(__file__).name} --write-page")
    print("\n".join(breaches) or f"mutants: {len(rows)} of {len(rows)} caught by the tests that they name")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main(*sys.argv[1:])
