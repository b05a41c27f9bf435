// Models from ONNX files.
#include "plugrad/onnx.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "exchange/arrays.h"
#include "place.h"

namespace plugrad::python {

namespace {

nb::object shape_of(const onnx::ValueInfo& value) {
  if (!value.shape) return nb::none();
  nb::list sizes;
  for (const onnx::Dimension& dim : *value.shape)
    if (dim.size)
      sizes.append(nb::int_(*dim.size));
    else if (dim.name.empty())
      sizes.append(nb::none());
    else
      sizes.append(nb::str(dim.name.c_str()));
  return nb::tuple(sizes);
}

/// An ONNX type that a wider dtype holds, and its names.
struct Emulated {
  const char* onnx;       // in Data::type
  const char* ml_dtypes;  // of arrays
  const char* held;       // the dtype of Data's tensor
};
constexpr Emulated kEmulated[] = {
    {"int4", "int4", "int8"},
    {"uint4", "uint4", "uint8"},
    {"int2", "int2", "int8"},
    {"uint2", "uint2", "uint8"},
    {"float8e4m3fn", "float8_e4m3fn", "float32"},
    {"float8e4m3fnuz", "float8_e4m3fnuz", "float32"},
    {"float8e5m2", "float8_e5m2", "float32"},
    {"float8e5m2fnuz", "float8_e5m2fnuz", "float32"},
    {"float4e2m1", "float4_e2m1fn", "float32"},
    {"float8e8m0", "float8_e8m0fnu", "float32"},
};

std::string string_of(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return nb::cast<std::string>(object);
  if (PyBytes_Check(object.ptr())) {
    const nb::bytes bytes = nb::borrow<nb::bytes>(object);
    return {bytes.c_str(), bytes.size()};
  }
  throw nb::type_error("an array of objects is an input of a model if all of them are strings");
}

onnx::Strings strings_of(nb::handle array) {
  onnx::Strings strings{nb::cast<Shape>(nb::object(array.attr("shape"))), {}};
  for (const nb::handle element : array.attr("ravel")().attr("tolist")())
    strings.elements.push_back(string_of(element));
  return strings;
}

/// Null for NumPy's own dtypes, whose names NumPy makes anew each time.
const Emulated* emulated_type_of(nb::handle dtype) {
  if (nb::cast<int>(nb::object(dtype.attr("isbuiltin"))) == 1) return nullptr;
  const auto name = nb::cast<std::string>(nb::object(dtype.attr("name")));
  const auto at = std::ranges::find(kEmulated, name, &Emulated::ml_dtypes);
  return at == std::end(kEmulated) ? nullptr : &*at;
}

/// A list is a sequence, None an empty optional; arrays of strings and of ml_dtypes' types are those
/// of ONNX. Errors: TypeError for other objects that are no tensors.
onnx::Data data_of(nb::handle object) {
  if (object.is_none()) return {};
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()))
    return onnx::Strings{{}, {string_of(object)}};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    onnx::Sequence sequence;
    for (const nb::handle element : object) sequence.elements.push_back(data_of(element));
    return sequence;
  }
  const nb::object numpy = nb::module_::import_("numpy");
  if (nb::isinstance(object, numpy.attr("ndarray")) ||
      nb::isinstance(object, numpy.attr("generic"))) {
    const nb::object dtype = object.attr("dtype");
    const auto kind = nb::cast<std::string>(nb::object(dtype.attr("kind")));
    if (kind.find_first_of("USOT") != std::string::npos) return strings_of(object);
    if (const Emulated* type = emulated_type_of(dtype)) {
      onnx::Data data = *tensor_of_array(object.attr("astype")(type->held));
      data.type = type->onnx;
      return data;
    }
  }
  TensorLike tensor;
  if (!tensor.assign(object))
    throw nb::type_error(
        "an input of a model is a tensor, an array, a list of them for a sequence, or None");
  return tensor.get();
}

nb::object value_object(const onnx::Data& data) {
  if (const auto* tensor = std::get_if<Tensor>(&data.value)) {
    for (const Emulated& type : kEmulated)
      if (data.type == type.onnx)
        return array_of_tensor(*tensor).attr("astype")(
            nb::module_::import_("ml_dtypes").attr(type.ml_dtypes));
    return nb::cast(*tensor);
  }
  nb::list elements;
  if (const auto* sequence = std::get_if<onnx::Sequence>(&data.value)) {
    for (const onnx::Data& element : sequence->elements) elements.append(value_object(element));
    return elements;
  }
  if (const auto* map = std::get_if<onnx::Map>(&data.value))
    return std::visit([](const auto& entries) { return nb::cast(entries); }, map->entries);
  const auto* strings = std::get_if<onnx::Strings>(&data.value);
  if (!strings) return nb::none();
  for (const std::string& text : strings->elements)
    elements.append(nb::str(text.c_str(), text.size()));
  const nb::object numpy = nb::module_::import_("numpy");
  nb::list shape;
  for (const int64_t size : strings->shape) shape.append(size);
  return numpy.attr("array")(elements, "dtype"_a = "object").attr("reshape")(nb::tuple(shape));
}

[[noreturn]] void refuse_inputs(const onnx::Model& model, const std::string& what) {
  std::string wanted;
  for (const onnx::ValueInfo& input : model.inputs()) wanted += "\n  " + to_string(input);
  for (const onnx::ValueInfo& input : model.optional_inputs())
    wanted += "\n  " + to_string(input) + ", optional";
  throw nb::type_error((what + "; the model expects:" + wanted).c_str());
}

/// What a call gives by position and by name, or in one dict by name, in the model's order. Errors:
/// TypeError for names that the model does not have, that are given twice or missing.
std::vector<onnx::Data> inputs_of(const onnx::Model& model, const nb::args& by_position,
                                  const nb::kwargs& by_name) {
  std::vector<const std::string*> declared;  // names
  for (const onnx::ValueInfo& input : model.inputs()) declared.push_back(&input.name);
  const size_t needed = declared.size();
  for (const onnx::ValueInfo& input : model.optional_inputs()) declared.push_back(&input.name);
  std::vector<onnx::Data> inputs;
  nb::dict named = by_name;
  if (by_position.size() == 1 && nb::isinstance<nb::dict>(by_position[0]) && by_name.size() == 0)
    named = nb::cast<nb::dict>(by_position[0]);
  else
    for (const nb::handle object : by_position) inputs.push_back(data_of(object));
  for (const auto& [name, value] : named) {
    const std::string text = nb::cast<std::string>(nb::str(name));
    const auto at = std::ranges::find(
        declared, text, [](const std::string* known) -> const std::string& { return *known; });
    if (at == declared.end()) refuse_inputs(model, "the model has no input \"" + text + "\"");
    if (at - declared.begin() < static_cast<ptrdiff_t>(inputs.size()))
      refuse_inputs(model, "input \"" + text + "\" is given by position and by name");
  }
  if (named.size() == 0) return inputs;
  for (size_t i = inputs.size(); i < declared.size(); ++i) {
    const nb::str name(declared[i]->c_str());
    if (i >= needed && !named.contains(name)) {
      inputs.emplace_back();
      continue;
    }
    if (!named.contains(name)) refuse_inputs(model, "input \"" + *declared[i] + "\" is not given");
    inputs.push_back(data_of(named[name]));
  }
  return inputs;
}

// Bytes that are no UTF-8 become U+FFFD.
nb::object python_text(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

std::string text_of_model(const onnx::Model& self) {
  const auto list = [](const std::vector<onnx::ValueInfo>& values) {
    std::string text;
    for (const onnx::ValueInfo& value : values)
      text += (text.empty() ? "" : ", ") + to_string(value);
    return "[" + text + "]";
  };
  std::string text = "plugrad.onnx.Model(inputs=" + list(self.inputs());
  if (!self.optional_inputs().empty()) text += ", optional_inputs=" + list(self.optional_inputs());
  return text + ", outputs=" + list(self.outputs()) + ")";
}

void bind_save(nb::module_& made) {
  made.def(
      "_save",
      [](const nb::callable& function, const std::vector<Tensor>& inputs,
         const std::filesystem::path& path, const std::vector<std::string>& input_names,
         const std::vector<std::string>& output_names,
         const std::vector<std::pair<std::string, Tensor>>& parameters, bool external_data) {
        onnx::SaveOptions options;
        options.input_names = input_names;
        options.output_names = output_names;
        options.parameters = parameters;
        options.external_data = external_data;
        const auto call = [&](const std::vector<Tensor>& given) {
          nb::list arguments;
          for (const Tensor& tensor : given) arguments.append(nb::cast(tensor));
          const nb::object results = function(*nb::tuple(arguments));
          if (nb::isinstance<Tensor>(results)) return std::vector{nb::cast<Tensor>(results)};
          return nb::cast<std::vector<Tensor>>(results);
        };
        onnx::save(call, inputs, path.string(), options);
      },
      "function"_a, "inputs"_a, "path"_a, "input_names"_a, "output_names"_a, "parameters"_a,
      "external_data"_a,
      nb::sig("def _save(function: Callable[..., Any], inputs: Sequence[plugrad._plugrad.Tensor], "
              "path: str | os.PathLike[str], input_names: Sequence[str], "
              "output_names: Sequence[str], "
              "parameters: Sequence[tuple[str, plugrad._plugrad.Tensor]], external_data: bool) -> "
              "None"));
}

void bind_load(nb::module_& made) {
  made.def(
      "load",
      [](const nb::object& path, const DeviceLike& device, const onnx::SizeBounds& bounds) {
        if (nb::isinstance<nb::bytes>(path)) {
          const auto bytes = nb::cast<nb::bytes>(path);
          const auto* data = static_cast<const std::byte*>(bytes.data());
          const Released released;
          return onnx::Model::from_bytes({data, bytes.size()}, device.name, bounds);
        }
        const auto file = nb::cast<std::filesystem::path>(path);
        const Released released;
        return onnx::Model::load(file.string(), device.name, bounds);
      },
      "path"_a, "device"_a = nb::none(), nb::kw_only(), "bounds"_a = onnx::SizeBounds(),
      nb::sig("def load(path: str | os.PathLike[str] | bytes, device: str | None = None, *, "
              "bounds: dict[str, tuple[int, int]] = {}) -> Model"),
      doc("Model::load"));
}

}  // namespace

void bind_onnx(nb::module_& module) {
  nb::module_ made = module.def_submodule("_onnx", "Models from ONNX files.");
  nb::class_<onnx::ValueInfo>(made, "ValueInfo", doc("ValueInfo"))
      .def_ro("name", &onnx::ValueInfo::name)
      .def_ro("type", &onnx::ValueInfo::type)
      .def_prop_ro(
          "dtype", [](const onnx::ValueInfo& self) { return self.dtype; },
          nb::sig("def dtype(self, /) -> plugrad._plugrad.dtype | None"),
          "That of tensors of numbers; None for other values.")
      .def_prop_ro("shape", shape_of,
                   nb::sig("def shape(self, /) -> tuple[int | str | None, ...] | None"),
                   "Sizes; names of symbolic ones; None for one that is not known.")
      .def("__repr__", [](const onnx::ValueInfo& self) { return to_string(self); });
  nb::class_<onnx::Model> model(made, "Model", doc("Model"));
  model.def("__repr__", text_of_model);
  model.def_prop_ro("inputs", &onnx::Model::inputs,
                    nb::sig("def inputs(self, /) -> list[ValueInfo]"),
                    "The inputs that a call must give.");
  model.def_prop_ro("optional_inputs", &onnx::Model::optional_inputs,
                    nb::sig("def optional_inputs(self, /) -> list[ValueInfo]"),
                    "Inputs with a value in the file, which a call may replace by name.");
  model.def_prop_ro("outputs", &onnx::Model::outputs,
                    nb::sig("def outputs(self, /) -> list[ValueInfo]"), "What a call returns.");
  model.def_prop_ro(
      "metadata",
      [](const onnx::Model& self) {
        nb::dict entries;
        for (const auto& [key, value] : self.metadata())
          entries[python_text(key)] = python_text(value);
        return entries;
      },
      nb::sig("def metadata(self, /) -> dict[str, str]"),
      "Texts that the exporter added by key, such as the names of classes.");
  model.def(
      "explain",
      [](const onnx::Model& self) {
        const Released released;
        return self.explain();
      },
      doc("Model::explain"));
  model.def(
      "__call__",
      [](const onnx::Model& self, const nb::args& by_position, const nb::kwargs& by_name) {
        const Place place;
        const std::vector<onnx::Data> inputs = inputs_of(self, by_position, by_name);
        std::vector<onnx::Data> outputs;
        {
          const Released released;
          outputs = self.run(inputs);
        }
        nb::list list;
        for (const onnx::Data& output : outputs) list.append(value_object(output));
        return nb::tuple(list);
      },
      nb::sig("def __call__(self, *args: TensorLike | str | list[Any] | dict[str, Any] | None, "
              "**kwargs: TensorLike | str | list[Any] | None) -> tuple[Any, ...]"),
      "Runs the model on tensors or arrays, by position, by name or in one dict, and returns its "
      "outputs in "
      "order.\nSequences are lists, maps are dicts, an empty optional is None, strings are NumPy "
      "arrays "
      "of str or object, and elements\nof types such as int4 are arrays of ml_dtypes; results come "
      "back the "
      "same way.\nErrors: ValueError if number, kinds, dtypes or shapes differ from `inputs`.");
  bind_load(made);
  bind_save(made);
}

}  // namespace plugrad::python
