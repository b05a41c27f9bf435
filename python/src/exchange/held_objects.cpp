#include "exchange/held_objects.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace plugrad::python {

namespace {

/// Objects that wait for their release. It outlives every tensor, so it is never destroyed.
struct Waiting {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  bool is_scheduled = false;
  std::atomic<bool> is_empty = true;
  std::atomic<bool> has_ended = false;  // the interpreter is exiting
};
Waiting& waiting() {
  static auto& made = *new Waiting;
  return made;
}

int release_in_interpreter(void*) {
  release_objects();
  return 0;
}

/// A release runs any code of Python's, which must not happen under plugrad's locks.
void release_later(PyObject* object) noexcept {
  Waiting& list = waiting();
  if (list.has_ended || !Py_IsInitialized()) return;
  const std::lock_guard lock(list.mutex);
  try {
    list.objects.push_back(object);
  } catch (...) {  // no memory: the object is lost
    return;
  }
  list.is_empty = false;
  if (!list.is_scheduled)
    list.is_scheduled = Py_AddPendingCall(release_in_interpreter, nullptr) == 0;
}

}  // namespace

std::shared_ptr<const void> hold(nb::object object) {
  release_objects();
  return {object.release().ptr(), release_later};
}

void release_objects() {
  Waiting& list = waiting();
  if (list.is_empty) return;
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(list.mutex);
    objects.swap(list.objects);
    list.is_scheduled = false;
    list.is_empty = true;
  }
  for (PyObject* object : objects) Py_DecRef(object);
}

void bind_held_objects() {
  const nb::object end = nb::cpp_function([] { waiting().has_ended = true; });
  nb::module_::import_("atexit").attr("register")(end);
}

}  // namespace plugrad::python
