"""A decoder of two layers whose key-value caches grow by one position in each call, as an ONNX model: four heads share
two keys, which Tile repeats as torch.repeat_interleave does."""
import numpy
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, GROUPS, HEAD, LAYERS = 64, 4, 2, 16, 2


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.random = [], [], numpy.random.RandomState(0)

    def constant(self, values, dtype):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values, dtype), name))
        return name

    def __call__(self, op, *inputs, to=None, **attributes):
        name = to or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def project(self, x, rows, columns):
        weight = self.random.standard_normal((rows, columns)) / numpy.sqrt(rows)
        return self("MatMul", x, self.constant(weight, numpy.float32))

    def reshape(self, x, *shape):
        return self("Reshape", x, self.constant(shape, numpy.int64))

    def heads(self, x, count):
        return self.reshape(self.project(x, WIDTH, count * HEAD), 1, count, 1, HEAD)

    def repeated(self, x):
        apart = self("Unsqueeze", x, self.constant([2], numpy.int64))
        tiled = self("Tile", apart, self.constant([1, 1, HEADS // GROUPS, 1, 1], numpy.int64))
        return self.reshape(tiled, 1, HEADS, -1, HEAD)

    def layer(self, x, number):
        """The result; the grown caches are outputs of the model."""
        query = self.heads(x, HEADS)
        keys, values = (self.repeated(self("Concat", f"{name}{number}", self.heads(x, GROUPS), axis=2, to=f"new_{name}{number}"))
                        for name in ("keys", "values"))
        scores = self("MatMul", query, self("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self("Mul", scores, self.constant(HEAD ** -0.5, numpy.float32))
        mixed = self.reshape(self("MatMul", self("Softmax", scores, axis=-1), values), 1, 1, HEADS * HEAD)
        return self("Add", x, self.project(mixed, HEADS * HEAD, WIDTH))


def model():
    """The bytes of the file."""
    graph, x = Graph(), "x"
    for number in range(LAYERS):
        x = graph.layer(x, number)
    graph("Tanh", x, to="y")
    caches = [f"{name}{number}" for number in range(LAYERS) for name in ("keys", "values")]

    def of(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [of("x", [1, 1, WIDTH])] + [of(name, [1, GROUPS, "past", HEAD]) for name in caches]
    outputs = [of("y", [1, 1, WIDTH])] + [of(f"new_{name}", [1, GROUPS, "next", HEAD]) for name in caches]
    made = helper.make_graph(graph.nodes, "decoder", inputs, outputs, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
