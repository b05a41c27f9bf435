// Nested containers of tensors as lists of tensors and back: arguments and results of functions
// that plugrad records.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugrad/jit.h"

namespace plugrad::python {

namespace nb = nanobind;
using jit_detail::Flat;

/// Numbers for Python objects. The caller holds the interpreter's lock.
class Numbers {
 public:
  /// The number of an object that is kept alive: a class, a function, a value of an Enum.
  uint64_t of_kept(nb::handle object);
  /// The number of an object that is not kept alive; no other object gets it later. Nothing if the
  /// object does not support weak references.
  /// `gone` is called with the number when the object has ended.
  std::optional<uint64_t> of_weak(nb::handle object, std::function<void(uint64_t)> gone = {});
  /// The number of the key of a dictionary, by equality and type.
  uint64_t of_key(nb::handle key);
  nb::handle object(uint64_t number) const { return objects_.at(number); }

  template <class Visit>
  int visit(Visit&& visit) {
    for (const nb::object& object : objects_)
      if (const int stop = visit(object)) return stop;
    return visit(keys_);
  }
  void clear();

 private:
  struct Weak;
  std::vector<nb::object> objects_;
  std::unordered_map<PyObject*, uint64_t> kept_;
  nb::object keys_;  // a dictionary from (type, key) to number, when there is one
  std::shared_ptr<Weak> weak_;
};

/// Adds the arguments of a call: tensors, and words for all that the call depends on beside them.
/// `function` gives names to the messages. Errors: TypeError, with the name of the argument, for
/// an object that is no tensor, number, string, None, container, module, dtype, class or function.
void put_arguments(Flat& flat, Numbers& numbers, nb::handle function, nb::handle arguments,
                   nb::handle keywords, bool has_self = false);

/// "x" for the first argument of f(x, y); "number 1" where the function does not tell.
std::string name_of_argument(nb::handle function, size_t position);

/// The arguments that put_arguments() adds, by name, with the values of those without tensors: for
/// explanations. The first one has the word before them.
std::vector<jit_detail::Argument> describe_arguments(Numbers& numbers, nb::handle function,
                                                     nb::handle arguments, nb::handle keywords,
                                                     bool has_self = false);

/// Adds tensors in nested lists, tuples, dictionaries and data classes; None stands for itself.
/// `what` begins the message. Errors: TypeError for anything else.
void put_result(Flat& flat, Numbers& numbers, nb::handle result, const std::string& what);
/// The inverse.
nb::object take_result(const Flat& flat, const Numbers& numbers);

}  // namespace plugrad::python
