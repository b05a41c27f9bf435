#include "programs/tree.h"

#include <bit>
#include <optional>

#include "arguments.h"

namespace plugrad::python {

namespace {

/// Kinds of values in the words of a call. A word is a kind and a size.
enum class Kind : uint8_t {
  Tensor,
  None,
  False,
  True,
  Integer,
  LargeInteger,
  Float,
  Complex,
  String,
  Bytes,
  List,
  Tuple,
  NamedTuple,
  Dict,
  DictOfType,
  DataClass,
  Slice,
  Range,
  DType,
  Object,
  Method,
  NumPyScalar,
  Module,
  Subclass,
};

/// An object that cannot be part of a call. Outer containers put their part in front of the path.
struct Refused {
  std::string path, reason;
};

std::string plain_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}
std::string name_of_type(nb::handle object) {
  return plain_text(object.type().attr("__name__"));
}
std::string key_text(nb::handle key) {
  return "[" + nb::cast<std::string>(nb::repr(key)) + "]";
}

nb::object imported(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}
/// Classes and functions of Python, which live as long as the process.
struct Known {
  nb::object dtype = nb::borrow(object_of_dtype(DType::F32).type());
  nb::object bound_function = nb::borrow(imported("plugrad._plugrad", "gradient").type());
  nb::object function = imported("types", "FunctionType");
  nb::object method = imported("types", "MethodType");
  nb::object enumeration = imported("enum", "Enum");
  nb::object tensors_of = imported("plugrad.nn", "_tensors");
};
const Known& known() {
  static const auto* const all = new Known;
  return *all;
}

/// Adds a path to what an inner object refuses.
template <class Put>
void at(const std::string& part, Put&& put) {
  try {
    put();
  } catch (Refused& refused) {
    refused.path = part + refused.path;
    throw;
  }
}

bool is_exactly(nb::handle object, PyTypeObject& type) {
  return Py_TYPE(object.ptr()) == &type;
}

/// The fields of a data class, or an invalid object.
nb::object fields_of(nb::handle object) {
  if (PyType_Check(object.ptr())) return {};
  return nb::getattr(object.type(), "__dataclass_fields__", nb::object());
}

/// Flattens containers and tensors, which arguments and results both have.
class Putter {
 public:
  Putter(Flat& flat, Numbers& numbers) : flat_(flat), numbers_(numbers) {}
  Putter(const Putter&) = delete;
  Putter& operator=(const Putter&) = delete;
  virtual ~Putter() = default;

  void put(nb::handle object) {
    if (const Tensor* const tensor = tensor_of(object)) {
      word(Kind::Tensor);
      flat_.tensors.push_back(*tensor);
    } else if (object.is_none()) {
      word(Kind::None);
    } else {
      if (++depth_ > kDeepest)
        throw Refused{"", "is nested more than " + std::to_string(kDeepest) +
                              " deep: does it contain itself?"};
      if (!put_container(object)) put_other(object);
      --depth_;
    }
  }

 protected:
  void word(Kind kind, uint64_t size = 0) {
    flat_.words.push_back(static_cast<uint64_t>(kind) | size << 8);
  }
  /// Objects that are neither tensors nor containers.
  virtual void put_other(nb::handle object) = 0;

  Flat& flat_;
  Numbers& numbers_;

 private:
  static constexpr int kDeepest = 100;  // each uses half a KiB of stack

  static const Tensor* tensor_of(nb::handle object) {
    static PyObject* const type = nb::type<Tensor>().ptr();
    const bool is_tensor = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == type ||
                           nb::isinstance<Tensor>(object);
    return is_tensor && nb::inst_ready(object) ? nb::inst_ptr<Tensor>(object) : nullptr;
  }

  bool put_container(nb::handle object) {
    PyObject* const o = object.ptr();
    if (PyList_Check(o)) {
      subclass(object, PyList_Type);
      word(Kind::List, static_cast<uint64_t>(PyList_Size(o)));
      put_items(object);
    } else if (PyTuple_Check(o)) {
      if (is_exactly(object, PyTuple_Type)) {
        word(Kind::Tuple, static_cast<uint64_t>(PyTuple_Size(o)));
      } else {
        word(Kind::NamedTuple, static_cast<uint64_t>(PyTuple_Size(o)));
        flat_.words.push_back(numbers_.of_kept(object.type()));
      }
      put_items(object);
    } else if (PyDict_Check(o)) {
      put_dict(object);
    } else if (const nb::object fields = fields_of(object); fields.is_valid()) {
      put_fields(object, fields);
    } else {
      return false;
    }
    return true;
  }

  void subclass(nb::handle object, PyTypeObject& type) {
    if (is_exactly(object, type)) return;
    word(Kind::Subclass);
    flat_.words.push_back(numbers_.of_kept(object.type()));
  }

  void put_items(nb::handle object) {
    size_t i = 0;
    for (const nb::handle item : object) {
      try {
        put(item);
      } catch (Refused& refused) {
        refused.path = "[" + std::to_string(i) + "]" + refused.path;
        throw;
      }
      ++i;
    }
  }

  void put_dict(nb::handle object) {
    const bool is_plain = is_exactly(object, PyDict_Type);
    word(is_plain ? Kind::Dict : Kind::DictOfType, static_cast<uint64_t>(nb::len(object)));
    if (!is_plain) flat_.words.push_back(numbers_.of_kept(object.type()));
    for (const auto& [key, value] : nb::borrow<nb::dict>(object)) {
      flat_.words.push_back(numbers_.of_key(key));
      at(key_text(key), [&] { put(value); });
    }
  }

  void put_fields(nb::handle object, const nb::object& fields) {
    word(Kind::DataClass, static_cast<uint64_t>(nb::len(fields)));
    flat_.words.push_back(numbers_.of_kept(object.type()));
    for (const nb::handle name : fields) {
      const nb::object value = nb::getattr(object, name, nb::none());
      at("." + plain_text(name), [&] { put(value); });
    }
  }

  int depth_ = 0;
};

class ArgumentPutter final : public Putter {
 public:
  using Putter::Putter;

 private:
  void put_other(nb::handle object) override {
    if (!put_number(object) && !put_text(object) && !put_description(object) && !put_array(object))
      put_module(object);
  }

  void hash(Kind kind, std::string_view bytes) {
    word(kind);
    flat_.words.push_back(jit_detail::hash_of(bytes));
  }

  void number(nb::handle object, PyTypeObject& type) {
    if (is_exactly(object, type)) return;
    word(Kind::Subclass);
    flat_.words.push_back(numbers_.of_kept(object.type()));
  }

  bool put_number(nb::handle object) {
    PyObject* const o = object.ptr();
    if (PyBool_Check(o)) {
      word(o == Py_True ? Kind::True : Kind::False);
    } else if (PyLong_Check(o)) {
      number(object, PyLong_Type);
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow != 0)
        return hash(Kind::LargeInteger, nb::cast<std::string>(nb::repr(object))), true;
      word(Kind::Integer);
      flat_.words.push_back(static_cast<uint64_t>(value));
    } else if (PyFloat_Check(o)) {
      number(object, PyFloat_Type);
      word(Kind::Float);
      flat_.words.push_back(std::bit_cast<uint64_t>(PyFloat_AsDouble(o)));
    } else if (PyComplex_Check(o)) {
      word(Kind::Complex);
      flat_.words.push_back(std::bit_cast<uint64_t>(PyComplex_RealAsDouble(o)));
      flat_.words.push_back(std::bit_cast<uint64_t>(PyComplex_ImagAsDouble(o)));
    } else {
      return false;
    }
    return true;
  }

  bool put_text(nb::handle object) {
    PyObject* const o = object.ptr();
    if (PyUnicode_Check(o)) {
      number(object, PyUnicode_Type);
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_AsUTF8AndSize(o, &size);
      if (!text) throw nb::python_error();
      hash(Kind::String, {text, static_cast<size_t>(size)});
    } else if (PyBytes_Check(o)) {
      hash(Kind::Bytes, {PyBytes_AsString(o), static_cast<size_t>(PyBytes_Size(o))});
    } else {
      return false;
    }
    return true;
  }

  /// dtypes, classes, functions and ranges.
  bool put_description(nb::handle object) {
    PyObject* const o = object.ptr();
    if (object.type().is(known().dtype)) {
      word(Kind::DType, static_cast<uint64_t>(*dtype_of_object(object)));
    } else if (PySlice_Check(o) || is_exactly(object, PyRange_Type)) {
      word(PySlice_Check(o) ? Kind::Slice : Kind::Range);
      for (const char* const part : {"start", "stop", "step"}) put(object.attr(part));
    } else if (PyType_Check(o) || PyCFunction_Check(o) ||
               object.type().is(known().bound_function) ||
               nb::isinstance(object, known().function) ||
               nb::isinstance(object, known().enumeration)) {
      word(Kind::Object);
      flat_.words.push_back(numbers_.of_kept(object));
    } else if (nb::isinstance(object, known().method)) {
      word(Kind::Method);
      put(object.attr("__func__"));
      put_module(object.attr("__self__"));
    } else {
      return false;
    }
    return true;
  }

  bool put_array(nb::handle object) {
    const bool is_array = nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__");
    if (!is_array) return false;
    if (nb::hasattr(object, "item") && !nb::hasattr(object, "__dlpack__")) {  // numpy.float32(3)
      word(Kind::NumPyScalar);
      flat_.words.push_back(numbers_.of_kept(object.type()));
      put(object.attr("item")());
      return true;
    }
    throw Refused{"", "is an array (" + name_of_type(object) +
                          "), whose values a replay would not read: pass plugrad.Tensor(…) of it"};
  }

  /// The tensors of a module; its identity stands for everything else that it holds.
  void put_module(nb::handle object) {
    const nb::object state = known().tensors_of(object);
    const auto number = numbers_.of_weak(object);
    const bool is_layer = nb::hasattr(object.type(), "_state");
    if (nb::len(state) == 0 && !is_layer && !is_searched(object))
      throw Refused{"",
                    "is a " + name_of_type(object) +
                        ", which a jitted function does not take: pass tensors, numbers, strings, "
                        "None, modules, and lists, tuples, dictionaries and data classes of them"};
    word(Kind::Module, nb::len(state));
    flat_.words.push_back(numbers_.of_kept(object.type()));
    if (number)
      flat_.words.push_back(*number);
    else
      put_parts(object);
    for (const auto& [name, tensor] : nb::borrow<nb::dict>(state))
      flat_.tensors.push_back(nb::cast<const Tensor&>(tensor));
  }

  /// An object of a class of the program's, such as a module without weights.
  static bool is_searched(nb::handle object) {
    return nb::hasattr(object, "__dict__") && PyCallable_Check(object.ptr());
  }

  /// The numbers of a layer that cannot be referenced weakly.
  void put_parts(nb::handle object) {
    if (!nb::hasattr(object.type(), "_parts")) return;
    const nb::object parts = object.type().attr("_parts")();
    for (const nb::handle name : nb::object(parts[1])) put(object.attr(name));
  }
};

class ResultPutter final : public Putter {
 public:
  using Putter::Putter;

 private:
  void put_other(nb::handle object) override {
    const std::string type = name_of_type(object);
    if (PyNumber_Check(object.ptr()) || PyUnicode_Check(object.ptr()))
      throw Refused{"", "is a " + type +
                            ", which would stay as it was in the recorded call: return the tensor, "
                            "and read its value from the result"};
    throw Refused{"", "is a " + type +
                          "; results are tensors and None, in lists, tuples, dictionaries and data "
                          "classes"};
  }
};

/// Reads the words of a result.
class Taker {
 public:
  Taker(const Flat& flat, const Numbers& numbers) : flat_(flat), numbers_(numbers) {}

  nb::object take() {
    const uint64_t word = next();
    const uint64_t size = word >> 8;
    switch (static_cast<Kind>(word & 0xff)) {
      case Kind::Tensor:
        return nb::cast(flat_.tensors.at(tensor_++));
      case Kind::List:
        return items(size);
      case Kind::Tuple:
        return nb::tuple(items(size));
      case Kind::NamedTuple: {
        const nb::handle type = numbers_.object(next());
        return nb::hasattr(type, "_make") ? type.attr("_make")(items(size)) : type(items(size));
      }
      case Kind::Dict:
        return dict(nb::dict(), size);
      case Kind::DictOfType: {
        const nb::handle type = numbers_.object(next());
        return dict(type(), size);
      }
      case Kind::DataClass:
        return data_class(numbers_.object(next()));
      case Kind::Subclass: {
        const nb::handle type = numbers_.object(next());
        return type(take());
      }
      default:
        return nb::none();
    }
  }

 private:
  uint64_t next() { return flat_.words.at(word_++); }

  nb::list items(uint64_t size) {
    nb::list list;
    for (uint64_t i = 0; i < size; ++i) list.append(take());
    return list;
  }

  nb::object dict(nb::object made, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) {
      const nb::handle key = numbers_.object(next());
      made[key] = take();
    }
    return made;
  }

  /// Sets the fields without __init__, so that frozen data classes and computed fields work.
  nb::object data_class(nb::handle type) {
    const nb::handle base(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
    const nb::object made = base.attr("__new__")(type);
    for (const nb::handle name : nb::object(type.attr("__dataclass_fields__")))
      base.attr("__setattr__")(made, name, take());
    return made;
  }

  const Flat& flat_;
  const Numbers& numbers_;
  size_t tensor_ = 0, word_ = 0;
};

std::string name_of_callable(nb::handle function) {
  return plain_text(nb::getattr(function, "__name__", function.type().attr("__name__")));
}

[[noreturn]] void refuse_value(const std::string& what, const Refused& refused) {
  throw nb::type_error((what + refused.path + " " + refused.reason).c_str());
}

}  // namespace

void put_arguments(Flat& flat, Numbers& numbers, nb::handle function, nb::handle arguments,
                   nb::handle keywords, bool has_self) {
  ArgumentPutter putter(flat, numbers);
  const auto begin = [&](const std::string& name) {
    return "[jit] " + name_of_callable(function) + ": the argument " + name;
  };
  size_t position = has_self ? 1 : 0;
  flat.words.push_back(static_cast<uint64_t>(nb::len(arguments)));
  for (const nb::handle argument : arguments) {
    try {
      putter.put(argument);
    } catch (const Refused& refused) {
      refuse_value(begin(name_of_argument(function, position)), refused);
    }
    ++position;
  }
  if (!keywords.is_valid()) return;
  for (const auto& [name, value] : nb::borrow<nb::dict>(keywords)) {
    flat.words.push_back(numbers.of_key(name));
    try {
      putter.put(value);
    } catch (const Refused& refused) {
      refuse_value(begin(plain_text(name)), refused);
    }
  }
}

void put_result(Flat& flat, Numbers& numbers, nb::handle result, const std::string& what) {
  try {
    ResultPutter(flat, numbers).put(result);
  } catch (const Refused& refused) {
    refuse_value(what, refused);
  }
}

nb::object take_result(const Flat& flat, const Numbers& numbers) {
  return Taker(flat, numbers).take();
}

}  // namespace plugrad::python
