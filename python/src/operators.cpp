// Python's operators of tensors.
#include "arguments.h"
#include "bind.h"
#include "place.h"

namespace plugrad::python {

namespace {

/// a + b, and b + a where b is a number or an array; comparisons are their own reflections.
template <class Function>
void define(nb::class_<Tensor>& tensor, const char* name, const char* reflected, Function) {
  tensor.def(
      name,
      [](const Tensor& self, const TensorLike& other) {
        const Place place;
        return Function()(self, other.get());
      },
      "other"_a, nb::is_operator());
  if (!reflected) return;
  tensor.def(
      reflected,
      [](const Tensor& self, const TensorLike& other) {
        const Place place;
        return Function()(other.get(), self);
      },
      "other"_a, nb::is_operator());
}

template <class Function>
void define_in_place(nb::class_<Tensor>& tensor, const char* name, Function) {
  tensor.def(
      name,
      [](Tensor& self, const TensorLike& other) -> Tensor& {
        const Place place;
        Function()(self, other.get());
        return self;
      },
      "other"_a, nb::is_operator(), nb::rv_policy::none);
}

#define PLUGRAD_BINARY(expression) [](const Tensor& a, const Tensor& b) { return expression; }
#define PLUGRAD_IN_PLACE(operator) [](Tensor& a, const Tensor& b) { a operator b; }

void bind_arithmetic(nb::class_<Tensor>& tensor) {
  define(tensor, "__add__", "__radd__", PLUGRAD_BINARY(a + b));
  define(tensor, "__sub__", "__rsub__", PLUGRAD_BINARY(a - b));
  define(tensor, "__mul__", "__rmul__", PLUGRAD_BINARY(a * b));
  define(tensor, "__truediv__", "__rtruediv__", PLUGRAD_BINARY(a / b));
  define(tensor, "__floordiv__", "__rfloordiv__", PLUGRAD_BINARY(a.floor_div(b)));
  define(tensor, "__mod__", "__rmod__", PLUGRAD_BINARY(a % b));
  define(tensor, "__pow__", "__rpow__", PLUGRAD_BINARY(a.pow(b)));
  define(tensor, "__matmul__", "__rmatmul__", PLUGRAD_BINARY(matmul(a, b)));
  define(tensor, "__and__", "__rand__", PLUGRAD_BINARY(a & b));
  define(tensor, "__or__", "__ror__", PLUGRAD_BINARY(a | b));
  define(tensor, "__xor__", "__rxor__", PLUGRAD_BINARY(a ^ b));
  define(tensor, "__lshift__", "__rlshift__", PLUGRAD_BINARY(a << b));
  define(tensor, "__rshift__", "__rrshift__", PLUGRAD_BINARY(a >> b));
}

void bind_comparisons(nb::class_<Tensor>& tensor) {
  define(tensor, "__eq__", nullptr, PLUGRAD_BINARY(a == b));
  define(tensor, "__ne__", nullptr, PLUGRAD_BINARY(a != b));
  define(tensor, "__lt__", nullptr, PLUGRAD_BINARY(a < b));
  define(tensor, "__le__", nullptr, PLUGRAD_BINARY(a <= b));
  define(tensor, "__gt__", nullptr, PLUGRAD_BINARY(a > b));
  define(tensor, "__ge__", nullptr, PLUGRAD_BINARY(a >= b));
}

void bind_assignments(nb::class_<Tensor>& tensor) {
  define_in_place(tensor, "__iadd__", PLUGRAD_IN_PLACE(+=));
  define_in_place(tensor, "__isub__", PLUGRAD_IN_PLACE(-=));
  define_in_place(tensor, "__imul__", PLUGRAD_IN_PLACE(*=));
  define_in_place(tensor, "__itruediv__", PLUGRAD_IN_PLACE(/=));
  define_in_place(tensor, "__imod__", PLUGRAD_IN_PLACE(%=));
  define_in_place(tensor, "__iand__", PLUGRAD_IN_PLACE(&=));
  define_in_place(tensor, "__ior__", PLUGRAD_IN_PLACE(|=));
  define_in_place(tensor, "__ixor__", PLUGRAD_IN_PLACE(^=));
  define_in_place(tensor, "__ilshift__", PLUGRAD_IN_PLACE(<<=));
  define_in_place(tensor, "__irshift__", PLUGRAD_IN_PLACE(>>=));
}

#undef PLUGRAD_BINARY
#undef PLUGRAD_IN_PLACE

}  // namespace

void bind_operators(nb::class_<Tensor>& tensor) {
  bind_arithmetic(tensor);
  bind_comparisons(tensor);
  bind_assignments(tensor);
  tensor.def("__neg__", [](const Tensor& self) {
    const Place place;
    return -self;
  });
  tensor.def("__pos__", [](const Tensor& self) {
    const Place place;
    return self.clone();
  });
  tensor.def("__invert__", [](const Tensor& self) {
    const Place place;
    return ~self;
  });
  tensor.def("__abs__", [](const Tensor& self) {
    const Place place;
    return self.abs();
  });
  tensor.def("__hash__",
             [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
}

}  // namespace plugrad::python
