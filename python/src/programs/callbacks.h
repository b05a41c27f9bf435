// Python functions that C++ calls, and Python objects that C++ owns.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace plugrad::python {

namespace nb = nanobind;

/// Owns a Python object on behalf of C++ code that may drop it on any thread, while a lock of
/// plugrad's is held, and after the interpreter has ended. The interpreter releases the object
/// later, on the main thread; after the interpreter's end nothing releases it.
class KeptObject {
 public:
  /// The caller holds the interpreter's lock.
  explicit KeptObject(nb::object object);
  ~KeptObject();
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;
  nb::handle get() const { return object_; }

 private:
  PyObject* object_;
};

using Kept = std::shared_ptr<const KeptObject>;

/// Shows the garbage collector the Python objects of a bound class. Class has
/// `template <class Visit> int visit(Visit&& visit)` over nb::object members, and `void clear()`.
template <class Class>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<Class>(self)->visit([&](const nb::object& object) {
    Py_VISIT(object.ptr());
    return 0;
  });
}
template <class Class>
int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Class>(self)->clear();
  return 0;
}
template <class Class>
inline PyType_Slot gc_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<Class>)},
                                 {Py_tp_clear, reinterpret_cast<void*>(clear<Class>)},
                                 {0, nullptr}};

}  // namespace plugrad::python
