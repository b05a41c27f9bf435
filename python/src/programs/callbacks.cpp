#include "programs/callbacks.h"

#include <mutex>
#include <utility>
#include <vector>

#include "bind.h"

namespace plugrad::python {

namespace {

struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  bool is_pending = false;  // the interpreter will call release_dropped
  bool is_over = false;     // the interpreter is ending
};
Dropped& dropped() {
  static auto* const all = new Dropped;  // outlives all objects
  return *all;
}

/// The caller holds the interpreter's lock, and none of plugrad's.
int release_dropped(void*) {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(dropped().mutex);
    objects = std::exchange(dropped().objects, {});
    dropped().is_pending = false;
  }
  for (PyObject* const object : objects) Py_DECREF(object);  // may drop others
  return 0;
}

void end() {
  release_dropped(nullptr);
  const std::lock_guard lock(dropped().mutex);
  dropped().is_over = true;
}

}  // namespace

KeptObject::KeptObject(nb::object object) : object_(object.release().ptr()) {}

KeptObject::~KeptObject() {
  Dropped& all = dropped();
  const std::lock_guard lock(all.mutex);
  if (all.is_over) return;
  all.objects.push_back(object_);
  if (!all.is_pending) all.is_pending = Py_AddPendingCall(release_dropped, nullptr) == 0;
}

void bind_callbacks(nb::module_& module) {
  module.def("_end_callbacks", end);
  nb::module_::import_("atexit").attr("register")(module.attr("_end_callbacks"));
}

}  // namespace plugrad::python
