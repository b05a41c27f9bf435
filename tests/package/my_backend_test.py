"""my_backend_test.py PREFIX: tests that the commands of docs/examples/my_backend/README.md build
the device MY, and that it computes.

PREFIX is an installed or built plugrad. The commands run in order in a copy of the folder."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs/examples/my_backend"


def main(prefix):
    block = re.search(r"^```sh\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.S | re.M)[1]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "my_backend"
        shutil.copytree(EXAMPLE, place)
        environment = {"PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": folder,
                       "PLUGRAD_CACHE_DIR": f"{folder}/cache", **{k: v for k, v in os.environ.items() if "CCACHE" in k}}
        done = subprocess.run(["bash", "-e", "-c", block], cwd=place, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=environment)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-6000:]}\nexited with {done.returncode}")
    for pattern in (r"^L1 core +\d+ passed +0 failed", r"^5 7 9 on MY$", r"^MY +[\d.]+ GFLOP/s, off by ",
                    r"^CPU +[\d.]+ GFLOP/s, off by "):
        if not re.search(pattern, done.stdout, re.M):
            sys.exit(f"{done.stdout}\nnothing printed {pattern}")
    print("\n".join(line for line in done.stdout.splitlines() if "GFLOP" in line))


main(*sys.argv[1:])
