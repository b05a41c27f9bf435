"""run_pytest.py WHEELS [PYTEST_ARGUMENT…]: runs python/tests with the wheels in a fresh virtual environment."""
import os
import sys

import fresh

REQUIRED = ["pytest", "numpy", "ml-dtypes", "hypothesis"]
# For tests that are skipped without them.
OPTIONAL = ["mypy", "nbclient", "ipykernel", "array-api-strict", "scipy", "scikit-learn", "pillow",
            *(["pyright[nodejs]"] if "PLUGRAD_TEST_ALL" in os.environ else [])]


def main(folder: str, *arguments: str) -> None:
    environment = fresh.Environment()
    environment.pip("install", *fresh.wheels_in(folder), *REQUIRED)
    environment.pip("install", *OPTIONAL, required=False)
    print(environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir",
                          str(environment.folder), *arguments, str(fresh.SOURCE / "python/tests")))


main(*sys.argv[1:])
