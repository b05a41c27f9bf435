#!/usr/bin/env python3
"""Tests a machine without NVIDIA's driver: the plugin is listed with reason and remedy, other
devices are unaffected, and the plugin passes L0.

usage: absent.py PLUGRAD PLUGIN"""
import ctypes
import glob
import json
import subprocess
import sys

SKIPPED = 77


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return bool(glob.glob("/dev/nvidia*") or glob.glob("/dev/dxg"))


def json_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    tool, plugin = sys.argv[1:]
    if has_driver():
        print("SKIPPED: this machine has a driver")
        sys.exit(SKIPPED)
    listed = json_of(tool, "devices", "--why", "--json")
    cuda = [entry for entry in listed["plugins"] if entry["name"] == "CUDA" and entry["path"] == plugin]
    assert len(cuda) == 1, listed["plugins"]
    assert cuda[0]["state"] == "absent" and "/dev/nvidiactl" in cuda[0]["reason"], cuda[0]
    assert "install NVIDIA's driver" in cuda[0]["hint"], cuda[0]
    names = [device["name"] for device in listed["devices"]]
    assert "CPU:0" in names and not any(name.startswith("CUDA") for name in names), names
    refused = subprocess.run([tool, "train", "mnist", "--device", "CUDA", "--steps", "1"], capture_output=True, text=True)
    assert refused.returncode != 0 and "install NVIDIA's driver" in refused.stderr, refused
    report = json_of(tool, "conformance", "--plugin", plugin, "--level", "L0", "--json")
    totals = report["totals"]
    assert totals["pass"] >= 22 and totals["fail"] == totals["crash"] == totals["timeout"] == 0, totals
    print(f"CUDA is absent as it should be; L0 passes {totals['pass']} tests")


if __name__ == "__main__":
    main()
