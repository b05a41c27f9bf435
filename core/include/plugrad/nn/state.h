/// What every module has: its fields by name, parameters, and files of them.
///
/// A module is any struct that names its fields once:
///   struct Net {
///     nn::Conv2d conv{1, 32, 5};
///     nn::Linear out{576, 10};
///     PLUGRAD_FIELDS(conv, out)
///     Tensor operator()(const Tensor& x) { … }
///   };
/// Fields are tensors, modules, or vectors and optionals of modules; the state dictionary calls
/// them "conv.weight", "blocks.0.bias". A copy of a module has tensors of its own, with equal
/// values; moving keeps them. PLUGRAD_FIELDS stands after the fields.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Tensors by name, in the order in which the fields are named.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

class StateVisitor;
/// A module with the members that PLUGRAD_FIELDS writes.
template <class Module>
concept HasFields =
    requires(const Module& module, StateVisitor& visitor) { module.visit_fields(visitor); };

/// A module, or a vector or optional of modules: copies of it have tensors of their own.
template <class T>
inline constexpr bool holds_modules = HasFields<T>;
template <class T>
inline constexpr bool holds_modules<std::vector<T>> = holds_modules<T>;
template <class T>
inline constexpr bool holds_modules<std::optional<T>> = holds_modules<T>;

/// Receives a module's fields; PLUGRAD_FIELDS writes the calls.
class PLUGRAD_API StateVisitor {
 public:
  explicit StateVisitor(StateDict& out) : out_(&out) {}
  /// Lists where the handles lie, undefined ones too. Errors: User for a field of the outermost
  /// module that lies in [begin, end).
  StateVisitor(std::vector<const Tensor*>& handles, const void* begin, const void* end)
      : handles_(&handles), begin_(begin), end_(end) {}

  template <class... Fields>
  void visit([[maybe_unused]] std::string_view comma_separated_names, const Fields&... fields) {
    (require_before(comma_separated_names, &fields), ...);
    (field(next_name(comma_separated_names), fields), ...);
  }

  // One field, for modules that make up their names.
  void field(std::string_view name, const Tensor& tensor);
  template <class Module>
  void field(std::string_view name, const Module& module) {
    enter(name);
    visit_module(module);
    leave(name);
  }
  template <class Module>
  void field(std::string_view name, const std::vector<Module>& modules) {
    enter(name);
    visit_module(modules);
    leave(name);
  }
  template <class Module>
  void field(std::string_view name, const std::optional<Module>& module) {
    if (module) field(name, *module);
  }
  template <class Module>
  void visit_module(const Module& module) {
    static_assert(HasFields<Module>,
                  "this struct does not name its fields: write PLUGRAD_FIELDS(weight, layers, …) "
                  "in it; a field is a Tensor, a struct with PLUGRAD_FIELDS, or a vector or "
                  "optional of such structs");
    if constexpr (HasFields<Module>) module.visit_fields(*this);
  }
  /// A list of modules is one whose fields are called 0, 1, …
  template <class Module>
  void visit_module(const std::vector<Module>& modules) {
    for (size_t i = 0; i < modules.size(); ++i) field(std::to_string(i), modules[i]);
  }

 private:
  static std::string_view next_name(std::string_view& names);
  void enter(std::string_view name);
  void leave(std::string_view name);
  void require_before(std::string_view names, const void* field) const;

  StateDict* out_ = nullptr;
  std::vector<const Tensor*>* handles_ = nullptr;
  const void *begin_ = nullptr, *end_ = nullptr;
  std::string prefix_;
};

/// The member of a module that makes its copies independent: it is copied after the fields, whose
/// handles then denote the original's tensors, and gives each a tensor of its own. Fields that
/// denote one tensor (tied weights) do so in the copy. PLUGRAD_FIELDS adds it.
class PLUGRAD_API FieldCopies {
 public:
  template <class Module>
  explicit FieldCopies(const Module* module)
      : offset_(reinterpret_cast<const char*>(this) - reinterpret_cast<const char*>(module)),
        list_(&list_fields<Module>) {}
  FieldCopies(const FieldCopies& other) : offset_(other.offset_), list_(other.list_) {
    separate_from(other);
  }
  FieldCopies(FieldCopies&&) noexcept = default;
  FieldCopies& operator=(const FieldCopies& other);
  FieldCopies& operator=(FieldCopies&&) noexcept = default;

 private:
  using Handles = std::vector<const Tensor*>;
  template <class Module>
  static void list_fields(const FieldCopies& own, Handles& handles) {
    const char* const begin = reinterpret_cast<const char*>(&own) - own.offset_;
    StateVisitor visitor(handles, &own, begin + sizeof(Module));
    reinterpret_cast<const Module*>(begin)->visit_fields(visitor);
  }
  void separate_from(const FieldCopies& original);

  std::ptrdiff_t offset_;  // in the module
  void (*list_)(const FieldCopies& own, Handles& handles);
};

/// Names the fields of a module that hold its state, once, after them; nothing else needs to be
/// registered.
#define PLUGRAD_FIELDS(...)                                       \
  void visit_fields(::plugrad::nn::StateVisitor& visitor) const { \
    visitor.visit(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);       \
  }                                                               \
  ::plugrad::nn::FieldCopies plugrad_field_copies_{this};

/// A module with tensors of its own, whose values are those that `module` has now; trained ones are
/// marked as there.
template <class Module>
Module clone(const Module& module) {
  static_assert(holds_modules<Module>,
                "a copy of this would share its tensors: write PLUGRAD_FIELDS(weight, layers, …) "
                "in the struct; a single Tensor has clone() of its own");
  return module;
}

/// Every tensor of the module, trained or not, by name. The handles denote the module's own
/// tensors.
template <class Module>
StateDict state_dict(const Module& module) {
  StateDict state;
  StateVisitor(state).visit_module(module);
  return state;
}

/// Those of `state` that require gradients.
PLUGRAD_API std::vector<Tensor> trained(const StateDict& state);
template <class Module>
std::vector<Tensor> parameters(const Module& module) {
  return trained(state_dict(module));
}

/// The floats of `state` in another dtype, or all of it on another device, for every holder of
/// these tensors. Their gradients are dropped. Errors: User where the dtype is no float, for an
/// unknown device, and within a jitted function.
PLUGRAD_API void convert_state(const StateDict& state, DType dtype);
PLUGRAD_API void move_state(const StateDict& state, std::string_view device);
/// nn::to(net, DType::BF16), nn::to(net, "CUDA"). What an optimiser or a jitted function keeps of
/// the module stays as it was: make them afterwards.
template <class Module>
Module& to(Module& module, DType dtype) {
  convert_state(state_dict(module), dtype);
  return module;
}
template <class Module>
Module& to(Module& module, std::string_view device) {
  move_state(state_dict(module), device);
  return module;
}

/// One tensor that a state and a module do not agree on.
struct StateDifference {
  enum class Kind : uint8_t {
    Missing,     ///< only the module has it
    Unexpected,  ///< only the state has it
    Shape,
    DType,  ///< floats are cast to floats; anything else differs
  };
  Kind kind;
  std::string name;
  std::string in_module, in_state;  ///< "(3, 4) f32", or empty
};
/// The differences as a table, a line each.
PLUGRAD_API std::string describe(const std::vector<StateDifference>& differences);

/// Whether a state must fit a module exactly.
enum class Loading : uint8_t { Strict, NotStrict };

/// Gives the tensors of `target` the values that `source` has under their names, cast where both
/// are floats. Returns what was skipped, which is nothing when Strict. Errors: User when Strict and
/// anything differs, with the table of differences; then nothing changed.
PLUGRAD_API std::vector<StateDifference> load_state(const StateDict& target,
                                                    const StateDict& source,
                                                    Loading loading = Loading::Strict);
template <class Module>
std::vector<StateDifference> load_state_dict(const Module& module, const StateDict& source,
                                             Loading loading = Loading::Strict) {
  return load_state(state_dict(module), source, loading);
}

/// Writes a safetensors file, which the `safetensors` package reads too; the file appears whole or
/// not at all. Errors: User, naming the file and the reason.
PLUGRAD_API void save_state(const StateDict& state, const std::string& path);
/// The tensors of a safetensors file; it stays mapped until their values are on the device.
/// Errors: User, naming the file, the tensor and what is wrong with it; nothing is loaded then.
PLUGRAD_API StateDict read_state(const std::string& path, std::string_view device = {});
template <class Module>
void save(const Module& module, const std::string& path) {
  save_state(state_dict(module), path);
}
template <class Module>
std::vector<StateDifference> load(const Module& module, const std::string& path,
                                  Loading loading = Loading::Strict) {
  return load_state(state_dict(module), read_state(path), loading);
}

}  // namespace plugrad::nn
