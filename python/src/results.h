// Structs of tensors are tuples in Python.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "plugrad/linalg.h"

namespace plugrad::python {

inline std::tuple<Tensor, Tensor> as_tuple(const QR& factors) {
  return {factors.q, factors.r};
}
inline std::tuple<Tensor, Tensor, Tensor> as_tuple(const SVD& factors) {
  return {factors.u, factors.s, factors.vt};
}

}  // namespace plugrad::python
