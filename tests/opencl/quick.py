"""Runs the quick conformance suite on OPENCL; exit code 77 (skipped) without such a device.

usage: quick.py PLUGRAD [--third | PLUGIN [OPTION ...]]
--third: of the kernels of L2 every third. PLUGIN: a library to test instead of OPENCL's"""
import json
import subprocess
import sys

SKIPPED = 77


def third(plugrad):
    listed = subprocess.run([plugrad, "conformance", "--list", "--quick"], capture_output=True, text=True, check=True)
    ids = [line.split()[-1] for line in listed.stdout.splitlines()]
    kernels = [name for name in ids if name.startswith("l2.")]
    return [name for name in ids if not name.startswith("l2.")] + kernels[::3]


def main():
    plugrad, options = sys.argv[1], sys.argv[2:]
    shown = subprocess.run([plugrad, "devices", "--json"], capture_output=True, text=True, check=True)
    if not any(d["name"].startswith("OPENCL") for d in json.loads(shown.stdout)["devices"]):
        print("no OPENCL device: install pocl-opencl-icd to run this test")
        return SKIPPED
    judged = ["--plugin", *options] if options else ["--device", "OPENCL"]
    if options == ["--third"]:
        judged = ["--device", "OPENCL", "--filter", ",".join(third(plugrad))]
    return subprocess.run([plugrad, "conformance", "--quick", "--time-limit-factor", "4", *judged]).returncode


if __name__ == "__main__":
    sys.exit(main())
