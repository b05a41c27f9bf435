"""Helpers of the checks: lists the repository's files and reports violations."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".def"}


def tracked_files():
    """Tracked and untracked, not ignored files, relative to the root; all files without git."""
    try:
        listing = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listing = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                   if p.is_file() and "build" not in p.relative_to(ROOT).parts[:1]]
    return sorted(pathlib.Path(name) for name in set(listing) if (ROOT / name).is_file())


def sources(*folders):
    return [f for f in tracked_files()
            if f.suffix in SOURCE_SUFFIXES and (not folders or f.parts[0] in folders)]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def finish(name, breaches, summary):
    """Prints the violations or the summary; returns the exit status."""
    for breach in breaches:
        print(f"{name}: {breach}", file=sys.stderr)
    print(f"{name}: {summary}, {len(breaches)} breach(es)")
    sys.exit(1 if breaches else 0)
