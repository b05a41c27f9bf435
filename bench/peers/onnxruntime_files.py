"""ONNX Runtime as a peer for the first call of ONNX files: usage: onnxruntime_files.py LABEL. Inputs
are NAME/INPUT.npy beside NAME.onnx."""
import os
import pathlib
import sys
import time

import numpy
import onnxruntime

import protocol


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.log_severity_level = 3
    if os.environ["OMP_WAIT_POLICY"] == "passive":
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def prepare(request):
    path = pathlib.Path(request["program"])
    inputs = {file.stem: numpy.load(file) for file in path.with_suffix("").glob("*.npy")}

    def first():
        """Processor seconds until the first result, from the file on."""
        start = time.process_time()
        session_of(str(path)).run(None, inputs)
        return protocol.floats([time.process_time() - start])

    return [(sys.argv[1], None, first)]


if __name__ == "__main__":
    protocol.serve(prepare)
