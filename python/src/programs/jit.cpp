// plugrad.jit: functions and methods of Python that are recorded and replayed.
#include "plugrad/jit.h"

#include <cstdlib>
#include <cstring>
#include <optional>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "place.h"
#include "programs/callbacks.h"
#include "programs/tree.h"
#include "released.h"

namespace plugrad::python {

namespace {

/// A replay cannot renew tensors that the call left in Python's garbage, so it is collected.
void collect_new_garbage() {
  static const auto* const collect = new nb::object(nb::module_::import_("gc").attr("collect"));
  const char* const setting = std::getenv("JIT");
  if (setting && std::strcmp(setting, "0") == 0) return;  // nothing is recorded
  (*collect)(1);  // the objects made last; a full collection takes time
}

/// The recordings of one function, for one instance if it is a method.
class Recordings {
 public:
  explicit Recordings(bool has_cuts) : has_cuts_(has_cuts), calls_(false, has_cuts) {}

  nb::object call(nb::handle function, const nb::args& arguments, const nb::kwargs& keywords,
                  nb::handle self = {}) {
    Flat given;
    put_arguments(given, numbers_, function, arguments, keywords, self.is_valid());
    nb::object made;             // the result of a call that ran the function
    std::optional<Place> place;  // of such a call
    Flat results;
    {
      const Released released;
      const auto run = [&] {
        const CalledBack called;
        place.emplace();
        made = self.is_valid() ? function(self, *arguments, **keywords)
                               : function(*arguments, **keywords);
        return flat_of(function, made);
      };
      const auto describe = [&] {
        const CalledBack called;
        return describe_arguments(numbers_, function, arguments, keywords, self.is_valid());
      };
      results = calls_.call(given, [&] { return run(); }, [&] { return describe(); });
    }
    return made.is_valid() ? made : take_result(results, numbers_);
  }

  size_t count() const { return calls_.recordings(); }
  std::string explain() const { return calls_.explain(); }

  template <class Visit>
  int visit(Visit&& visit) {
    return numbers_.visit(visit);
  }
  void clear() { numbers_.clear(); }

 private:
  Flat flat_of(nb::handle function, nb::handle made) {
    Flat flat;
    const std::string name =
        nb::cast<std::string>(nb::str(nb::getattr(function, "__name__", nb::str("function"))));
    put_result(flat, numbers_, made, "[jit] " + name + ": the result");
    if (!has_cuts_) collect_new_garbage();
    return flat;
  }

  const bool has_cuts_;
  jit_detail::Calls calls_;
  Numbers numbers_;
};

/// A jitted function; as an attribute of a class, the jitted method of its instances.
class JitObject {
 public:
  JitObject(nb::object function, bool has_cuts)
      : function_(std::move(function)),
        has_cuts_(has_cuts),
        recordings_(std::make_shared<Recordings>(has_cuts)) {}

  nb::object call(const nb::args& arguments, const nb::kwargs& keywords) {
    return recordings_->call(function_, arguments, keywords);
  }
  size_t count() const { return recordings_->count(); }
  std::string explain() const { return recordings_->explain(); }
  const nb::object& function() const { return function_; }

  /// The recordings for an instance, which live as long as it does.
  /// Errors: TypeError for an instance that cannot be referenced weakly.
  std::shared_ptr<Recordings> recordings_of(nb::handle instance) {
    const auto number =
        instances_.of_weak(instance, [owner = std::weak_ptr(of_instance_)](uint64_t gone) {
          if (const auto all = owner.lock()) all->erase(gone);
        });
    if (!number) {
      PyErr_Format(PyExc_TypeError,
                   "[jit] a jitted method needs instances that can be referenced weakly: add "
                   "\"__weakref__\" to the __slots__ of %S",
                   instance.type().ptr());
      throw nb::python_error();
    }
    std::shared_ptr<Recordings>& made = (*of_instance_)[*number];
    if (!made) made = std::make_shared<Recordings>(has_cuts_);
    return made;
  }

  template <class Visit>
  int visit(Visit&& visit) {
    if (const int stop = visit(function_)) return stop;
    for (const auto& [number, recordings] : *of_instance_)
      if (const int stop = recordings->visit(visit)) return stop;
    return recordings_->visit(visit);
  }
  void clear() {
    const auto all = std::exchange(of_instance_, std::make_shared<ByNumber>());
    recordings_->clear();
    const nb::object dropped = std::move(function_);
  }

 private:
  using ByNumber = std::unordered_map<uint64_t, std::shared_ptr<Recordings>>;
  nb::object function_;
  bool has_cuts_;
  std::shared_ptr<Recordings> recordings_;
  Numbers instances_;
  std::shared_ptr<ByNumber> of_instance_ = std::make_shared<ByNumber>();
};

/// instance.method, where the class has a jitted method.
class BoundJit {
 public:
  BoundJit(nb::object function, nb::object self, std::shared_ptr<Recordings> recordings)
      : function_(std::move(function)),
        self_(std::move(self)),
        recordings_(std::move(recordings)) {}

  nb::object call(const nb::args& arguments, const nb::kwargs& keywords) {
    const std::shared_ptr<Recordings> kept = recordings_;
    return kept->call(function_, arguments, keywords, self_);
  }
  size_t count() const { return recordings_->count(); }
  std::string explain() const { return recordings_->explain(); }
  const nb::object& function() const { return function_; }
  const nb::object& self() const { return self_; }

  template <class Visit>
  int visit(Visit&& visit) {
    if (const int stop = visit(function_)) return stop;
    return visit(self_);
  }
  void clear() { const nb::object function = std::move(function_), self = std::move(self_); }

 private:
  nb::object function_, self_;
  std::shared_ptr<Recordings> recordings_;
};

std::string describe(nb::handle function, const char* kind) {
  return "<jitted " + std::string(kind) + " " +
         nb::cast<std::string>(nb::str(nb::getattr(function, "__qualname__", function))) + ">";
}

/// Binds the members that jitted functions and jitted methods both have.
template <class Class>
void bind_callable(nb::class_<Class>& made, const char* kind) {
  made.def("__call__", &Class::call, nb::sig("def __call__(self, *args: Any, **kwargs: Any) -> R"),
           doc("Jit::operator()"));
  made.def_prop_ro("recordings", &Class::count, doc("Jit::recordings"));
  made.def(
      "explain",
      [](const Class& self) {
        const Released released;
        return self.explain();
      },
      doc("Jit::explain"));
  made.def_prop_ro(
      "__wrapped__", [](const Class& self) { return self.function(); },
      nb::sig("def __wrapped__(self) -> Callable[..., R]"), "The function itself.");
  made.def(
      "__getattr__",
      [](const Class& self, nb::handle name) {
        return nb::object(nb::getattr(self.function(), name));
      },
      "name"_a, nb::sig("def __getattr__(self, name: str) -> Any"),
      "Other attributes are the function's.");
  made.def("__repr__", [kind](const Class& self) { return describe(self.function(), kind); });
}

constexpr const char* kDoc =
    "A function that is recorded at its second call and replayed from then on.\n\n"
    "    @plugrad.jit\n"
    "    def step(x, y):\n"
    "        opt.zero_grad()\n"
    "        loss = plugrad.sparse_categorical_crossentropy(net(x), y)\n"
    "        loss.backward()\n"
    "        opt.step()\n"
    "        return loss\n\n"
    "A replay launches the recorded kernels on the new arguments and does not run the function.\n"
    "Arguments are tensors, numbers, strings, None, dtypes, functions, modules, and lists, "
    "tuples,\n"
    "dictionaries and data classes of these; each combination of shapes, numbers and strings is\n"
    "recorded apart. Of a module, replays read the tensors; its identity stands for everything "
    "else\n"
    "that it holds. Results are tensors and None, in such containers. A method is recorded for "
    "each\n"
    "instance. JIT=0 always runs the function. With cuts=True the function may read values "
    "(item(),\n"
    "if, masks, print): it then runs in each call, and what it computes between two reads runs as "
    "in the\n"
    "last call that computed the same. Errors: TypeError, with the name of the argument, for\n"
    "arguments of other types; ValueError for what a replay cannot repeat (docs/jit.md); "
    "exceptions\n"
    "of the function.";

}  // namespace

void bind_jit(nb::module_& module) {
  nb::class_<BoundJit> bound(module, "BoundJit", nb::type_slots(gc_slots<BoundJit>),
                             nb::is_generic(), nb::sig("class BoundJit(Generic[P, R])"),
                             "A jitted method of an instance.");
  bind_callable(bound, "method");
  bound.def_prop_ro(
      "__self__", [](const BoundJit& self) { return self.self(); },
      nb::sig("def __self__(self) -> Any"), "The instance.");
  nb::class_<JitObject> made(module, "Jit", nb::type_slots(gc_slots<JitObject>), nb::is_generic(),
                             nb::is_weak_referenceable(), nb::sig("class Jit(Generic[P, R])"),
                             kDoc);
  made.def(
      "__init__",
      [](JitObject* self, nb::object function, bool cuts) {
        if (!PyCallable_Check(function.ptr()))
          throw nb::type_error("[jit] a function, or another object that is called, is expected");
        new (self) JitObject(std::move(function), cuts);
      },
      "function"_a, nb::kw_only(), "cuts"_a = false,
      nb::sig("def __init__(self, function: Callable[P, R], *, cuts: bool = False) -> None"));
  bind_callable(made, "function");
  made.def(
      "__get__",
      [](nb::handle self, nb::object instance, nb::handle) -> nb::object {
        if (instance.is_none()) return nb::borrow(self);
        JitObject& jit = *nb::inst_ptr<JitObject>(self);
        std::shared_ptr<Recordings> recordings = jit.recordings_of(instance);
        return nb::cast(BoundJit(jit.function(), std::move(instance), std::move(recordings)));
      },
      "instance"_a.none(), "owner"_a.none() = nb::none(),
      nb::sig("def __get__(self, instance: Any, owner: Any = None) -> BoundJit[..., R]"));
  module.def(
      "jit",
      [](nb::object function, bool cuts) {
        return nb::type<JitObject>()(function, "cuts"_a = cuts);
      },
      "function"_a, nb::kw_only(), "cuts"_a = false,
      nb::sig("def jit(function: Callable[P, R], *, cuts: bool = False) -> Jit[P, R]"), kDoc);
  module.def(
      "jit",
      [](bool cuts) {
        return nb::module_::import_("functools")
            .attr("partial")(nb::type<JitObject>(), "cuts"_a = cuts);
      },
      nb::kw_only(), "cuts"_a,
      nb::sig("def jit(*, cuts: bool) -> Callable[[Callable[P, R]], Jit[P, R]]"),
      "With options, as a decorator: @plugrad.jit(cuts=True).");
}

}  // namespace plugrad::python
