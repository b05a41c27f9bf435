"""Runs the quick conformance suite on OPENCL; exit code 77 (skipped) without such a device.

usage: quick.py PLUGRAD [PLUGIN [OPTION ...]]    PLUGIN: a library to test instead of OPENCL's"""
import json
import subprocess
import sys

SKIPPED = 77


def main():
    plugrad = sys.argv[1]
    shown = subprocess.run([plugrad, "devices", "--json"], capture_output=True, text=True, check=True)
    if not any(d["name"].startswith("OPENCL") for d in json.loads(shown.stdout)["devices"]):
        print("no OPENCL device: install pocl-opencl-icd to run this test")
        return SKIPPED
    judged = ["--plugin", *sys.argv[2:]] if len(sys.argv) > 2 else ["--device", "OPENCL"]
    return subprocess.run([plugrad, "conformance", "--quick", "--time-limit-factor", "4", *judged]).returncode


if __name__ == "__main__":
    sys.exit(main())
