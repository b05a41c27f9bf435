"""host_compiler_test.py CC: tests that pgr_cc_compile passes flags on, includes them in the
identity, and leaves no file behind, neither after success nor if its process group is killed during
the compilation."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Writes its arguments to a file, optionally waits, and executes the compiler.
COMPILER = '#!/bin/sh\necho "$@" > "{folder}/arguments"\n{wait}\nexec {cc} "$@"\n'


def check(what, condition, seen=""):
    if not condition:
        sys.exit(f"{what}\nseen: {seen}")


def wait_for(condition, seconds=200):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def make_compiler(folder, cc, wait):
    path = folder / "compiler"
    path.write_text(COMPILER.format(folder=folder, wait=wait, cc=cc))
    path.chmod(0o755)
    return path


def work_folder(folder):
    """The folder of the compilation, from the compiler's arguments."""
    words = (folder / "arguments").read_text().split()
    return pathlib.Path(next(word for word in words if word.endswith("/kernel.c"))).parent


def check_flags(folder, program, cc):
    compiler = make_compiler(folder, cc, "")
    done = subprocess.run([program, compiler, "-DONE=1", "-DTWO"], capture_output=True, text=True)
    check("a compilation with flags", done.returncode == 0, done.stdout + done.stderr)
    words = (folder / "arguments").read_text().split()
    check("the flags come last, in order", words[-2:] == ["-DONE=1", "-DTWO"], words)
    check("the identity names them", done.stdout.splitlines()[0].endswith("-lm -DONE=1 -DTWO"), done.stdout)
    check("a compilation leaves nothing", not work_folder(folder).exists(), work_folder(folder))


def check_kill(folder, program, cc):
    (folder / "arguments").unlink()
    compiler = make_compiler(folder, cc, "sleep 60")
    child = subprocess.Popen([program, compiler], start_new_session=True)
    check("the compiler starts", wait_for(lambda: (folder / "arguments").exists() and work_folder(folder)))
    used = work_folder(folder)
    check("the compilation has a folder", used.exists(), used)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    check("a killed compilation leaves nothing", wait_for(lambda: not used.exists()), used)


def main(cc):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = folder / "host_compiler"
        subprocess.run([cc, "-w", f"-I{SOURCE}/plugin_api/include", f"-I{SOURCE}/sdk/include",
                        SOURCE / "tests/template/host_compiler.c", "-o", program, "-ldl"], check=True)
        check_flags(folder, program, cc)
        check_kill(folder, program, cc)
    print("host compiler: takes flags, leaves nothing behind")


main(*sys.argv[1:])
