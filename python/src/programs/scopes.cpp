// Settings of a thread for a part of its program: default device, gradients, search, schedules.
#include <memory>
#include <tuple>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "plugrad/no_grad.h"
#include "plugrad/search.h"
#include "plugrad/shutdown.h"

namespace plugrad::python {

namespace {

/// A C++ scope between __enter__ and __exit__. It may be entered again inside of itself.
template <class Scope, class... Arguments>
class PythonScope {
 public:
  explicit PythonScope(Arguments... arguments) : arguments_(std::move(arguments)...) {}
  ~PythonScope() {
    while (!scopes_.empty()) leave();
  }
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

template <class Scope, class... Arguments>
nb::class_<PythonScope<Scope, Arguments...>> bind_scope(nb::module_& module, const char* name,
                                                        const char* documentation) {
  using Made = PythonScope<Scope, Arguments...>;
  nb::class_<Made> made(module, name, documentation);
  made.def(
      "__enter__",
      [](nb::handle self) { return nb::inst_ptr<Made>(self)->enter(), nb::borrow(self); },
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
      "Within `with plugrad.SearchScope(4, 15):`, kernels that this thread makes get their "
      "schedules "
      "by a search, as with BEAM=4 BEAM_SECONDS=15: docs/search.md.")
      .def(nb::init<int, double>(), "beam"_a, "seconds"_a = 10.0, doc("SearchScope::__init__"));
  bind_scope<OptimisationScope, std::string>(
      module, "OptimisationScope",
      "Within `with plugrad.OptimisationScope(\"r_512_512: …\"):`, kernels that this thread makes "
      "get "
      "the given schedules (Kernel.optimisations): docs/optimisations.md.")
      .def(nb::init<std::string>(), "lists"_a, doc("OptimisationScope::__init__"));
  bind_scope<DeviceScope, std::string>(
      module, "device",
      "Within `with plugrad.device(\"OPENCL\"):`, that device is the default one of this thread. "
      "Errors: ValueError for an unknown device, when the scope is entered.")
      .def(nb::init<std::string>(), "name"_a);
  bind_scope<NoGradScope>(module, "_NoGradScope", doc("NoGradScope")).def(nb::init<>());
  module.def("is_grad_enabled", &is_grad_enabled, "False within `with plugrad.no_grad():`.");
  module.def(
      "manual_seed", [](uint64_t seed) { Tensor::manual_seed(seed); }, "seed"_a = 0,
      "Tensor.manual_seed: the seed of all random numbers that are drawn later.");
  module.def(
      "shutdown",
      [] {
        const Released released;
        shutdown();
      },
      doc("shutdown"));
}

}  // namespace plugrad::python
