"""Trains the demo's network and checks its promised accuracy: usage: train_test.py PLUGRAD."""
import json
import os
import subprocess
import sys

if not os.environ.get("PLUGRAD_DATA"):
    print("PLUGRAD_DATA is not set")
    sys.exit(77)
done = subprocess.run([sys.argv[1], "train", "mnist"], stdout=subprocess.PIPE, text=True, check=True)
line = done.stdout.strip().splitlines()[-1]
print(line)
result = json.loads(line)
assert result["steps"] == 120 and result["model"] == "cnn", result
assert result["test_accuracy"] >= 0.98, result
assert abs(result["images_per_second"] * result["step_ms"] - 512e3) < 1, result
