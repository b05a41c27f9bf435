"""page_test.py PROGRAM PAGE: the page equals the output of PROGRAM, generated from the renderer's
tables."""
import pathlib
import subprocess
import sys

program, page = sys.argv[1], pathlib.Path(sys.argv[2])
want = subprocess.run([program], check=True, capture_output=True, text=True).stdout
if page.read_text(encoding="utf-8") != want:
    sys.exit(f"{page.name} is not what the tables of sdk/render say: run tools/update-dialects")
print(f"{page.name}: {len(want.splitlines())} lines, as the tables say")
