#include "place.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "plugrad/binding.h"
#include "released.h"

namespace plugrad::python {

namespace {

thread_local std::uint32_t place_of_thread = 0;

/// A call in a function's code: the line is looked up when it is asked for.
struct Call {
  PyCodeObject* code;
  Py_ssize_t instruction;
  bool operator==(const Call&) const = default;
};
struct CallHasher {
  std::size_t operator()(const Call& call) const {
    return std::hash<const void*>()(call.code) * 31 + static_cast<std::size_t>(call.instruction);
  }
};

/// The folder of plugrad's Python files, with a slash at its end.
const std::string& package_folder() {
  static const std::string folder = [] {
    const auto file = nb::cast<std::string>(nb::module_::import_("plugrad").attr("__file__"));
    return file.substr(0, file.rfind('/') + 1);
  }();
  return folder;
}

bool is_of_package(PyCodeObject* code) {
  const nb::handle handle(reinterpret_cast<PyObject*>(code));
  return nb::cast<std::string>(handle.attr("co_filename")).starts_with(package_folder());
}

std::string described(nb::handle code, long line) {
  return nb::cast<std::string>(code.attr("co_filename")) + ':' + std::to_string(line) + ", in " +
         nb::cast<std::string>(code.attr("co_name"));
}

/// The numbers of calls. Everything here needs the interpreter's lock.
class Calls {
 public:
  static Calls& instance() {
    static auto* const one = new Calls;
    return *one;
  }
  /// 0 for a call in plugrad's own Python files.
  std::uint32_t number_of(const Call& call) {
    const auto at = numbers_.find(call);
    if (at != numbers_.end()) return at->second;
    if (calls_.size() == kMost) forget();
    const auto number = first_ + static_cast<std::uint32_t>(calls_.size());
    Py_INCREF(reinterpret_cast<PyObject*>(call.code));
    calls_.push_back(call);
    return numbers_.emplace(call, is_of_package(call.code) ? 0 : number).first->second;
  }
  std::string describe(std::uint32_t number) const {
    if (number < first_ || number - first_ >= calls_.size()) return {};
    const Call& call = calls_[number - first_];
    const nb::handle code(reinterpret_cast<PyObject*>(call.code));
    for (const nb::handle range : code.attr("co_lines")()) {
      const bool is_inside = nb::cast<Py_ssize_t>(range[0]) <= call.instruction &&
                             call.instruction < nb::cast<Py_ssize_t>(range[1]);
      if (is_inside && !nb::object(range[2]).is_none())
        return described(code, nb::cast<long>(range[2]));
    }
    return {};
  }

 private:
  // A program that makes code as it runs must not keep all of it.
  static constexpr std::size_t kMost = 1 << 16;
  void forget() {
    first_ += static_cast<std::uint32_t>(calls_.size());
    numbers_.clear();
    for (const Call& call : calls_) Py_DECREF(reinterpret_cast<PyObject*>(call.code));
    calls_.clear();
  }
  std::uint32_t first_ = 1;  // the number of calls_[0]
  std::vector<Call> calls_;
  std::unordered_map<Call, std::uint32_t, CallHasher> numbers_;
};

nb::object frame_of_thread() {
  return nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
}

/// An attribute by its interned name; none of an object without it.
nb::object attribute_of(const nb::object& object, PyObject* name) {
  PyObject* const value = PyObject_GetAttr(object.ptr(), name);
  if (!value) PyErr_Clear();
  return nb::steal(value);
}

/// The place of the innermost frame outside plugrad's own files; 0: none.
std::uint32_t place_of(nb::object frame) {
  static PyObject* const f_lasti = PyUnicode_InternFromString("f_lasti");
  static PyObject* const f_back = PyUnicode_InternFromString("f_back");
  while (frame.is_valid() && !frame.is_none()) {
    const nb::object instruction = attribute_of(frame, f_lasti);
    if (!instruction.is_valid()) return 0;
    PyCodeObject* const code = PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame.ptr()));
    const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(code));
    const auto place = Calls::instance().number_of({code, PyLong_AsSsize_t(instruction.ptr())});
    if (place != 0) return place;
    frame = attribute_of(frame, f_back);
  }
  return 0;
}

}  // namespace

struct Place::Traced {
  std::string file, function;
  SourceScope scope;
  Traced(std::string file_name, std::string function_name, unsigned line)
      : file(std::move(file_name)),
        function(std::move(function_name)),
        scope(file, line, function) {}
};

Place::Place() : outer_(place_of_thread) {
  const nb::object frame = frame_of_thread();
  if (!frame.is_valid()) return;
  place_of_thread = place_of(frame);
  if (!records_sources()) [[likely]]
    return;
  auto* const raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
  traced_ = new Traced(nb::cast<std::string>(code.attr("co_filename")),
                       nb::cast<std::string>(code.attr("co_name")),
                       static_cast<unsigned>(PyFrame_GetLineNumber(raw)));
}

Place::~Place() {
  place_of_thread = outer_;
  delete traced_;
}

void bind_places() {
  set_place_source({[] { return place_of_thread; },
                    [](std::uint32_t place) {
                      const CalledBack called;
                      return Calls::instance().describe(place);
                    }});
}

}  // namespace plugrad::python
