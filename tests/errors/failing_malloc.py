"""Lets one allocation fail during plugin discovery and cache listing: each run ends normally, with
its result or a message; none is killed by a signal.

usage: failing_malloc.py PLUGRAD REFERENCE_PLUGIN FAILING_MALLOC [RUNS]

Allocations of drivers are excluded, as are glibc's allocations for thread exit, whose failure makes
glibc abort."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

RUNS = 250
ENDED_BY_GLIBC = "Fatal glibc error: failed to register TLS destructor: out of memory"


def run(command, environment):
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=250)


def allocations(command, environment, folder):
    """Counts allocations: of the process with the most among it and its children, and of the
    shortest possible run."""
    counts = []
    for words in (command, [command[0], "--version"]):
        told = folder / f"count{len(counts)}"
        done = run(words, {**environment, "FAIL_AT": "0", "FAIL_COUNT": str(told)})
        assert done.returncode == 0, done.stderr
        counts.append(max(int(line) for line in told.read_text().split()))
    return counts


def check(command, environment, runs, folder):
    most, start = allocations(command, environment, folder)
    assert most > start + 100, (command, most, start)
    step = max(1, (most - start) // runs)
    failures = {}
    for at in range(start - start // 4, most, step):
        done = run(command, {**environment, "FAIL_AT": str(at)})
        if done.stderr.strip() == ENDED_BY_GLIBC:
            continue
        if done.returncode < 0 or (done.returncode != 0 and not done.stderr.strip()):
            failures[at] = (done.returncode, done.stderr.strip()[-300:])
    for at, what in failures.items():
        print(f"{' '.join(command)}: with allocation {at} of {most} failing: {what}")
    print(f"{command[1]}: {len(range(start - start // 4, most, step))} runs, {len(failures)} failures")
    return not failures


def main():
    binary, plugin, failing = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else RUNS
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plugins = folder / "lib/plugrad/plugins"  # found next to the command
        plugins.mkdir(parents=True)
        shutil.copy(plugin, plugins)
        (folder / "bin").mkdir()
        command = str(shutil.copy(binary, folder / "bin"))
        environment = {"LD_PRELOAD": str(failing), "HOME": name, "PLUGRAD_CACHE_DIR": str(folder / "cache"),
                       "PLUGRAD_PLUGIN_PATH": "", "XDG_DATA_HOME": name}
        good = check([command, "devices", "--why"], environment, runs, folder)
        subprocess.run([command, "cache", "clear"], check=True, stdout=subprocess.DEVNULL,
                       # creates the cache file
                       env={"PLUGRAD_CACHE_DIR": environment["PLUGRAD_CACHE_DIR"]})
        good = check([command, "cache", "stats"], environment, runs // 5, folder) and good
    sys.exit(0 if good else "a process was killed or said nothing")


if __name__ == "__main__":
    main()
