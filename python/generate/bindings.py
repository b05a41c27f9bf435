#!/usr/bin/env python3
"""Writes the bindings of plugrad's tensor functions from the public headers.

    bindings.py HEADERS OUTPUT
    bindings.py --list            prints the names of the files that it writes

HEADERS is the folder of plugrad/tensor.h, OUTPUT the folder for enums.h, docs.h, the headers of
classes.py, and the sources tensor_methods_*.cpp and functions_*.cpp. Every public method of Tensor and every free function of
the headers below is bound, with its defaults as keyword arguments and its comment as docstring,
unless a list here names it as bound by hand. A type that this script does not know is an error.
"""
import re
import sys
from pathlib import Path

import headers
import wording
from headers import Class, Enum, Function, Parameter

FUNCTION_HEADERS = ["functional.h", "conv.h", "linalg.h", "loss.h"]
ENUM_HEADERS = ["tensor.h", "shape.h", "window.h", "loss.h", "nn/state.h"]
DOC_HEADERS = [
    "tensor.h", "conv.h", "functional.h", "linalg.h", "loss.h", "window.h", "jit.h", "function.h",
    "user_kernel.h", "kernel.h", "uop.h", "optim.h", "learning_rate.h", "data.h", "scan.h",
    "search.h", "shutdown.h", "no_grad.h", "numpy.h", "gradient.h", "device.h", "dtype.h", "progress.h",
    "training_progress.h", "nn/attention.h", "nn/checkpoint.h", "nn/convolution.h", "nn/ema.h", "nn/layers.h", "nn/normalisation.h",
    "nn/recurrent.h", "nn/sharding.h", "nn/state.h", "nn/training.h", "sharding.h",
    "distributed.h",
    "onnx.h",
]
PREFIXES = {"distributed.h": "distributed::"}  # of the names of a namespace of its own
ENUMS = ["Rounding", "PadMode", "Combine", "Interpolation", "Reduction", "Loading"]

# Methods of Tensor that python/src/tensor.cpp binds, because Python has a form of its own.
METHODS_BY_HAND = {
    "__init__", "assign", "from", "from_bytes", "random_state", "set_random_state", "defined", "shape",
    "dtype", "device", "ndim", "size", "is_realized", "item", "to_vector", "copy_to", "to_bytes",
    "realize", "schedule", "kernelize", "uop", "requires_grad", "grad", "set_grad", "backward", "slice",
    "index", "set_index", "rearrange", "to", "shard", "unshard", "is_sharded", "shard_spec", "mesh",
    "shards",
}
FUNCTIONS_BY_HAND = {"sequential", "LayerRef"}
# Functions that compute or read a value: they release Python's lock.
COMPUTES = {"allclose", "masked_select", "multinomial", "nonzero"}
# Methods whose list may also be given as separate arguments: x.reshape(2, 3).
LAST_OF_SHAPE = {"Shape", "Sizes", "std::vector<int64_t>"}
FUNCTIONS_A_FILE = 45

ALIASES = {"axis": "dim", "axis0": "dim0", "axis1": "dim1"}
UNNAMED = {"Shape": "shape", "Sizes": "shape", "DType": "dtype", "std::optional<DType>": "dtype",
           "Rounding": "rounding"}

# C++ type: (type of the lambda's parameter, its value as an argument, Python's type)
TYPES = {
    "Tensor": ("const TensorLike&", "{}.get()", "TensorLike"),
    "bool": ("bool", "{}", "bool"),
    "double": ("double", "{}", "float"),
    "int64_t": ("int64_t", "{}", "int"),
    "uint64_t": ("uint64_t", "{}", "int"),
    "DType": ("DType", "{}", "DTypeLike"),
    "std::optional<DType>": ("std::optional<DType>", "{}", "DTypeLike | None"),
    "std::optional<int64_t>": ("std::optional<int64_t>", "{}", "int | None"),
    "std::optional<double>": ("std::optional<double>", "{}", "float | None"),
    "std::string_view": ("std::string_view", "{}", "str"),
    "Shape": ("const std::vector<int64_t>&", "{}", "ShapeLike"),
    "std::vector<int64_t>": ("const std::vector<int64_t>&", "{}", "ShapeLike"),
    "Size": ("const Size&", "{}", "SizeLike"),
    "Sizes": ("const Sizes&", "{}", "ShapeLike"),
    "std::optional<Size>": ("const std::optional<Size>&", "{}", "SizeLike | None"),
    "std::vector<std::optional<Size>>": ("const std::vector<std::optional<Size>>&", "{}",
                                         "Sequence[SizeLike | None]"),
    "std::vector<double>": ("const std::vector<double>&", "{}", "Sequence[float]"),
    "std::vector<Tensor>": ("const TensorList&", "{}.get()", "Sequence[TensorLike]"),
    "std::vector<std::optional<int64_t>>": ("const std::vector<std::optional<int64_t>>&", "{}",
                                            "Sequence[int | None]"),
    "Axes": ("const Axes&", "{}", "AxisLike"),
    "Pads": ("const Pads&", "{}", "PadsLike"),
    "PerAxis": ("const PerAxis&", "{}", "AxisLike"),
    "Pair": ("const PerAxis&", "{}", "AxisLike"),
    "Padding": ("const Padding&", "{}", "PaddingLike"),
    "Box": ("const Box&", "{}", "BoxLike"),
}
AXES = {"int64_t", "std::optional<int64_t>", "Axes"}  # types of arguments that name axes
RESULTS = {
    "Tensor": ("{}", "Tensor"),
    "Tensor&": ("{}", "Tensor"),
    "void": ("{}", "None"),
    "bool": ("{}", "bool"),
    "int64_t": ("{}", "int"),
    "double": ("{}", "float"),
    "Shape": ("{}", "tuple[int, ...]"),
    "std::vector<Tensor>": ("{}", "list[Tensor]"),
    "std::pair<Tensor, Tensor>": ("{}", "tuple[Tensor, Tensor]"),
    "ValuesAndPlaces": ("{}", "tuple[Tensor, Tensor]"),
    "QR": ("as_tuple({})", "tuple[Tensor, Tensor]"),
    "SVD": ("as_tuple({})", "tuple[Tensor, Tensor, Tensor]"),
}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Argument:
    """One keyword argument of a bound function."""

    def __init__(self, type_name: str, name: str, default: str | None, enums: set[str]):
        self.name = "axis" if (type_name, name) == ("Axes", "axes") else name
        self.variable = self.name + "_" if self.name in ("default", "how") else self.name
        if type_name in enums:
            self.declared, value = f"EnumArgument<{type_name}>", "{}.value"
            self.python = "str"
        elif type_name == "Tensor" and default == "{}":
            self.declared, value, self.python = "const OptionalTensor&", "{}.get()", "TensorLike | None"
        elif type_name == "std::string_view" and default == "{}":
            self.declared, value, self.python = "const DeviceLike&", "{}.name", "str | None"
        elif type_name in ("std::vector<int64_t>", "std::vector<double>") and default == "{}":
            inner = type_name
            self.declared, value = f"const std::optional<{inner}>&", "{}.value_or(" + inner + "())"
            self.python = TYPES[inner][2] + " | None"
        elif self.name in ALIASES and type_name in AXES:
            self.declared, value = f"const AxisArgument<{type_name}>&", "{}.value"
            self.python = TYPES[type_name][2]
        elif type_name in TYPES:
            self.declared, value, self.python = TYPES[type_name]
        else:
            raise SyntaxError(f"no conversion is known for {type_name} {name}")
        self.value = value.format(self.variable)
        self.default, self.python_default = self._default(default, enums)

    def _default(self, default: str | None, enums: set[str]) -> tuple[str | None, str | None]:
        if default is None:
            return None, None
        if default in ("{}", "nullptr"):
            return "nb::none()", "None"
        if default in ("true", "false"):
            return default, default.capitalize()
        if match := re.match(r"DType::(\w+)$", default):
            name = DTYPE_NAMES[match[1]]
            return quoted(name), repr(name)
        if match := re.match(r"(\w+)::(\w+)$", default):
            return quoted(snake(match[2])), repr(snake(match[2]))
        if match := re.match(r"\{(.*)\}$", default):
            numbers = [float(part) for part in headers.split(match[1])]
            return f"nb::make_tuple({match[1]})", repr(tuple(numbers))
        if default.startswith('"'):
            return default, repr(default.strip('"'))
        return default, repr(eval(default))  # noqa: S307: a number of our own header

    def keyword(self, name: str) -> str:
        text = f"{quoted(name)}_a"
        return text if self.default is None else f"{text} = {self.default}"

    def signature(self, name: str) -> str:
        text = f"{name}: {self.python}"
        return text if self.python_default is None else f"{text} = {self.python_default}"


DTYPE_NAMES = {"F32": "float32", "I32": "int32", "F64": "float64", "I64": "int64"}


class Binder:
    def __init__(self, folder: Path):
        self.files = {name: headers.read(folder / name)
                      for name in {*FUNCTION_HEADERS, *ENUM_HEADERS, *DOC_HEADERS}}
        wording.translate(self.files)
        self.enums = {enum.name: enum for file in self.files.values() for enum in file.enums
                      if enum.name in ENUMS}
        self.options = {made.name: made for file in self.files.values() for made in file.classes
                        if made.name.endswith("Options")}

    def arguments(self, parameters: list[Parameter]) -> tuple[list[Argument], list[str]]:
        """The keyword arguments, and the arguments of the C++ call."""
        arguments: list[Argument] = []
        call: list[str] = []
        for parameter in parameters:
            if parameter.type in self.options:
                fields = [Argument(field.type, field.name, field.default or "{}", set(self.enums))
                          for field in self.options[parameter.type].fields]
                call.append(f"{parameter.type}{{{', '.join(field.value for field in fields)}}}")
                arguments += fields
            else:
                name = parameter.name or UNNAMED[parameter.type]
                argument = Argument(parameter.type, name, parameter.default, set(self.enums))
                arguments.append(argument)
                call.append(argument.value)
        return arguments, call

    def definitions(self, function: Function, of: str) -> list[str]:
        """The .def calls of one function: with axis, with dim, and with separate sizes."""
        if not function.doc:
            raise SyntaxError(f"{function.name} has no docstring: say what it does in wording.py")
        arguments, call = self.arguments(function.parameters)
        forms = [[argument.name for argument in arguments]]
        if any(name in ALIASES for name in forms[0]):
            forms.append([ALIASES.get(name, name) for name in forms[0]])
        made = [self._definition(function, of, arguments, call, names) for names in forms]
        first = function.parameters[0] if function.parameters else None
        if first and first.type in LAST_OF_SHAPE | {"Axes"} and of and \
                all(argument.default is not None for argument in arguments[1:]) and \
                first.default is None and not function.name.startswith("split"):
            made.append(self._definition(function, of, arguments, call, forms[0], spread=True))
        return made

    def _definition(self, function: Function, of: str, arguments: list[Argument], call: list[str],
                    names: list[str], spread: bool = False) -> str:
        is_method = of and not function.is_static
        result, python_result = RESULTS[function.result]
        declared = [f"{argument.declared} {argument.variable}" for argument in arguments]
        signature = [argument.signature(name) for argument, name in zip(arguments, names)]
        keywords = [argument.keyword(name) for argument, name in zip(arguments, names)]
        if spread:
            are_sizes = "Sizes" in arguments[0].declared
            taken = "sizes_of_arguments" if are_sizes else "integers_of_arguments"
            declared[0], call = "const nb::args& sizes", [f"{taken}(sizes)"] + call[1:]
            signature[0] = f"*{arguments[0].name}: {'SizeLike' if are_sizes else 'int'}"
            keywords[0] = f"{quoted(arguments[0].name)}_a"
        if is_method:
            reference = "Tensor&" if not function.is_const else "const Tensor&"
            declared.insert(0, f"{reference} self")
            signature.insert(0, "self")
        target = "self." if is_method else f"{of}::" if of else "plugrad::"
        expression = result.format(f"{target}{function.name}({', '.join(call)})")
        returned = " -> Tensor&" if function.result == "Tensor&" else ""
        released = " const Released released;" if function.name in COMPUTES else ""
        statement = expression if function.result == "void" else f"return {expression}"
        parts = [quoted(function.name),
                 f"[]({', '.join(declared)}){returned} {{ const Place place;{released} {statement}; }}",
                 *keywords,
                 f"nb::sig({quoted(self._signature(function, signature, python_result))})",
                 f"R\"doc({doc_of(function)})doc\""]
        if function.result == "Tensor&":
            parts.append("nb::rv_policy::none")
        definer = "def_static" if function.is_static and of else "def"
        return f"  {'tensor' if of else 'module'}.{definer}({', '.join(parts)});"

    @staticmethod
    def _signature(function: Function, arguments: list[str], result: str) -> str:
        return f"def {function.name}({', '.join(arguments)}) -> {result}"

    def methods(self) -> list[str]:
        tensor = next(made for made in self.files["tensor.h"].classes if made.name == "Tensor")
        return [text for function in tensor.functions
                if not function.name.startswith("operator")
                and function.name not in METHODS_BY_HAND
                for text in self.definitions(function, "Tensor")]

    def functions(self) -> list[str]:
        seen: set[str] = set()
        made: list[str] = []
        for name in FUNCTION_HEADERS:
            for function in self.files[name].functions:
                if function.name in FUNCTIONS_BY_HAND or function.is_template or \
                        function.name.startswith("operator"):
                    continue
                for text in self.definitions(function, ""):
                    if text not in seen:
                        made.append(text)
                    seen.add(text)
        return made


def doc_of(item: Function | Class | Enum) -> str:
    section = getattr(item, "section", "")
    return f"{item.doc}\n\n{section}".strip()


def enums_h(enums: list[Enum]) -> str:
    lines = ["// Written by python/generate/bindings.py from the public headers.", "#pragma once", "",
             "#include \"arguments.h\"", "", "namespace plugrad::python {", ""]
    for enum in enums:
        name = f"nn::{enum.name}" if enum.name == "Loading" else enum.name
        rows = ", ".join(f"{{{quoted(snake(value))}, {name}::{value}}}" for value in enum.values)
        lines += ["template <>", f"struct EnumNames<{name}> {{",
                  f"  static constexpr std::pair<std::string_view, {name}> rows[] = {{{rows}}};",
                  "};"]
    lines += ["", "}  // namespace plugrad::python", ""]
    return "\n".join(lines)


def docs_h(binder: Binder) -> str:
    rows: dict[str, str] = {}
    for name in DOC_HEADERS:
        prefix = "nn::" if name.startswith("nn/") else PREFIXES.get(name, "")
        for made in binder.files[name].classes:
            rows.setdefault(prefix + made.name, doc_of(made))
            for function in made.functions:
                rows.setdefault(f"{prefix}{made.name}::{function.name}", doc_of(function))
            for field in made.fields:
                rows.setdefault(f"{prefix}{made.name}::{field.name}", doc_of(field))
        for function in binder.files[name].functions:
            rows.setdefault(prefix + function.name, doc_of(function))
    lines = ["// Written by python/generate/bindings.py from the public headers.", "#pragma once", "",
             "#include <string_view>", "", "namespace plugrad::python {", "",
             "/// The comment of a class or function in the public headers, by its name in plugrad.",
             "consteval const char* doc(std::string_view name) {"]
    lines += [f"  if (name == {quoted(key)}) return R\"doc({text})doc\";"
              for key, text in rows.items() if text]
    lines += ["  throw \"the public headers document no such name\";", "}", "",
              "}  // namespace plugrad::python", ""]
    return "\n".join(lines)


def source(function: str, parameter: str, definitions: list[str]) -> str:
    return "\n".join([
        "// Written by python/generate/bindings.py from the public headers.",
        "#include \"arguments.h\"", "#include \"enum_argument.h\"", "#include \"place.h\"",
        "#include \"results.h\"", "",
        "namespace plugrad::python {", "", f"void {function}({parameter}) {{", *definitions, "}", "",
        "}  // namespace plugrad::python", ""])


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_parts(output: Path, name: str, parameter: str, definitions: list[str], parts: int) -> None:
    size = -(-len(definitions) // parts)
    for part in range(parts):
        text = source(f"bind_{name}_{part}", parameter, definitions[part * size:(part + 1) * size])
        write(output / f"{name}_{part}.cpp", text)
    calls = "\n".join(f"void bind_{name}_{part}({parameter});" for part in range(parts))
    run = "\n".join(f"  bind_{name}_{part}({parameter.split()[-1].lstrip('&')});" for part in range(parts))
    write(output / f"{name}.cpp", "\n".join([
        "// Written by python/generate/bindings.py.", "#include \"bind.h\"", "",
        "namespace plugrad::python {", "", calls, "", f"void bind_{name}({parameter}) {{", run, "}", "",
        "}  // namespace plugrad::python", ""]))


METHOD_PARTS = 6
FUNCTION_PARTS = 3
HEADERS = ["enums.h", "docs.h", "layer_classes.h", "optimiser_classes.h"]


def sources() -> list[str]:
    parts = {"tensor_methods": METHOD_PARTS, "functions": FUNCTION_PARTS}
    return [*HEADERS, *(file for name, count in parts.items() for file in
                        [f"{name}.cpp", *(f"{name}_{part}.cpp" for part in range(count))])]


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        print(*sources(), sep=";")
        return
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    binder = Binder(folder)
    write(output / "enums.h", enums_h([binder.enums[name] for name in ENUMS]))
    write(output / "docs.h", docs_h(binder))
    write_parts(output, "tensor_methods", "nb::class_<Tensor>& tensor", binder.methods(), METHOD_PARTS)
    write_parts(output, "functions", "nb::module_& module", binder.functions(), FUNCTION_PARTS)
    from classes import files  # which imports this module
    for name, text in files(binder).items():
        write(output / name, text)


if __name__ == "__main__":
    import bindings  # the copy that classes.py imports
    bindings.main()
