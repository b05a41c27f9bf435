"""How a model is called from Python, and what is said about wrong calls."""
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

import plugrad as pg

MODEL = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> '
                           "g (float[N, 2] x, int64 n) => (float[N, 2] y) { f = Cast<to = 1>(n) y = Mul(x, f) }")
x = np.array([[1, 2]], np.float32)


def refused(kind: type[Exception], text: str, call: object) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{kind.__name__} was expected: {text}")


model = pg.onnx.load(MODEL.SerializeToString())
for given in (model(x, 3), model(x, n=3), model(x=x, n=np.int64(3)), model({"x": x, "n": 3})):
    assert given[0].tolist() == [[3, 6]]
assert repr(model) == "plugrad.onnx.Model(inputs=[x: float (N, 2), n: int64 ()], outputs=[y: float (N, 2)])", repr(model)
assert [value.dtype for value in model.inputs] == [pg.float32, pg.int64]
refused(TypeError, 'no input "m"', lambda: model(x, m=3))
refused(TypeError, '"x" is given by position and by name', lambda: model(x, x=x))
refused(TypeError, '"n" is not given', lambda: model({"x": x}))
refused(ValueError, "is a sequence (a list in Python)", lambda: model([[1, 2]], 3))
refused(ValueError, 'unknown device "XX"', lambda: pg.onnx.load(MODEL.SerializeToString(), device="XX"))
replaceable = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] b = {1, 2}) '
                                 "=> (float[2] y) { y = Add(x, b) }")
model = pg.onnx.load(replaceable.SerializeToString())
assert [value.name for value in model.optional_inputs] == ["b"] and len(model.inputs) == 1
assert model(x[0])[0].tolist() == [2, 4]
assert model(x[0], b=x[0])[0].tolist() == [2, 4] == model({"x": x[0], "b": x[0]})[0].tolist()
assert model(x[0], b=x[0] * 10)[0].tolist() == [11, 22]
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "m.onnx"
    onnx.save(MODEL, path)
    model = pg.onnx.load(path)
    path.write_bytes(b"")  # while the model is loaded
    assert model(x, 2)[0].tolist() == [[2, 4]]
