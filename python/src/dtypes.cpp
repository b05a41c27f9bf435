// The class dtype and its constants.
#include <array>

#include "arguments.h"
#include "bind.h"

namespace plugrad::python {

namespace {

struct Row {
  DType dtype;
  const char* name;  // NumPy's and ml_dtypes'
};
constexpr std::array kRows = {
    Row{DType::Bool, "bool"},
    Row{DType::I8, "int8"},
    Row{DType::U8, "uint8"},
    Row{DType::I16, "int16"},
    Row{DType::U16, "uint16"},
    Row{DType::I32, "int32"},
    Row{DType::U32, "uint32"},
    Row{DType::I64, "int64"},
    Row{DType::U64, "uint64"},
    Row{DType::F16, "float16"},
    Row{DType::BF16, "bfloat16"},
    Row{DType::F32, "float32"},
    Row{DType::F64, "float64"},
    Row{DType::F8E4M3, "float8_e4m3fn"},
    Row{DType::F8E5M2, "float8_e5m2"},
    // The dtypes of Python numbers, which take the other operand's.
    Row{DType::Index, "weak_int"},
    Row{DType::WeakFloat, "weak_float"},
};
std::array<PyObject*, 256> objects;  // by DType; they live as long as the process

/// A dtype as a Python object; equal to its names, NumPy's dtype of that name and itself.
struct DTypeObject {
  DType value;
  const char* name;
};

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const Row& row : kRows)
    if (name == row.name) return row.dtype;
  const DType dtype = dtype_from_name(name);
  return dtype == DType::Void ? std::nullopt : std::optional(dtype);
}

/// The name of a dtype in an object; nothing for objects that stand for no dtype.
std::optional<std::string> dtype_name_of_object(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return {};  // whose text would be computed
  PyObject* const o = object.ptr();
  if (PyUnicode_Check(o)) return nb::cast<std::string>(object);
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return "bool";
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return "int32";
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return "float32";
  // numpy.dtype has `name`; numpy.float32, ml_dtypes.bfloat16 and others are classes.
  if (nb::hasattr(object, "itemsize") && nb::hasattr(object, "name"))
    return nb::cast<std::string>(nb::str(object.attr("name")));
  if (PyType_Check(o) && nb::hasattr(object, "dtype"))
    return nb::cast<std::string>(object.attr("__name__"));
  const std::string text = nb::cast<std::string>(nb::str(object));
  if (text.starts_with("torch.")) return text.substr(6);  // "torch.float32"
  return {};
}

/// In ASCII: other characters may look like these.
std::string ascii(const std::string& text) {
  const nb::object quoted = nb::steal(PyObject_ASCII(nb::str(text.data(), text.size()).ptr()));
  const auto all = nb::cast<std::string>(quoted);
  return all.substr(1, all.size() - 2);
}

[[noreturn]] void refuse_dtype(const std::string& name) {
  nb::list known;
  std::string all;
  for (const Row& row : kRows) {
    if (row.dtype >= DType::Index) continue;
    known.append(row.name);
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  }
  std::string message = "\"" + ascii(name) + "\" is no dtype; ";
  const nb::object similar = nb::module_::import_("difflib").attr("get_close_matches");
  for (const nb::handle nearest : similar(name, known, 1))
    message += "did you mean \"" + nb::cast<std::string>(nearest) + "\"? ";
  throw Error(ErrorKind::User, message + "dtypes: " + all, ErrorReason::Type);
}

}  // namespace

std::optional<DType> dtype_of_object(nb::handle object) {
  DTypeObject* known = nullptr;
  if (nb::try_cast(object, known, false) && known) return known->value;
  const auto name = dtype_name_of_object(object);
  return name ? dtype_of_name(*name) : std::nullopt;
}

namespace {

/// Whether an object of any class stands for that dtype; no failure of its methods leaves it.
bool is_dtype(nb::handle object, DType dtype) {
  try {
    return dtype_of_object(object) == dtype;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C
    return false;
  } catch (const nb::cast_error&) {  // text that is not UTF-8
    return false;
  }
}

}  // namespace

std::optional<DType> dtype_argument(nb::handle object) {
  if (const auto dtype = dtype_of_object(object)) return dtype;
  if (const auto name = dtype_name_of_object(object)) refuse_dtype(*name);
  return {};
}

std::optional<DTypeOrDevice> dtype_or_device(nb::handle object) {
  if (object.is_none()) return DTypeOrDevice();
  refuse_mesh(object);
  if (const auto dtype = dtype_of_object(object)) return DTypeOrDevice{dtype, {}};
  if (PyUnicode_Check(object.ptr())) return DTypeOrDevice{{}, nb::cast<std::string>(object)};
  return {};
}

nb::object object_of_dtype(DType dtype) {
  return nb::borrow(objects[static_cast<size_t>(dtype)]);
}

void bind_dtypes(nb::module_& module) {
  nb::class_<DTypeObject> type(
      module, "dtype", "A kind of elements. Functions also take its name: dtype=\"float32\".");
  type.def(
          "__init__",
          [](DTypeObject* self, nb::handle object) {
            const auto dtype = dtype_argument(object);
            if (!dtype)
              throw nb::type_error(
                  "a dtype is made from the name of one, or from another "
                  "library's dtype");
            for (const Row& row : kRows)
              if (row.dtype == *dtype) new (self) DTypeObject{row.dtype, row.name};
          },
          "name"_a, nb::sig("def __init__(self, name: DTypeLike) -> None"))
      .def_prop_ro("name", [](const DTypeObject& self) { return self.name; })
      .def_prop_ro(
          "itemsize", [](const DTypeObject& self) { return size_of(self.value); },
          "Bytes of one element.")
      .def_prop_ro("is_floating_point",
                   [](const DTypeObject& self) { return is_float(self.value); })
      .def_prop_ro("is_signed", [](const DTypeObject& self) { return !is_unsigned(self.value); })
      .def("__repr__", [](const DTypeObject& self) { return std::string("plugrad.") + self.name; })
      .def("__str__", [](const DTypeObject& self) { return self.name; })
      .def("__hash__", [](const DTypeObject& self) { return static_cast<int64_t>(self.value); })
      .def(
          "__eq__",
          [](const DTypeObject& self, nb::handle other) { return is_dtype(other, self.value); },
          "other"_a.none(), nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__reduce__", [](const DTypeObject& self) {
        return nb::make_tuple(nb::type<DTypeObject>(), nb::make_tuple(self.name));
      });
  for (const Row& row : kRows) {
    nb::object object = nb::cast(DTypeObject{row.dtype, row.name});
    if (row.dtype < DType::Index)
      module.attr(row.dtype == DType::Bool ? "bool_" : row.name) = object;
    objects[static_cast<size_t>(row.dtype)] = object.release().ptr();
  }
}

}  // namespace plugrad::python
