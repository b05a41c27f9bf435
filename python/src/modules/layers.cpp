// Layers: plugrad.nn's classes, which the generator writes from core/include/plugrad/nn.
#include "bind.h"
#include "layer_classes.h"

namespace plugrad::python {

nb::object as_python(const Padding& value) {
  if (value.name()) return nb::str(value.name());
  if (!value.sides().empty()) {
    nb::list sides;
    for (const auto& [begin, end] : value.sides()) sides.append(nb::make_tuple(begin, end));
    return nb::tuple(sides);
  }
  return nb::cast(value.list());
}

namespace {

std::string text_of(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}

}  // namespace

std::string describe_module(nb::handle module, const nn::StateDict& state) {
  std::string text = text_of(module.type().attr("__name__")) + "(";
  for (size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    text += (i > 0 ? ", " : "") + name + " " + to_string(tensor.shape()) + " " +
            std::string(name_of(tensor.dtype()));
  }
  return text + ")";
}

void bind_layers(nb::module_& module) {
  nb::module_ made = module.def_submodule("_nn", "Layers and the state of modules.");
  bind_layer_classes(made);
}

}  // namespace plugrad::python
