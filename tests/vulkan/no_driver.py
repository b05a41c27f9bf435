#!/usr/bin/env python3
"""Tests that without a Vulkan driver the plugin loads, has 0 devices and reports the missing part.

no_driver.py PLUGRAD: runs `plugrad devices --json` with driver files that do not exist."""
import json
import os
import subprocess
import sys

environment = dict(os.environ)
for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
    environment[name] = "/nonexistent/driver.json"
run = subprocess.run([sys.argv[1], "devices", "--json"], env=environment, capture_output=True, text=True, timeout=250)
assert run.returncode == 0, (run.returncode, run.stderr)
assert run.stderr == "", f"printed: {run.stderr}"
listed = json.loads(run.stdout)
assert not any(device["name"].startswith("VULKAN") for device in listed["devices"]), listed["devices"]
plugin = next(plugin for plugin in listed["plugins"] if plugin["name"] == "VULKAN")
told = plugin["reason"] + " " + plugin["hint"]
assert "driver" in told and "mesa-vulkan-drivers" in told, plugin
print(told)
