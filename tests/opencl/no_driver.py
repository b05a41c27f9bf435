"""Tests that without a driver OPENCL has 0 devices and reports reason and remedy, and that other
devices work.

usage: no_driver.py PLUGRAD"""
import json
import os
import subprocess
import sys
import tempfile


def run(plugrad, *arguments):
    with tempfile.TemporaryDirectory() as empty:
        # An empty folder for the loader's driver search.
        environment = dict(os.environ, OCL_ICD_VENDORS=empty, OPENCL_VENDOR_PATH=empty)
        return subprocess.run([plugrad, *arguments], env=environment, capture_output=True, text=True)


def main():
    plugrad = sys.argv[1]
    shown = run(plugrad, "devices", "--why", "--json")
    assert shown.returncode == 0, shown.stderr
    devices = json.loads(shown.stdout)
    plugin = [p for p in devices["plugins"] if p["name"] == "OPENCL"]
    assert len(plugin) == 1, devices["plugins"]
    assert plugin[0]["state"] == "absent", plugin
    text = plugin[0]["reason"] + plugin[0]["hint"]
    # Depending on the machine, the driver or the loader is missing.
    assert "pocl-opencl-icd" in text and "install" in text, text
    names = [d["name"] for d in devices["devices"]]
    assert not any(n.startswith("OPENCL") for n in names) and "CPU:0" in names, names

    asked = run(plugrad, "train", "mnist", "--device", "OPENCL", "--steps", "1")
    assert asked.returncode != 0 and "OPENCL" in asked.stderr, (asked.returncode, asked.stderr)


if __name__ == "__main__":
    main()
