// Models from ONNX files.
#include "plugrad/onnx.h"

#include <nanobind/stl/filesystem.h>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
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

/// Tensors of a call by position and by name, in the model's order. Errors: TypeError for names
/// that the model does not have or that are given twice.
std::vector<Tensor> inputs_of(const onnx::Model& model, const nb::args& by_position,
                              const nb::kwargs& by_name) {
  const auto tensor_of = [](nb::handle object) {
    TensorLike tensor;
    if (!tensor.assign(object)) throw nb::type_error("an input of a model is a tensor or an array");
    return tensor.get();
  };
  std::vector<Tensor> inputs;
  for (const nb::handle object : by_position) inputs.push_back(tensor_of(object));
  size_t named = 0;
  for (size_t i = inputs.size(); i < model.inputs().size(); ++i) {
    const nb::str name(model.inputs()[i].name.c_str());
    if (!by_name.contains(name)) break;
    inputs.push_back(tensor_of(by_name[name]));
    ++named;
  }
  if (named == by_name.size()) return inputs;
  std::string wanted;
  for (const onnx::ValueInfo& input : model.inputs()) wanted += "\n  " + to_string(input);
  throw nb::type_error(
      ("the inputs by name do not complete those by position; the model expects:" + wanted)
          .c_str());
}

}  // namespace

void bind_onnx(nb::module_& module) {
  nb::module_ made = module.def_submodule("_onnx", "Models from ONNX files.");
  nb::class_<onnx::ValueInfo>(made, "ValueInfo", doc("ValueInfo"))
      .def_ro("name", &onnx::ValueInfo::name)
      .def_ro("type", &onnx::ValueInfo::type)
      .def_prop_ro("shape", shape_of,
                   nb::sig("def shape(self, /) -> tuple[int | str | None, ...] | None"),
                   "Sizes; names of symbolic ones; None for one that is not known.")
      .def("__repr__", [](const onnx::ValueInfo& self) { return to_string(self); });
  nb::class_<onnx::Model> model(made, "Model", doc("Model"));
  model.def_prop_ro("inputs", &onnx::Model::inputs,
                    nb::sig("def inputs(self, /) -> list[ValueInfo]"),
                    "The inputs that a call must give.");
  model.def_prop_ro("outputs", &onnx::Model::outputs,
                    nb::sig("def outputs(self, /) -> list[ValueInfo]"), "What a call returns.");
  model.def(
      "__call__",
      [](const onnx::Model& self, const nb::args& by_position, const nb::kwargs& by_name) {
        const Place place;
        const std::vector<Tensor> inputs = inputs_of(self, by_position, by_name);
        std::vector<Tensor> outputs;
        {
          const Released released;
          outputs = self(inputs);
        }
        nb::list list;
        for (const Tensor& output : outputs) list.append(nb::cast(output));
        return nb::tuple(list);
      },
      nb::sig("def __call__(self, *args: TensorLike, **kwargs: TensorLike) -> tuple[Tensor, ...]"),
      "Runs the model on tensors or arrays, by position or by name, and returns its outputs in "
      "order.\nErrors: ValueError if number, dtypes or shapes differ from `inputs`.");
  made.def(
      "load",
      [](const std::filesystem::path& path, const DeviceLike& device) {
        const Released released;
        return onnx::Model::load(path.string(), device.name);
      },
      "path"_a, "device"_a = nb::none(),
      nb::sig("def load(path: str | os.PathLike[str], device: str | None = None) -> Model"),
      doc("Model::load"));
}

}  // namespace plugrad::python
