"""write_a_plugin_test.py ARCHIVE: runs the commands of docs/write-a-plugin.md.

Its shell blocks run in order, in one shell, in an empty folder with the archive and a space in its
name; each must succeed, and the output stated on the page must appear."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = SOURCE / "docs/write-a-plugin.md"
EXPECTED = [r"L1 core +\d+ passed +0 failed", r"ACME:0", r"ACME +loaded", r"FILL:", r"1[0-9] passed, 0 failed",
            r"conformance\.html", r"libplugrad_plugin_acme\.so"]


def main(archive):
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    if len(blocks) < 6:
        sys.exit(f"{PAGE.name} has {len(blocks)} shell blocks")
    with tempfile.TemporaryDirectory(prefix="an author's ") as folder:
        shutil.copy(archive, folder)
        begin = time.monotonic()
        # A failing block ends the script.
        script = "set -eo pipefail\n" + "\n".join(f"echo '--- block {i}'\n{block}" for i, block in enumerate(blocks))
        done = subprocess.run(["bash", "-c", script], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder})
        if done.returncode != 0:
            sys.exit(f"{done.stdout[-6000:]}\n{PAGE.name}: the last block shown exited with {done.returncode}")
        for pattern in EXPECTED:
            if not re.search(pattern, done.stdout):
                sys.exit(f"{done.stdout}\n{PAGE.name}: nothing printed {pattern}")
    print(f"{PAGE.name}: {len(blocks)} blocks ran in {time.monotonic() - begin:.0f} s")


main(*sys.argv[1:])
