// Settings for a part of a program: default device, search, schedules; and the state of all of it.
#include <memory>
#include <tuple>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "plugrad/search.h"
#include "plugrad/shutdown.h"

namespace plugrad::python {

namespace {

/// A C++ scope between __enter__ and __exit__. It may be entered again inside of itself.
template <class Scope, class... Arguments>
class PythonScope {
 public:
  explicit PythonScope(Arguments... arguments) : arguments_(std::move(arguments)...) {}
  PythonScope(const PythonScope&) = delete;
  PythonScope& operator=(const PythonScope&) = delete;

  void enter() {
    std::apply([&](const auto&... each) { scopes_.push_back(std::make_unique<Scope>(each...)); },
               arguments_);
  }
  /// Errors: User without enter().
  void leave() {
    if (scopes_.empty()) throw Error(ErrorKind::User, "[scope] the scope was not entered");
    scopes_.pop_back();
  }

 private:
  std::tuple<Arguments...> arguments_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

/// Sets the default device, and restores the one before.
class DeviceScope {
 public:
  explicit DeviceScope(const std::string& name) : before_(Device::default_device()) {
    Device::set_default_device(name);
  }
  ~DeviceScope() {
    try {
      Device::set_default_device(before_);
    } catch (const Error&) {  // after shutdown()
    }
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  std::string before_;
};

template <class Scope, class... Arguments>
nb::class_<PythonScope<Scope, Arguments...>> bind_scope(nb::module_& module, const char* name,
                                                        const char* documentation) {
  using Made = PythonScope<Scope, Arguments...>;
  nb::class_<Made> made(module, name, documentation);
  made.def(
      "__enter__", [](nb::handle self) { return nb::inst_ptr<Made>(self)->enter(), nb::borrow(self); },
      nb::sig(("def __enter__(self) -> " + std::string(name)).c_str()));
  made.def(
      "__exit__", [](Made& self, const nb::args&) { self.leave(); },
      nb::sig("def __exit__(self, *error: object) -> None"));
  return made;
}

}  // namespace

void bind_scopes(nb::module_& module) {
  bind_scope<SearchScope, int, double>(
      module, "SearchScope",
      "Within `with plugrad.SearchScope(4, 15):`, kernels that this thread makes get their schedules "
      "by a search, as with BEAM=4 BEAM_SECONDS=15: docs/search.md.")
      .def(nb::init<int, double>(), "beam"_a, "seconds"_a = 10.0, doc("SearchScope::__init__"));
  bind_scope<OptimisationScope, std::string>(
      module, "OptimisationScope",
      "Within `with plugrad.OptimisationScope(\"r_512_512: …\"):`, kernels that this thread makes get "
      "the given schedules (Kernel.optimisations): docs/optimisations.md.")
      .def(nb::init<std::string>(), "lists"_a, doc("OptimisationScope::__init__"));
  bind_scope<DeviceScope, std::string>(
      module, "device",
      "Within `with plugrad.device(\"OPENCL\"):`, new tensors are on that device, in every thread. "
      "Errors: ValueError for an unknown device, when the scope is entered.")
      .def(nb::init<std::string>(), "name"_a);
  module.def(
      "manual_seed", [](uint64_t seed) { Tensor::manual_seed(seed); }, "seed"_a = 0,
      "Tensor.manual_seed: the seed of all random numbers that are drawn later.");
  module.def(
      "shutdown",
      [] {
        const nb::gil_scoped_release released;
        shutdown();
      },
      doc("shutdown"));
}

}  // namespace plugrad::python
