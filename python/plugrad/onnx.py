"""Models from ONNX files.

    model = plugrad.onnx.load("model.onnx")
    print(model.inputs)
    (scores,) = model(image)
"""
from __future__ import annotations

from ._plugrad._onnx import Model as Model, ValueInfo as ValueInfo, load as load
