// The names and values of a call's arguments, for errors and explanations.
#include "programs/tree.h"

namespace plugrad::python {

namespace {

std::string as_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}

/// The value as text, if numbers and strings alone decide it.
std::string short_text(nb::handle object) {
  constexpr Py_ssize_t kMost = 60;  // characters
  PyObject* const o = object.ptr();
  const bool is_plain = object.is_none() || PyLong_Check(o) || PyFloat_Check(o) ||
                        PyComplex_Check(o) || PyUnicode_Check(o) || PyTuple_Check(o) ||
                        PyList_Check(o);
  if (!is_plain) return {};
  try {
    const nb::object text = nb::repr(object);
    return as_text(nb::steal(PyUnicode_Substring(text.ptr(), 0, kMost)));
  } catch (nb::python_error&) {  // of a class of the program's
    return {};
  }
}

jit_detail::Argument argument_of(Numbers& numbers, std::string name, nb::handle function,
                                 nb::handle object) {
  Flat flat;
  put_arguments(flat, numbers, function, nb::make_tuple(object), {});
  return {std::move(name), flat.tensors.empty() ? short_text(object) : "", flat.tensors.size(),
          flat.words.size() - 1};  // without the number of arguments
}

}  // namespace

std::string name_of_argument(nb::handle function, size_t position) {
  try {
    const nb::object signature = nb::module_::import_("inspect").attr("signature")(function);
    const nb::object parameters = signature.attr("parameters");
    const nb::list names(parameters);
    const bool is_named =
        position < names.size() &&
        as_text(parameters[names[position]].attr("kind").attr("name")) != "VAR_POSITIONAL";
    if (is_named) return nb::cast<std::string>(names[position]);
  } catch (nb::python_error&) {  // e.g. a function of C
  }
  return "number " + std::to_string(position + 1);
}

std::vector<jit_detail::Argument> describe_arguments(Numbers& numbers, nb::handle function,
                                                     nb::handle arguments, nb::handle keywords,
                                                     bool has_self) {
  std::vector<jit_detail::Argument> all = {{"the number of arguments", "", 0, 1}};
  size_t position = has_self ? 1 : 0;
  for (const nb::handle argument : arguments)
    all.push_back(argument_of(numbers, name_of_argument(function, position++), function, argument));
  if (!keywords.is_valid()) return all;
  for (const auto& [name, value] : nb::borrow<nb::dict>(keywords)) {
    all.push_back(argument_of(numbers, as_text(name), function, value));
    ++all.back().words;  // the name
  }
  return all;
}

}  // namespace plugrad::python
