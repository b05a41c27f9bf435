#include "place.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "plugrad/binding.h"

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
  std::uint32_t number_of(const Call& call) {
    const auto [at, is_new] = numbers_.try_emplace(call, first_ + calls_.size());
    if (!is_new) return at->second;
    if (calls_.size() == kMost) {
      forget();
      return number_of(call);
    }
    Py_INCREF(reinterpret_cast<PyObject*>(call.code));
    calls_.push_back(call);
    return at->second;
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

PyFrameObject* frame_of_thread() {
  return PyThreadState_GetFrame(PyThreadState_Get());
}

std::uint32_t place_of(PyFrameObject* frame) {
  static PyObject* const f_lasti = PyUnicode_InternFromString("f_lasti");
  PyObject* const instruction = PyObject_GetAttr(reinterpret_cast<PyObject*>(frame), f_lasti);
  if (!instruction) {
    PyErr_Clear();
    return 0;
  }
  PyCodeObject* const code = PyFrame_GetCode(frame);
  const std::uint32_t place = Calls::instance().number_of({code, PyLong_AsSsize_t(instruction)});
  Py_DECREF(reinterpret_cast<PyObject*>(code));
  Py_DECREF(instruction);
  return place;
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
  PyFrameObject* const frame = frame_of_thread();
  if (!frame) return;
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(frame));
  place_of_thread = place_of(frame);
  if (!records_sources()) [[likely]]
    return;
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  traced_ = new Traced(nb::cast<std::string>(code.attr("co_filename")),
                       nb::cast<std::string>(code.attr("co_name")),
                       static_cast<unsigned>(PyFrame_GetLineNumber(frame)));
}

Place::~Place() {
  place_of_thread = outer_;
  delete traced_;
}

void bind_places() {
  set_place_source({[] { return place_of_thread; },
                    [](std::uint32_t place) {
                      const nb::gil_scoped_acquire acquired;
                      return Calls::instance().describe(place);
                    }});
}

}  // namespace plugrad::python
