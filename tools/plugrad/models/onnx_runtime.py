"""Runs a model in ONNX Runtime: onnx_runtime.py MODEL FOLDER.

FOLDER/call.json names the inputs and outputs; the arrays are FOLDER/input_0.npy… and FOLDER/output_0.npy…. Prints the version.
"""
import json
import sys

model, folder = sys.argv[1:]
try:
    import numpy
    import onnxruntime
except ImportError as error:
    sys.exit(f"{error}; install it: {sys.executable} -m pip install onnxruntime")
with open(f"{folder}/call.json") as file:
    call = json.load(file)
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
# Without VNNI, sums of products of u8 and s8 saturate at 16 bits unless this is set.
options.add_session_config_entry("session.x64quantprecision", "1")
inputs = {name: numpy.load(f"{folder}/input_{i}.npy") for i, name in enumerate(call["inputs"])}
try:
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs = session.run(call["outputs"], inputs)
except Exception as error:
    sys.exit(f"ONNX Runtime {onnxruntime.__version__}: {error}")
for i, value in enumerate(outputs):
    numpy.save(f"{folder}/output_{i}.npy", value)
print(onnxruntime.__version__)
