// Exceptions: plugrad's kinds of errors as subclasses of Python's own.
#include <exception>

#include "bind.h"
#include "plugrad/error.h"

namespace plugrad::python {

namespace {

/// The exception classes; they live as long as the process.
struct Classes {
  PyObject *error, *user, *unsupported, *device, *internal, *out_of_memory, *compile;
};
Classes classes;

PyObject* make_class(nb::module_& module, const char* name, const char* doc,
                     std::initializer_list<PyObject*> bases) {
  nb::list list;
  for (PyObject* base : bases) list.append(nb::handle(base));
  const std::string qualified = std::string("plugrad.") + name;
  PyObject* const made =
      PyErr_NewExceptionWithDoc(qualified.c_str(), doc, nb::tuple(list).ptr(), nullptr);
  if (!made) throw nb::python_error();
  module.attr(name) = nb::handle(made);
  return made;
}

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::User:
      return classes.user;
    case ErrorKind::Unsupported:
      return classes.unsupported;
    case ErrorKind::Device:
      return classes.device;
    case ErrorKind::Internal:
      break;
  }
  return classes.internal;
}

void set_error(PyObject* type, const char* message, nb::dict attributes = {}) {
  const nb::object error = nb::handle(type)(message);
  for (const auto& [name, value] : attributes) error.attr(name) = value;
  PyErr_SetObject(type, error.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const OutOfMemoryError& error) {
    nb::dict attributes;
    attributes["size_bytes"] = error.size_bytes();
    set_error(classes.out_of_memory, error.what(), attributes);
  } catch (const CompileError& error) {
    nb::dict attributes;
    attributes["source"] = nb::str(error.source().c_str());
    attributes["log"] = nb::str(error.log().c_str());
    set_error(classes.compile, error.what(), attributes);
  } catch (const Error& error) {
    set_error(class_of(error.kind()), error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  PyObject* const error =
      make_class(module, "Error", "Base of plugrad's exceptions.", {PyExc_Exception});
  classes.error = error;
  classes.user = make_class(module, "UserError",
                            "An argument, a file or a setting is wrong: change the input.",
                            {error, PyExc_ValueError});
  classes.unsupported = make_class(module, "UnsupportedError",
                                   "The request is sound, but this device or version cannot do it.",
                                   {error, PyExc_NotImplementedError});
  classes.device = make_class(module, "DeviceError", "A plugin or its device reported a failure.",
                              {error, PyExc_RuntimeError});
  classes.internal =
      make_class(module, "InternalError", "A bug in plugrad.", {error, PyExc_RuntimeError});
  classes.out_of_memory = make_class(
      module, "OutOfMemoryError",
      "Memory of a device, or PLUGRAD_MEMORY_LIMIT, is used up. `size_bytes` were asked for.",
      {classes.device, PyExc_MemoryError});
  classes.compile = make_class(
      module, "CompileError",
      "A device's compiler refused a kernel: `source` is its text, `log` the compiler's.",
      {classes.device});
  nb::register_exception_translator(translate);
}

}  // namespace plugrad::python
