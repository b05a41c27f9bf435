// Exceptions: plugrad's kinds of errors as subclasses of Python's own.
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

#include "bind.h"
#include "plugrad/error.h"

namespace plugrad::python {

namespace {

/// A class of plugrad/errors.py.
nb::object class_named(const char* name) {
  static PyObject* const module = nb::module_::import_("plugrad.errors").release().ptr();
  return nb::handle(module).attr(name);
}

const char* class_name(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::Value:
      break;
    case ErrorReason::Index:
      return "UserIndexError";
    case ErrorReason::Type:
      return "UserTypeError";
    case ErrorReason::Overflow:
      return "UserOverflowError";
  }
  return "UserError";
}

const char* class_name(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::User:
      return class_name(error.reason());
    case ErrorKind::Unsupported:
      return "UnsupportedError";
    case ErrorKind::Device:
      return "DeviceError";
    case ErrorKind::Internal:
      break;
  }
  return "InternalError";
}

// The text with Python's names of functions: "pass nn.parameters(net)".
std::string in_python(std::string text) {
  for (const std::string_view name : {"nn::", "distributed::", "Tensor::", "plugrad::"})
    for (size_t at; (at = text.find(name)) != text.npos;)
      text.replace(at + name.size() - 2, 2, ".");
  return text;
}

void set_error(const char* name, const Error& thrown, const nb::dict& attributes = {}) {
  const nb::object type = class_named(name),
                   error = type(nb::str(in_python(thrown.what()).c_str()));
  for (const auto& [attribute, value] : attributes) error.attr(attribute) = value;
  if (!thrown.recorded_at().empty()) {
    nb::list places;
    for (const std::string& place : thrown.recorded_at()) places.append(nb::str(place.c_str()));
    error.attr("recorded_at") = nb::tuple(places);
  }
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const OutOfMemoryError& error) {
    nb::dict attributes;
    attributes["size_bytes"] = error.size_bytes();
    set_error("OutOfMemoryError", error, attributes);
  } catch (const CompileError& error) {
    nb::dict attributes;
    attributes["source"] = nb::str(error.source().c_str());
    attributes["log"] = nb::str(error.log().c_str());
    set_error("CompileError", error, attributes);
  } catch (const Error& error) {
    set_error(class_name(error), error);
  } catch (const std::bad_cast&) {  // nb::cast of an element of a list or of *arguments
    PyErr_SetString(PyExc_TypeError, "an argument, or an element of it, has the wrong type");
  }
}

}  // namespace

void bind_errors() {
  nb::register_exception_translator(translate);
}

}  // namespace plugrad::python
