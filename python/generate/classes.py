"""Writes the bindings of plugrad's layers, optimisers and learning rates from the public headers.

Every struct of the layers' headers, and every class of the optimisers', becomes a Python class:
structs of options are keyword arguments of its constructor and attributes, fields are attributes,
and operator() is __call__. A type of argument, result or field that is not known is an error.
"""
import re
from dataclasses import dataclass

import headers
from bindings import TYPES, Argument, Binder, doc_of, quoted
from headers import Class, Function, Parameter

LAYER_HEADERS = ["nn/layers.h", "nn/convolution.h", "nn/normalisation.h", "nn/attention.h",
                 "nn/recurrent.h"]
OPTIMISER_HEADERS = ["optim.h", "learning_rate.h"]
# Classes that are no Python classes of their own, or that python/src or python/plugrad defines.
BY_HAND = {"Optimizer", "OptimizerGroup", "Schedule", "RecurrentWeights"}
METHODS_BY_HAND = {"visit_fields", "__init__", "operator()"}
METHODS_THAT_COMPUTE = {"step", "check", "rate"}
RATE_FUNCTIONS_HEADER = "learning_rate.h"

# C++ names that are keywords in Python, or say more than Python needs.
NAMES = {"in": "in_", "from": "from_", "with_bias": "bias"}
# A second form of each constructor, with PyTorch's names of the arguments.
PYTORCH_NAMES = {
    "Linear": {"in_": "in_features", "out": "out_features"},
    "Embedding": {"count": "num_embeddings", "width": "embedding_dim"},
    "ConvLayer": {"in_": "in_channels", "out": "out_channels", "kernel": "kernel_size"},
    "BatchNorm": {"channels": "num_features"},
    "LayerNorm": {"shape": "normalized_shape", "affine": "elementwise_affine"},
    "GroupNorm": {"groups": "num_groups", "channels": "num_channels"},
    "InstanceNorm": {"channels": "num_features"},
    "RMSNorm": {"shape": "normalized_shape", "affine": "elementwise_affine"},
    "LSTMCell": {"in_": "input_size", "hidden": "hidden_size"},
    "GRUCell": {"in_": "input_size", "hidden": "hidden_size"},
    "RNNCell": {"in_": "input_size", "hidden": "hidden_size"},
    "LSTM": {"in_": "input_size", "hidden": "hidden_size", "layers": "num_layers"},
    "GRU": {"in_": "input_size", "hidden": "hidden_size", "layers": "num_layers"},
    "RNN": {"in_": "input_size", "hidden": "hidden_size", "layers": "num_layers"},
    "MultiHeadAttention": {"width": "embed_dim", "heads": "num_heads"},
}

TYPES |= {
    "State": ("const std::optional<RecurrentState>&", "state_of({})",
              "tuple[TensorLike, TensorLike] | None"),
    "std::array<double, 3>": ("const std::array<double, 3>&", "{}", "tuple[float, float, float]"),
    "Schedule": ("const optim::Schedule&", "{}", "Schedule"),
}
RESULTS = {
    "Tensor": "Tensor", "void": "None", "bool": "bool", "double": "float",
    "LSTMCell::State": "tuple[Tensor, Tensor]",
    "LSTM::Result": "tuple[Tensor, tuple[Tensor, Tensor]]",
    "GRU::Result": "tuple[Tensor, Tensor]",
    "RNN::Result": "tuple[Tensor, Tensor]",
    "Schedule": "Schedule",
}
# Python's types of attributes: (the type that is read, the type that is assigned)
ATTRIBUTES = {
    "bool": ("bool", "bool"),
    "double": ("float", "float"),
    "int64_t": ("int", "int"),
    "Shape": ("tuple[int, ...]", "ShapeLike"),
    "PerAxis": ("tuple[int, ...]", "AxisLike"),
    "Padding": ("int | tuple[Any, ...] | str", "PaddingLike"),
    "std::optional<DType>": ("dtype | None", "DTypeLike | None"),
}
# Layers that are fields of others, and layers that compute the names of their tensors.
NESTED = {"Linear"}
COMPUTED_NAMES = {"RecurrentWeights"}


@dataclass
class Bound:
    """One Python class."""

    name: str
    type: str  # in C++
    made: Class
    doc: str
    substitutions: dict[str, str]  # parameters of the template

    def type_of(self, name: str) -> str:
        return self.substitutions.get(name, name)


class ClassBinder:
    def __init__(self, binder: Binder):
        self.binder = binder
        self.options = dict(binder.options)
        for file in binder.files.values():
            self.options |= {made.name: made for made in file.classes
                             if made.name == "AttentionMask"}
        # Binder.arguments flattens these, too
        binder.options = self.options

    def classes(self, names: list[str], namespace: str) -> list[Bound]:
        found = []
        for name in names:
            file = self.binder.files[name]
            for made in file.classes:
                if made.name in self.options or made.name in BY_HAND or made.template:
                    continue
                found.append(Bound(made.name, f"{namespace}::{made.name}", made, doc_of(made), {}))
            found += self._instances(file, namespace)
        return found

    @staticmethod
    def _instances(file: headers.Header, namespace: str) -> list[Bound]:
        """The classes that are aliases of templates: Conv2d = ConvLayer<ConvOptions, 2>."""
        found = []
        templates = {made.name: made for made in file.classes if made.template}
        doc, last = "", ""
        for alias in file.aliases:
            match = re.match(r"(\w+)<(.*)>$", alias.type)
            if not match or match[1] not in templates:
                continue
            made, values = templates[match[1]], headers.split(match[2])
            doc = alias.doc or (doc if values[0] == last else "")
            last = values[0]
            found.append(Bound(alias.name, f"{namespace}::{alias.name}", made,
                               f"{doc}\n\n{made.doc}".strip(),
                               dict(zip(made.template, values))))
        return found

    # ---- One class ----

    def function(self, bound: Bound) -> str:
        """The C++ function that binds a class."""
        bases = [f"{bound.type.rsplit('::', 1)[0]}::{base}" for base in bound.made.bases]
        lines = [f"void bind_{python_name(bound.name)}(nb::module_& module) {{",
                 f"  using Self = {bound.type};",
                 f"  nb::class_<{', '.join(['Self', *bases])}> made(module, {quoted(bound.name)}, "
                 f"R\"doc({bound.doc})doc\");"]
        for function in bound.made.functions:
            if function.name == "__init__":
                lines += self._constructors(bound, function)
            elif function.name == "operator()":
                lines.append(self._method(bound, function, "__call__"))
            elif function.name not in METHODS_BY_HAND:
                lines.append(self._method(bound, function, function.name))
        for member in bound.made.fields:
            lines += self._attribute(bound, member)
        has_fields = any(function.name == "visit_fields" for function in bound.made.functions)
        if bound.made.fields:
            lists = [f"{{{', '.join(map(quoted, names))}}}" for names in self._parts(bound)]
            lines.append(f"  bind_module(made, ModuleParts{{{', '.join(lists)}}});")
        elif has_fields:
            lines.append("  bind_optimiser_state(made);")
        return "\n".join([*lines, "}"])

    def _arguments(self, function: Function, bound: Bound | None = None
                   ) -> tuple[list[Argument], list[str]]:
        parameters = [Parameter(bound.type_of(given.type) if bound else given.type,
                                NAMES.get(given.name, given.name), given.default)
                      for given in function.parameters]
        arguments, call = self.binder.arguments(parameters)
        for given in function.parameters:  # defaults of options: {.weight_decay = 0.01}
            for name, value in re.findall(r"\.(\w+) = ([^,}]+)", given.default or ""):
                argument = next(each for each in arguments if each.name == name)
                argument.default = value
                argument.python_default = repr(float(value))
        return arguments, call

    def _constructors(self, bound: Bound, function: Function) -> list[str]:
        arguments, call = self._arguments(function, bound)
        doc = self._constructor_doc(bound, function)
        made = [self._constructor(bound, arguments, call, doc)]
        other = PYTORCH_NAMES.get(bound.made.name)
        if other:
            names = [other.get(argument.name, argument.name) for argument in arguments]
            made.append(self._constructor(bound, arguments, call, doc, names))
        if {"beta1", "beta2"} <= {argument.name for argument in arguments}:
            made.append(self._with_betas(bound, arguments, call, doc))
        return made

    def _constructor(self, bound: Bound, arguments: list[Argument], call: list[str], doc: str,
                     names: list[str] | None = None) -> str:
        names = names or [argument.name for argument in arguments]
        declared = ["Self* self"] + [f"{each.declared} {each.variable}" for each in arguments]
        signature = ["self"] + [each.signature(name) for each, name in zip(arguments, names)]
        keywords = [each.keyword(name) for each, name in zip(arguments, names)]
        body = f"construct(self, {', '.join(call)});" if call else "construct(self);"
        if "parameters.get()" in call:  # an optimiser computes the initial values of its parameters
            body = ("const std::vector<Tensor> list = parameters.get(); "
                    "const Released released; "
                    + body.replace("parameters.get()", "list"))
        parts = [quoted("__init__"),
                 f"[]({', '.join(declared)}) {{ const Place place; {body} }}", *keywords,
                 f"nb::sig({quoted('def __init__(' + ', '.join(signature) + ') -> None')})"]
        if doc:
            parts.append(f"R\"doc({doc})doc\"")
        return f"  made.def({', '.join(parts)});"

    def _with_betas(self, bound: Bound, arguments: list[Argument], call: list[str],
                    doc: str) -> str:
        """The form with betas=(0.9, 0.999), which is PyTorch's."""
        first = next(each for each in arguments if each.name == "beta1")
        second = next(each for each in arguments if each.name == "beta2")
        pair = Argument("std::string_view", "betas", None, set())
        pair.declared, pair.python = "const std::pair<double, double>&", "tuple[float, float]"
        pair.default = f"nb::make_tuple({first.default}, {second.default})"
        pair.python_default = f"({first.python_default}, {second.python_default})"
        at = arguments.index(first)
        others = [*arguments[:at], pair, *arguments[at + 2:]]
        values = [re.sub(r"\bbeta1\b", "betas.first", re.sub(r"\bbeta2\b", "betas.second", each))
                  for each in call]
        return self._constructor(bound, others, values, doc)

    def _constructor_doc(self, bound: Bound, function: Function) -> str:
        lines = [function.doc] if function.doc else []
        for parameter in function.parameters:
            options = self.options.get(bound.type_of(parameter.type))
            for member in options.fields if options else []:
                if member.doc:
                    lines.append(f"{member.name}: {member.doc}")
        return "\n".join(lines)

    def _method(self, bound: Bound, function: Function, name: str) -> str:
        arguments, call = self._arguments(function, bound)
        key = function.result if function.result in RESULTS else \
            f"{bound.made.name}::{function.result}"
        python_result = RESULTS[key]  # an unknown result is an error here
        declared = ["Self& self"] + [f"{each.declared} {each.variable}" for each in arguments]
        signature = ["self"] + [each.signature(each.name) for each in arguments]
        target = "self" if name == "__call__" else f"self.{function.name}"
        expression = f"{target}({', '.join(call)})"
        if "::" in key:
            expression = f"as_tuple({expression})"
        released = " const Released released;" if name in METHODS_THAT_COMPUTE else ""
        statement = expression if function.result == "void" else f"return {expression}"
        parts = [quoted(name),
                 f"[]({', '.join(declared)}) {{ const Place place;{released} {statement}; }}",
                 *[each.keyword(each.name) for each in arguments],
                 f"nb::sig({quoted(f'def {name}(' + ', '.join(signature) + f') -> {python_result}')})"]
        doc = function.doc or (bound.doc if name == "__call__" else "")
        if doc:
            parts.append(f"R\"doc({doc})doc\"")
        return f"  made.def({', '.join(parts)});"

    # ---- Attributes ----

    def _parts(self, bound: Bound) -> tuple[list[str], list[str], list[str]]:
        """What nn.py needs to pickle a layer: the arguments of its constructor without a default,
        its attributes that are numbers, and those that are tensors or layers."""
        constructor = next(each for each in bound.made.functions if each.name == "__init__")
        arguments, _ = self._arguments(constructor, bound)
        values, parts = [], []
        for member in bound.made.fields:
            type_name = bound.type_of(member.type)
            if type_name in COMPUTED_NAMES:
                type_name = "RecurrentOptions"
            if type_name in self.options:
                values += [each.name for each in self.options[type_name].fields]
            elif type_name in ATTRIBUTES:
                values.append(member.name)
            else:
                parts.append(member.name)
        return [each.name for each in arguments if each.default is None], values, parts

    def _attribute(self, bound: Bound, member: headers.Field) -> list[str]:
        type_name = bound.type_of(member.type)
        if type_name == "Tensor":
            return [self._tensor(bound, member)]
        if type_name in NESTED:
            return [f"  def_layer<&Self::{member.name}>(made, {quoted(member.name)});"]
        if type_name in COMPUTED_NAMES:
            weights = next(made for file in self.binder.files.values() for made in file.classes
                           if made.name == type_name)
            options = next(each for each in weights.fields if each.name == "options")
            return [*self._options(options.type, f"{member.name}.options", writable=False),
                    "  def_named_tensors(made);"]
        if type_name in self.options:
            return self._options(type_name, member.name)
        return [self._value(type_name, member.name, member.name, member.doc)]

    def _options(self, options: str, path: str, writable: bool = True) -> list[str]:
        return [self._value(each.type, each.name, f"{path}.{each.name}", each.doc, writable)
                for each in self.options[options].fields]

    @staticmethod
    def _value(type_name: str, name: str, path: str, doc: str, writable: bool = True) -> str:
        if type_name not in ATTRIBUTES:
            raise SyntaxError(f"no attribute is known for {type_name} {name}")
        read, assigned = ATTRIBUTES[type_name]
        parts = [quoted(name), f"[](const Self& self) {{ return as_python(self.{path}); }}"]
        if writable:
            declared, value, _ = TYPES[type_name]
            parts.append(f"[](Self& self, {declared} value) {{ self.{path} = "
                         f"{value.format('value')}; }}")
            if type_name.startswith("std::optional"):
                parts.append("nb::arg(\"value\").none()")
            signature = f"def {name}(self, value: {assigned}, /) -> None"
            parts.append(f"nb::for_setter(nb::sig({quoted(signature)}))")
        parts.append(f"nb::for_getter(nb::sig({quoted(f'def {name}(self, /) -> {read}')}))")
        if doc:
            parts.append(f"R\"doc({doc})doc\"")
        return f"  made.def_prop_{'rw' if writable else 'ro'}({', '.join(parts)});"

    @staticmethod
    def _tensor(bound: Bound, member: headers.Field) -> str:
        parameters = [parameter.name for function in bound.made.functions
                      for parameter in function.parameters]
        is_affine = "affine" in parameters or "BatchNormOptions" in {
            parameter.type for function in bound.made.functions
            for parameter in function.parameters}
        is_optional = member.name.startswith("bias") or is_affine and member.name == "weight"
        read = "Tensor | None" if is_optional else "Tensor"
        return (f"  def_tensor<&Self::{member.name}>(made, {quoted(member.name)}, "
                f"{quoted(f'def {member.name}(self, /) -> {read}')}, "
                f"{quoted(f'def {member.name}(self, value: TensorLike | None, /) -> None')});")

    # ---- Functions that return schedules ----

    def rates(self) -> list[str]:
        made = []
        for function in self.binder.files[RATE_FUNCTIONS_HEADER].functions:
            arguments, call = self._arguments(function)
            declared = [f"{each.declared} {each.variable}" for each in arguments]
            signature = ", ".join(each.signature(each.name) for each in arguments)
            parts = [quoted(function.name),
                     f"[]({', '.join(declared)}) {{ return optim::{function.name}"
                     f"({', '.join(call)}); }}",
                     *[each.keyword(each.name) for each in arguments],
                     f"nb::sig({quoted(f'def {function.name}({signature}) -> Schedule')})",
                     f"R\"doc({doc_of(function)})doc\""]
            made.append(f"  module.def({', '.join(parts)});")
        return made


def python_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def header(namespace: str, functions: list[str], function: str, calls: list[str]) -> str:
    """A file for one source of python/src to include."""
    return "\n".join([
        "// Written by python/generate/classes.py from the public headers.", "#pragma once", "",
        "#include \"modules/modules.h\"", "",
        "namespace plugrad::python {", "", "namespace {", "",
        f"using namespace plugrad::{namespace};  // for the structs of options", "",
        "\n\n".join(functions), "",
        f"void {function}(nb::module_& module) {{", *calls, "}", "",
        "}  // namespace", "", "}  // namespace plugrad::python", ""])


def files(binder: Binder) -> dict[str, str]:
    classes = ClassBinder(binder)
    layers = classes.classes(LAYER_HEADERS, "nn")
    optimisers = classes.classes(OPTIMISER_HEADERS, "optim")
    return {
        "layer_classes.h": header(
            "nn", [classes.function(each) for each in layers], "bind_layer_classes",
            [f"  bind_{python_name(each.name)}(module);" for each in layers]),
        "optimiser_classes.h": header(
            "optim", [classes.function(each) for each in optimisers], "bind_optimiser_classes",
            [f"  bind_{python_name(each.name)}(module);" for each in optimisers] + classes.rates()),
    }
