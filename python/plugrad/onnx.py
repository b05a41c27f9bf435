"""Models from ONNX files, and functions of tensors as ONNX files.

    model = plugrad.onnx.load("model.onnx")
    print(model.inputs)
    (scores,) = model(image)

    plugrad.onnx.export(net, [image], "net.onnx", input_names=["image"])
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import nn
from ._plugrad import Tensor
from ._plugrad._onnx import Model as Model, ValueInfo as ValueInfo, _save, load as load


def export(function: Callable[..., Any], inputs: Sequence[Tensor], path: str | os.PathLike[str], *,
           input_names: Sequence[str] = (), output_names: Sequence[str] = (),
           parameters: Mapping[str, Tensor] | None = None, external_data: bool = False) -> None:
    """Writes a function of tensors, such as a module, as an ONNX file (opset 21, IR version 10).

    The function is called once, in evaluation mode, with tensors of the shapes and dtypes of `inputs`, whose elements do
    not matter, and returns a tensor or a sequence of tensors. Other tensors that it reads become initialisers; `parameters` names
    them, by default those of a module. With `external_data`, and beyond 2 GB, large initialisers are in `path`.data.
    Errors: ValueError for a file that cannot be written, NotImplementedError, with all of it, for what ONNX does not
    have.
    """
    if parameters is None:
        parameters = nn.state_dict(function)
    _save(function, list(inputs), path, list(input_names), list(output_names), list(parameters.items()), external_data)
