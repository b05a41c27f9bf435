"""Fresh virtual environments with the wheels, for the tests beside this file."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PIP = [str(SOURCE / "build/wheel-env/bin/python"), "-m", "pip"]  # tools/wheel made it
SKIPPED = 77
NO_NETWORK = re.compile(r"NewConnectionError|NameResolution|Name or service not known|Temporary failure|"
                        r"ConnectTimeout|ReadTimeout|ProxyError|No matching distribution found")


def wheels_in(folder: str) -> list[str]:
    found = sorted(glob.glob(f"{folder}/plugrad*.whl"))
    if not found:
        print(f"skipped: no wheels in {folder}; tools/wheel makes none where PyPI cannot be reached")
        sys.exit(SKIPPED)
    if len(found) != 2:
        sys.exit(f"{folder} has {found}, not the two wheels")
    return found


class Environment:
    """A virtual environment in a folder that is deleted with it; commands run without the caller's
    environment, apart from the settings of tests."""

    def __init__(self, python: str = sys.executable) -> None:
        self.keeper = tempfile.TemporaryDirectory(prefix="plugrad-python-")
        self.folder = pathlib.Path(self.keeper.name)
        self.bin = self.folder / "venv/bin"
        subprocess.run([python, "-m", "venv", "--without-pip", str(self.folder / "venv")], check=True)
        self.variables = {"HOME": str(self.folder), "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                          "PLUGRAD_CACHE_DIR": str(self.folder / "cache"),
                          **{name: value for name, value in os.environ.items()
                             if re.match("CCACHE_|PLUGRAD_(TEST_|TUNE$|DATA$)", name)}}

    def pip(self, *arguments: str, required: bool = True) -> None:
        done = subprocess.run([*PIP, "--python", str(self.bin / "python"), *arguments, "--quiet",
                               "--disable-pip-version-check"], text=True, capture_output=True, env=os.environ | {"PIP_NO_COMPILE": "1"})
        if done.returncode != 0:
            print(f"pip {' '.join(arguments)}\n{done.stdout}{done.stderr}")
            if required:
                sys.exit(SKIPPED if NO_NETWORK.search(done.stdout + done.stderr) else 1)

    def start(self, *command: str, **options) -> subprocess.Popen:
        variables = self.variables | options.pop("variables", {})
        return subprocess.Popen([shutil.which(command[0], path=variables["PATH"]) or command[0],
                                 *command[1:]], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=variables, cwd=self.folder, **options)

    def run(self, *command: str, status: int = 0, **options) -> str:
        """What the command prints on both streams; ends the test if it exits with another status."""
        process = self.start(*command, **options)
        printed = "".join(process.communicate())
        if process.returncode != status:
            sys.exit(f"{' '.join(command)}\nexited with {process.returncode}, not {status}\n{printed[-8000:]}")
        return printed

    def python(self, program: str, **options) -> str:
        return self.run("python", "-c", program, **options)


def interpreters() -> list[str]:
    """One CPython of each minor version from 3.10 on that is on this machine."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") or "" for minor in range(10, 20)),
                  *sorted(glob.glob(f"{root}/versions/3.*/bin/python3"))]
    found: dict[str, str] = {}
    for path in filter(None, candidates):
        done = subprocess.run([path, "-c", "import sys, venv; print(*sys.version_info[:2], sys.implementation.name)"],
                              text=True, capture_output=True)
        version = done.stdout.split()
        if done.returncode == 0 and version[2] == "cpython" and int(version[1]) >= 10:
            found.setdefault(version[1], path)
    return [found[minor] for minor in sorted(found, key=int)]


def expect(condition: object, text: str) -> None:
    if not condition:
        sys.exit(f"failed: {text}")
