"""ONNX Runtime as a peer, for networks exported from PyTorch: usage: onnxruntime_peer.py LABEL. It
has no setting for the instruction set."""
import io
import os
import sys

import onnxruntime
import torch

import networks
import protocol

LABEL = sys.argv[1]


def session_of(net, data):
    file = io.BytesIO()
    torch.onnx.export(net, tuple(data), file, dynamo=False, opset_version=17)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])


def prepare(request):
    if request["kind"] != "network":
        return []
    inputs = [torch.frombuffer(data, dtype=torch.float32).view(shape).clone()
              for shape, data in protocol.read_inputs(request)]
    net, data = networks.load(request, inputs)
    session = session_of(net, data)
    given = {place.name: value.numpy() for place, value in zip(session.get_inputs(), data)}

    def run():
        return session.run(None, given)

    return [(LABEL, run, lambda: run()[0].tobytes())]


# PyTorch only exports: further threads would keep spinning on cores that ONNX Runtime needs.
torch.set_num_threads(1)
protocol.serve(prepare)
