"""tinygrad_test.py WHEELS: tinygrad_surface's adapter against values recorded from tinygrad."""
import sys

import fresh

FOLDER = fresh.SOURCE / "tests/python/tinygrad_surface"


def main(folder: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *fresh.wheels_in(folder), "numpy")
    print(environment.run("python", str(FOLDER / "run.py"), str(FOLDER / "imports_test.py")))
    print(environment.run("python", str(FOLDER / "compare.py"), "compare",
                          str(FOLDER / "reference.json")))


main(*sys.argv[1:])
