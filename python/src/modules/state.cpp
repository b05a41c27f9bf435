// State of modules: named tensors as dictionaries, their files, and copies of modules.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include <filesystem>

#include "bind.h"
#include "enum_argument.h"
#include "modules/modules.h"
#include "place.h"

namespace plugrad::python {

namespace {

/// The tensors that require gradients, each listed once.
std::vector<Tensor> trained_once(const nb::dict& dict) {
  std::vector<Tensor> once;
  nb::set seen;
  for (Tensor& tensor : nn::trained(state_of_dict(dict))) {
    const nb::object key = nb::int_(reinterpret_cast<uintptr_t>(nn::identity_of(tensor)));
    if (seen.contains(key)) continue;
    seen.add(key);
    once.push_back(std::move(tensor));
  }
  return once;
}

void bind_differences(nb::module_& module) {
  using nn::StateDifference;
  nb::class_<StateDifference> made(module, "StateDifference", doc("nn::StateDifference"));
  made.def_prop_ro(
      "kind", &StateDifference::kind_name,
      "\"missing\": only in the module; \"unexpected\": only in the state; \"shape\"; \"dtype\".");
  made.def_ro("name", &StateDifference::name, "The tensor's name.");
  made.def_ro("in_module", &StateDifference::in_module, "\"(3, 4) f32\", or empty.");
  made.def_ro("in_state", &StateDifference::in_state, "\"(3, 4) f32\", or empty.");
  made.def("__repr__", [](const StateDifference& self) {
    return "StateDifference(" + std::string(self.kind_name()) + " " + self.name + ", module '" +
           self.in_module + "', state '" + self.in_state + "')";
  });
}

void bind_changes(nb::module_& module) {
  module.def(
      "_load_state",
      [](const nb::dict& target, const nb::dict& source, bool strict) {
        const Place place;
        const nn::StateDict to = state_of_dict(target), from = state_of_dict(source);
        const Released released;
        return nn::load_state(to, from, strict ? nn::Loading::Strict : nn::Loading::NotStrict);
      },
      "target"_a, "source"_a, "strict"_a,
      nb::sig("def _load_state(target: dict[str, Tensor], source: dict[str, Any], strict: bool) -> "
              "list[StateDifference]"),
      doc("nn::load_state"));
  module.def(
      "_convert_state",
      [](const nb::dict& state, const DTypeOrDevice& target) {
        const Place place;
        const nn::StateDict tensors = state_of_dict(state);
        const Released released;
        if (target.dtype) nn::convert_state(tensors, *target.dtype);
        if (!target.device.empty()) nn::move_state(tensors, target.device);
      },
      "state"_a, "target"_a,
      nb::sig("def _convert_state(state: dict[str, Tensor], target: DTypeLike) -> None"),
      doc("nn::convert_state"));
  module.def(
      "_update_average",
      [](const nb::dict& average, const nb::dict& source, double decay) {
        const Place place;
        const nn::StateDict to = state_of_dict(average), from = state_of_dict(source);
        const Released released;
        nn::update_average(to, from, decay);
      },
      "average"_a, "source"_a, "decay"_a,
      nb::sig("def _update_average(average: dict[str, Tensor], source: dict[str, Tensor], decay: "
              "float) -> None"),
      doc("nn::update_average"));
  module.def("_trained", trained_once, "state"_a,
             nb::sig("def _trained(state: dict[str, Tensor]) -> list[Tensor]"), doc("nn::trained"));
}

using Path = std::filesystem::path;

void bind_safetensors(nb::module_& module) {
  module.def(
      "safe_save",
      [](const nb::dict& state, const Path& path) {
        const nn::StateDict tensors = state_of_dict(state);
        const Released released;
        nn::save_state(tensors, path.string());
      },
      "state"_a, "path"_a,
      nb::sig("def safe_save(state: dict[str, Tensor], path: str | os.PathLike[str]) -> None"),
      doc("nn::save_state"));
  module.def(
      "safe_load",
      [](const Path& path, const DeviceLike& device) {
        nn::StateDict state;
        {
          const Released released;
          state = nn::read_state(path.string(), device.name);
        }
        return dict_of_state(state);
      },
      "path"_a, "device"_a = nb::none(),
      nb::sig("def safe_load(path: str | os.PathLike[str], device: str | None = None) -> "
              "dict[str, Tensor]"),
      doc("nn::read_state"));
}

void bind_checkpoints(nb::module_& module) {
  module.def(
      "_save_sharded",
      [](const nb::dict& state, const Path& folder) {
        const Place place;
        const nn::StateDict tensors = state_of_dict(state);
        const Released released;
        nn::save_sharded(tensors, folder.string());
      },
      "state"_a, "folder"_a,
      nb::sig(
          "def _save_sharded(state: dict[str, Tensor], folder: str | os.PathLike[str]) -> None"),
      doc("nn::save_sharded"));
  module.def(
      "_load_sharded",
      [](const nb::dict& state, const Path& folder, bool strict) {
        const Place place;
        const nn::StateDict tensors = state_of_dict(state);
        const Released released;
        return nn::load_sharded(tensors, folder.string(),
                                strict ? nn::Loading::Strict : nn::Loading::NotStrict);
      },
      "state"_a, "folder"_a, "strict"_a,
      nb::sig("def _load_sharded(state: dict[str, Tensor], folder: str | os.PathLike[str], strict: "
              "bool) -> list[StateDifference]"),
      doc("nn::load_sharded"));
}

void bind_numpy_files(nb::module_& module) {
  module.def(
      "load_npy",
      [](const Path& path, const DeviceLike& device) {
        const Released released;
        return load_npy(path.string(), device.name);
      },
      "path"_a, "device"_a = nb::none(),
      nb::sig("def load_npy(path: str | os.PathLike[str], device: str | None = None) -> Tensor"),
      doc("load_npy"));
  module.def(
      "save_npy",
      [](const TensorLike& tensor, const Path& path) {
        const Tensor values = tensor.get();
        const Released released;
        save_npy(values, path.string());
      },
      "tensor"_a, "path"_a,
      nb::sig("def save_npy(tensor: TensorLike, path: str | os.PathLike[str]) -> None"),
      doc("save_npy"));
  module.def(
      "load_npz",
      [](const Path& path, const DeviceLike& device) {
        nn::StateDict state;
        {
          const Released released;
          state = load_npz(path.string(), device.name);
        }
        return dict_of_state(state);
      },
      "path"_a, "device"_a = nb::none(),
      nb::sig("def load_npz(path: str | os.PathLike[str], device: str | None = None) -> dict[str, "
              "Tensor]"),
      doc("load_npz"));
  module.def(
      "save_npz",
      [](const nb::dict& arrays, const Path& path, bool compressed) {
        const nn::StateDict tensors = state_of_dict(arrays);
        const Released released;
        save_npz(tensors, path.string(), compressed);
      },
      "arrays"_a, "path"_a, "compressed"_a = false,
      nb::sig("def save_npz(arrays: dict[str, Tensor], path: str | os.PathLike[str], compressed: "
              "bool = False) -> None"),
      doc("save_npz"));
}

/// The training mode of the thread between __enter__ and __exit__.
class TrainingMode {
 public:
  explicit TrainingMode(bool training) : training_(training) {}
  TrainingMode(const TrainingMode&) = delete;
  TrainingMode& operator=(const TrainingMode&) = delete;
  void enter() { scopes_.push_back(std::make_unique<nn::TrainingScope>(training_)); }
  void leave() {
    if (scopes_.empty()) throw nb::value_error("this training mode was not entered");
    scopes_.pop_back();
  }

 private:
  bool training_;
  std::vector<std::unique_ptr<nn::TrainingScope>> scopes_;
};

void bind_training(nb::module_& module) {
  nb::class_<TrainingMode> made(module, "training",
                                "Within `with nn.training(mode):`, layers that differ between "
                                "training and evaluation (BatchNorm, Dropout) are in this mode, in "
                                "this thread. Without it they train.");
  made.def(nb::init<bool>(), "mode"_a = true);
  made.def("__enter__", &TrainingMode::enter);
  made.def(
      "__exit__", [](TrainingMode& self, const nb::args&) { self.leave(); },
      nb::sig("def __exit__(self, *error: object) -> None"));
  module.def("is_training", &nn::is_training, doc("nn::is_training"));
}

}  // namespace

nn::StateDict state_of_dict(const nb::dict& dict) {
  nn::StateDict state;
  for (const auto& [name, value] : dict) {
    if (!PyUnicode_Check(name.ptr()))
      throw nb::type_error("a state is a dictionary whose keys are names (str)");
    TensorLike tensor;
    if (!tensor.assign(value))
      throw nb::type_error(
          ("the value of \"" + nb::cast<std::string>(name) +
           "\" is neither a tensor nor an array: " + nb::cast<std::string>(nb::str(value.type())))
              .c_str());
    state.emplace_back(nb::cast<std::string>(name), tensor.get());
  }
  return state;
}

nb::dict dict_of_state(const nn::StateDict& state) {
  nb::dict dict;
  for (const auto& [name, tensor] : state) dict[name.c_str()] = tensor;
  return dict;
}

nb::list list_of_state(const nn::StateDict& state) {
  nb::list list;
  for (const auto& [name, tensor] : state) list.append(nb::make_tuple(name, tensor));
  return list;
}

void bind_state(nb::module_& module) {
  nb::module_ made = nb::borrow<nb::module_>(module.attr("_nn"));
  bind_differences(made);
  bind_changes(made);
  bind_module_sharding(made);
  bind_safetensors(made);
  bind_checkpoints(made);
  bind_training(made);
  bind_numpy_files(module);
}

}  // namespace plugrad::python
