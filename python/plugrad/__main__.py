"""The plugrad command: becomes the program of plugrad_backend.

Its process, exit status and signals are the program's own.
"""
import os
import signal
import sys

from . import _backend


def main() -> None:
    program = os.path.join(_backend.prepare(), "bin", "plugrad")
    # Python ignores these, and a program inherits what is ignored.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    os.execv(program, ["plugrad", *sys.argv[1:]])


if __name__ == "__main__":
    main()
