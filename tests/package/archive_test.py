"""archive_test.py BUILD_TREE ARCHIVE: tests that the relocatable archive, unpacked elsewhere, is
sufficient for plugin authors.

Every shared library that its files load is in the archive or part of every system. With only the
archive's bin on PATH, `plugrad new-plugin` creates projects in C and C++ that configure without
options, build, and pass level L1."""
import importlib.machinery
import importlib.util
import pathlib
import shlex
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def load_packager():
    loader = importlib.machinery.SourceFileLoader("packager", str(SOURCE / "tools/package"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("packager", loader))
    loader.exec_module(module)
    return module


def run(command, environment, folder):
    done = subprocess.run(command, text=True, capture_output=True, env=environment, cwd=folder, shell=True)
    if done.returncode != 0:
        sys.exit(f"{command}\nexited with {done.returncode}\n{done.stdout[-8000:]}{done.stderr[-4000:]}")
    return done.stdout


def check_libraries(packager, prefix):
    files = [path for path in prefix.rglob("*") if packager.is_dynamic(path)]
    if len(files) < 10:
        sys.exit(f"only {len(files)} libraries and programs in the archive")
    for path in files:
        if path.name.startswith(packager.ADAPTER):
            continue  # loaded only where the MPI that it is linked with is installed
        for name, place in packager.libraries_of(path):
            if prefix not in place.resolve().parents and not packager.SYSTEM.match(name):
                sys.exit(f"{path.relative_to(prefix)} takes {name} from {place}")
        names = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        if str(SOURCE) in names:
            sys.exit(f"{path.relative_to(prefix)} names the source tree:\n{names}")


def make_and_judge(environment, folder, language):
    (folder / language).mkdir()
    printed = run(
        f"plugrad new-plugin demo --lang {language} --dir X && cmake -S X -B X/b && cmake --build X/b && "
        "plugrad conformance --plugin X/b/libplugrad_plugin_demo.so --level L1", environment, folder / language)
    if " passed, 0 failed, 0 crashed, 0 timed out" not in printed.splitlines()[-2] + printed.splitlines()[-1]:
        sys.exit(f"{language}: the suite's summary: {printed[-500:]}")


def check_licences(prefix, folder):
    """The archive contains the licence, and every source file of a new project states 0BSD."""
    if not (prefix / "share/doc/plugrad/LICENSE").exists():
        sys.exit("the archive has no LICENSE")
    for path in (path for language in ("c", "cpp") for path in (folder / language / "X").glob("*")):
        if path.is_file() and path.suffix != ".json" and "0BSD" not in path.read_text():
            sys.exit(f"{path} does not name its licence")


def check_no_path(environment, folder, prefix):
    """A project contains no path of the machine that created it, and receives plugrad's location if
    PATH lacks it."""
    for language in ("c", "cpp"):
        named = [p for p in (folder / language / "X").glob("*") if p.is_file() and str(prefix) in p.read_text()]
        if named:
            sys.exit(f"a project names {prefix}: {named}")
    (folder / "other").mkdir()
    elsewhere = {**environment, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    printed = run(f"{shlex.quote(f'{prefix}/bin/plugrad')} new-plugin demo", elsewhere, folder / "other")
    command = next(line.strip() for line in printed.splitlines() if "cmake -S" in line)
    if "-DCMAKE_PREFIX_PATH=" not in command:
        sys.exit(f"without PATH the next step has no place to find plugrad at: {command}")
    run(command, elsewhere, folder / "other")


def check_refusals(environment, folder):
    (folder / "full").mkdir()
    (folder / "full/file").write_text("kept")
    for arguments, code, text in (("class", 2, "word of the language"), ("Acme", 2, "no name for a plugin"),
                                  ("cuda", 2, "own parts"), ("a" * 40, 2, "40 characters"), ("", 2, "give one name"),
                                  ("x --lang rust", 2, "no template"), ("x --dir full", 1, "not an empty directory")):
        done = subprocess.run(f"plugrad new-plugin {arguments}", shell=True, capture_output=True, text=True,
                              env=environment, cwd=folder)
        if done.returncode != code or text not in done.stderr:
            sys.exit(f"new-plugin {arguments}: {done.returncode} {done.stderr}")
    if [p.name for p in folder.iterdir() if p.is_dir() and p.name not in ("full", "c", "cpp", "other", "moved here")]:
        sys.exit(f"a refused project left something: {list(folder.iterdir())}")


def main(build, archive):
    packager = load_packager()
    with tempfile.TemporaryDirectory(prefix="an author's ") as folder:
        folder = pathlib.Path(folder).resolve()
        packager.main(build, archive)
        moved = folder / "moved here"
        moved.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", moved], check=True)
        prefix = next(moved.iterdir())
        environment = {"PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}
        check_libraries(packager, prefix)
        for language in ("c", "cpp"):
            make_and_judge(environment, folder, language)
        check_licences(prefix, folder)
        check_no_path(environment, folder, prefix)
        check_refusals(environment, folder)
    print("archive: unpacked elsewhere it makes, builds and judges plugins in C and C++")


main(*sys.argv[1:])
