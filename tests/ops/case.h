// Op cases: one row says how a function is written here and in PyTorch, on which inputs, and how
// near the values must be. A family's rows are in <family>.cpp:
//
//   const Family kRows("elementwise", {
//       {"asinh", "torch.asinh(x)", {{{45, 65}, -300, 300}},
//        [](const In& x) { return x[0].asinh(); }, {.forward = {1e-2, 2e-2}}},
//   });
//
// `cmake -DPLUGRAD_TORCH_PYTHON=<a python that imports torch>` gives ctest the comparison with
// PyTorch; without it those tests are skipped. What runs for every row:
//   pgr_test_ops_<family>        the device's values and gradients against the evaluator's, and
//                                gradients against central differences in f64
//   pgr_test_ops_torch_<family>  values, shapes, dtypes and gradients against PyTorch
// One row: build/dev/tests/pgr_test_ops --gtest_filter=elementwise.asinh. Names are unique in a
// family and of letters, digits and _. Several files may add rows to one family.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugrad/plugrad.h"

namespace plugrad::ops {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// {{45, 65}}: floats in [-2, 2). {{45, 65}, -300, 300}: in [-300, 300). {{4}, 0, 9, DType::I32}:
/// integers in [0, 9); bool: half of them true. {{3}, {1.0, kNaN, kInf}}: these values. The values
/// follow from the row's name: a row can be added without changing another's.
struct Input {
  Input(Shape shape_, double low_ = -2, double high_ = 2, DType dtype_ = DType::F32)
      : shape(std::move(shape_)), low(low_), high(high_), dtype(dtype_) {}
  Input(Shape shape_, std::vector<double> values_, DType dtype_ = DType::F32)
      : shape(std::move(shape_)), dtype(dtype_), values(std::move(values_)), literal(true) {}
  /// Marks a float input without a gradient.
  Input fixed() && {
    gradient = false;
    return std::move(*this);
  }

  Shape shape;
  double low = 0, high = 0;
  DType dtype;
  std::vector<double> values;
  bool literal = false, gradient = true;
};

using In = std::vector<Tensor>;

/// The result of a row's function: one tensor or several.
struct Out {
  Out(Tensor one) : tensors{std::move(one)} {}
  Out(std::vector<Tensor> several) : tensors(std::move(several)) {}
  Out(std::pair<Tensor, Tensor> two) : tensors{std::move(two.first), std::move(two.second)} {}
  std::vector<Tensor> tensors;
};

/// A lambda without captures that takes `const In&`.
class Function {
 public:
  template <class F>
  Function(F) : call_([](const In& x) -> Out { return F{}(x); }) {}
  Out operator()(const In& x) const { return call_(x); }

 private:
  Out (*call_)(const In&);
};

/// Near enough: |got - expected| <= absolute + relative * |expected|. Integers and bool are exact.
struct Bound {
  double absolute, relative;
};

struct Checks {
  Bound forward = {1e-6, 1e-3};
  /// Empty: no gradient is checked. Gradients are those of sum(cos(0.3 + 0.5 i) * output).
  std::optional<Bound> backward = Bound{1e-4, 1e-3};
  /// Off where inputs lie on a kink (relu at 0, ties) or a value is rounded on the way.
  bool differences = true;
  /// Off where PyTorch has another meaning; say which in a comment.
  bool torch_dtype = true;
};
inline constexpr Checks kForwardOnly = {.backward = std::nullopt};

struct Case {
  std::string name;
  /// Python, with x, y, z, w the inputs, and torch, F (torch.nn.functional), math, inf, nan; a
  /// tensor or a tuple. Empty: not compared with PyTorch.
  std::string torch;
  std::vector<Input> inputs;
  Function function;
  Checks checks = {};
};

/// Adds rows to a family. Made before main().
class Family {
 public:
  Family(const char* name, std::vector<Case> rows);
};

struct Entry {
  std::string family;
  Case row;
};
const std::vector<Entry>& all_cases();

}  // namespace plugrad::ops
