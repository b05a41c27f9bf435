/// State of modules: named fields, parameters, and files of them. A module is a struct that lists
/// its fields in PLUGRAD_FIELDS, after their declarations:
///   struct Net {
///     nn::Conv2d conv{1, 32, 5};  nn::Linear out{576, 10};
///     PLUGRAD_FIELDS(conv, out)
///   };
/// Fields are tensors, modules, or vectors and optionals of modules; the state dictionary has keys
/// such as "conv.weight" and "blocks.0.bias". Copying a module copies its tensors; moving does not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Tensors by name, in the order of PLUGRAD_FIELDS.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

class StateVisitor;
/// A module with the members that PLUGRAD_FIELDS writes.
template <class Module>
concept HasFields =
    requires(const Module& module, StateVisitor& visitor) { module.visit_fields(visitor); };

/// True for a module, or a vector or optional of modules: copying it copies the tensors.
template <class T>
inline constexpr bool holds_modules = HasFields<T>;
template <class T>
inline constexpr bool holds_modules<std::vector<T>> = holds_modules<T>;
template <class T>
inline constexpr bool holds_modules<std::optional<T>> = holds_modules<T>;

/// Receives a module's fields; PLUGRAD_FIELDS generates the calls.
class PLUGRAD_API StateVisitor {
 public:
  explicit StateVisitor(StateDict& out) : out_(&out) {}
  /// Collects the addresses of the handles, undefined ones too. Errors: User for a field of the
  /// outermost module in [begin, end).
  StateVisitor(std::vector<const Tensor*>& handles, const void* begin, const void* end)
      : handles_(&handles), begin_(begin), end_(end) {}

  template <class... Fields>
  void visit([[maybe_unused]] std::string_view comma_separated_names, const Fields&... fields) {
    (require_before(comma_separated_names, &fields), ...);
    (field(next_name(comma_separated_names), fields), ...);
  }

  // Visits one field, for modules that compute their field names.
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
  /// The fields of a list of modules are called 0, 1, …
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

/// Makes copies of a module independent; PLUGRAD_FIELDS adds it as the last member. Copying a
/// module copies this member after the fields, whose handles then still denote the original's
/// tensors; its copy constructor replaces each tensor by a copy. Fields that shared a tensor (tied
/// weights) share the copy.
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

  std::ptrdiff_t offset_;  // byte offset of this member in the module
  void (*list_)(const FieldCopies& own, Handles& handles);
};

/// Lists the fields of a module that hold its state; the macro stands after the fields. No other
/// registration is needed.
#define PLUGRAD_FIELDS(...)                                       \
  void visit_fields(::plugrad::nn::StateVisitor& visitor) const { \
    visitor.visit(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);       \
  }                                                               \
  ::plugrad::nn::FieldCopies plugrad_field_copies_{this};

/// A module with copies of the tensors of `module`, at their present values; the trained ones
/// require gradients there too.
template <class Module>
Module clone(const Module& module) {
  static_assert(holds_modules<Module>,
                "a copy of this would share its tensors: write PLUGRAD_FIELDS(weight, layers, …) "
                "in the struct; a single Tensor has clone() of its own");
  return module;
}

/// Every tensor of the module by name, trained or not. The handles denote the module's own tensors.
template <class Module>
StateDict state_dict(const Module& module) {
  StateDict state;
  StateVisitor(state).visit_module(module);
  return state;
}

/// The same for handles of one tensor, such as tied weights, and different for others; null if
/// undefined. Valid while a handle of the tensor lives.
PLUGRAD_API const void* identity_of(const Tensor& tensor);

/// The tensors of `state` that require gradients.
PLUGRAD_API std::vector<Tensor> trained(const StateDict& state);
template <class Module>
std::vector<Tensor> parameters(const Module& module) {
  return trained(state_dict(module));
}

/// Casts the floats of `state` to another dtype, or moves all of it to another device; every handle
/// of these tensors sees the change. Drops their gradients. Errors: User for a dtype that is no
/// float, an unknown device, and in a jitted function.
PLUGRAD_API void convert_state(const StateDict& state, DType dtype);
PLUGRAD_API void move_state(const StateDict& state, std::string_view device);
/// nn::to(net, DType::BF16), nn::to(net, "CUDA"). Optimisers that hold tensors of the module are not
/// converted: create them afterwards. Jitted functions are recorded again.
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

/// One tensor in which a state and a module differ.
struct PLUGRAD_API StateDifference {
  enum class Kind : uint8_t {
    Missing,     ///< only in the module
    Unexpected,  ///< only in the state
    Shape,
    DType,  ///< loading casts floats to floats; all other dtypes must be equal
  };
  /// "missing", "unexpected", "shape" or "dtype".
  const char* kind_name() const;
  Kind kind;
  std::string name;
  std::string in_module, in_state;  ///< "(3, 4) f32", or empty
};
/// The differences as text, one line each.
PLUGRAD_API std::string describe(const std::vector<StateDifference>& differences);

/// Strict: the state must fit the module exactly.
enum class Loading : uint8_t { Strict, NotStrict };

/// Assigns the values of `source` to the tensors of `target` with the same names, cast where both
/// are floats. Returns the differences that it skipped; none when Strict. Errors: User when Strict
/// and there is a difference, with the table of differences; then nothing is assigned.
PLUGRAD_API std::vector<StateDifference> load_state(const StateDict& target,
                                                    const StateDict& source,
                                                    Loading loading = Loading::Strict);
template <class Module>
std::vector<StateDifference> load_state_dict(const Module& module, const StateDict& source,
                                             Loading loading = Loading::Strict) {
  return load_state(state_dict(module), source, loading);
}

/// Writes a safetensors file, which the `safetensors` package reads too. The file is replaced
/// atomically. If a tensor is on a mesh of several processes, all call it: rank 0 collects all
/// tensors and writes them (checkpoint.h saves parts instead). Errors: User, with the file and the
/// reason; then in all of these processes.
PLUGRAD_API void save_state(const StateDict& state, const std::string& path);
/// Reads the tensors of a safetensors file, which stays mapped until their values are on the
/// device. Errors: User, with the file, the tensor and the reason; then nothing is loaded.
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
