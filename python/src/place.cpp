#include "place.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace plugrad::python {

namespace nb = nanobind;

struct Place::Frame {
  std::string file, function;
  SourceScope scope;
  Frame(std::string file_name, std::string function_name, unsigned line)
      : file(std::move(file_name)),
        function(std::move(function_name)),
        scope(file, line, function) {}
};

void Place::enter() {
  const nb::object frame =
      nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  if (!frame.is_valid()) return;
  auto* const raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
  frame_ = new Frame(nb::cast<std::string>(code.attr("co_filename")),
                     nb::cast<std::string>(code.attr("co_name")),
                     static_cast<unsigned>(PyFrame_GetLineNumber(raw)));
}

void Place::leave() {
  delete frame_;
}

}  // namespace plugrad::python
