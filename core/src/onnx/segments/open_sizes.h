// The sizes of axes that a model leaves open: which of them vary in one recording.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onnx/file/messages.h"
#include "plugrad/jit.h"
#include "plugrad/onnx.h"

namespace plugrad::onnx {

/// An axis of an input whose size is always a number and the variable sizes of other axes.
struct SizeSum {
  using Axis = std::pair<size_t, size_t>;  // of an input of the model
  Axis axis;
  std::vector<Axis> of;
  std::int64_t number = 0;
};

/// The tensors of a call with variable sizes.
struct VariedInputs {
  std::vector<Tensor> tensors;
  std::vector<SizeSum> sums;
};

/// Without bounds, the first two values of each size are recorded alone. From its third value on, a
/// size is variable up to twice the largest value, so that one recording serves all of them. A value
/// that comes many times in a row is recorded alone, and so is 0, which few operators take. A size
/// that has always been the sum of others varies with them. Sizes with bounds vary from the first
/// call on, and no others do.
class OpenSizes {
 public:
  /// Errors: User for bounds of a name that is no open size, bounds that Variable refuses, and two
  /// bounds of one size, which has the name "input.axis" besides its own.
  /// `warns`: of sizes that are recorded for many values.
  OpenSizes(const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds,
            bool warns = true);

  /// The tensors of these inputs with variable sizes; nothing if the call is recorded for its own
  /// sizes. Errors: User for a size out of its bounds.
  std::optional<VariedInputs> varied(const std::vector<size_t>& inputs,
                                     const std::vector<Tensor>& tensors);
  /// After give_up(): the same for the sizes that still vary.
  std::optional<VariedInputs> varied_again(const std::vector<size_t>& inputs,
                                           const std::vector<Tensor>& tensors);
  /// Two axes of these inputs that share a size but differ in it, for errors; empty if there are
  /// none. Some exporters name sizes alike that are not, so a model may compute with it.
  std::string contradiction(const std::vector<size_t>& inputs,
                            const std::vector<Tensor>& tensors) const;
  bool has_bounds() const { return has_bounds_; }
  /// Whether sizes vary although the caller gave no bounds.
  bool are_inferred() const { return !has_bounds_; }
  /// The model was recorded with the sizes that vary in the last call.
  void succeeded();
  /// It cannot be: varied() then lets fewer of them vary. The reason is shown once a size has had
  /// many values.
  void give_up(const std::string& reason);
  void give_up_all(const std::string& reason);
  /// A line for each size that varies in one recording, or that cannot, with the reason.
  std::string explain() const;

 private:
  // The size is always the sum of these sizes, which are none themselves, and the number.
  struct Sum {
    std::vector<size_t> of;
    std::int64_t number = 0;
  };
  struct Size {
    std::string name;
    bool has_bounds = false;
    std::optional<Variable> variable{};
    std::set<std::int64_t> seen{}, alone{};  // values; those that are recorded alone
    std::int64_t last = -1;
    int times = 0;   // that the last value came in a row
    int bounds = 0;  // that it was given
    int sums = 0;    // that were found, and then did not hold
    std::optional<Sum> sum{};
    bool is_proven = false, is_told = false;
    std::string exact_because{};  // empty: may vary
  };
  // Of each given input, the numbers of its axes' sizes; none: fixed.
  using Axes = std::vector<std::optional<size_t>>;
  using Values = std::vector<std::int64_t>;  // of each size; -1: not given

  void set_bounds(const SizeBounds& bounds, const std::map<std::string, size_t>& numbers);
  std::optional<Values> values_of(const std::vector<size_t>& inputs,
                                  const std::vector<Tensor>& tensors) const;
  void note(const Values& values);
  void note_value(Size& size, std::int64_t value);
  static bool holds(const Sum& sum, const Values& values, size_t size);
  std::optional<Sum> sum_of(size_t size) const;
  bool is_recorded_alone(const Values& values);
  bool may_vary(Size& size, std::int64_t value) const;
  void choose_inferred(const Values& values);
  std::vector<SizeSum> sums_in(const std::vector<size_t>& inputs, const Values& values) const;
  bool fits_memory(const std::vector<size_t>& inputs, const std::vector<Tensor>& tensors) const;
  Shape room_of(const Tensor& x, const Axes& axes) const;
  Tensor with_variables(const Tensor& x, const Axes& axes) const;

  std::vector<const ValueMessage*> declared_;
  std::vector<Size> sizes_;
  std::vector<Axes> axes_;       // by input
  std::vector<Values> history_;  // different ones of earlier calls
  std::set<Values> alone_;       // that were recorded alone
  std::vector<bool> vary_;       // by size, in the last call
  bool has_bounds_ = false, warns_ = true;
  double most_bytes_ = 0;       // that inputs of the bounds may take more than those given
  bool is_one_by_one_ = false;  // sizes are tried one after another
};

}  // namespace plugrad::onnx
