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

/// Without bounds, the first few combinations of sizes are recorded alone. Then one recording serves
/// all values, up to the next power of two, of the size that has had the most; the other sizes are
/// recorded for each value. Sizes with bounds vary from the first call on, and no others do.
class OpenSizes {
 public:
  /// Errors: User for bounds of a name that is no open size, bounds that Variable refuses, and two
  /// bounds of one size, which has the name "input.axis" besides its own.
  OpenSizes(const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds);

  /// The tensors of these inputs with variable sizes, copied through the host; nothing if the call
  /// is recorded for its own sizes. Errors: User for a size out of its bounds.
  std::optional<std::vector<Tensor>> varied(const std::vector<size_t>& inputs,
                                            const std::vector<Tensor>& tensors);
  /// Two axes of these inputs that share a size but differ in it, for errors; empty if there are
  /// none. Some exporters name sizes alike that are not, so a model may compute with it.
  std::string contradiction(const std::vector<size_t>& inputs,
                            const std::vector<Tensor>& tensors) const;
  bool has_bounds() const { return has_bounds_; }
  /// Whether a size varies in the last call although the caller gave no bounds.
  bool are_inferred() const { return are_inferred_; }
  /// The model cannot be recorded with variable sizes.
  void give_up() { is_given_up_ = true; }

 private:
  struct Size {
    std::string name;
    bool has_bounds = false;
    std::optional<Variable> variable{};
    std::set<std::int64_t> seen{};
  };
  // Of each given input, the numbers of its axes' sizes; none: fixed.
  using Axes = std::vector<std::optional<size_t>>;
  using Values = std::vector<std::int64_t>;  // of each size; -1: not given

  void set_bounds(const SizeBounds& bounds, const std::map<std::string, size_t>& numbers);
  std::optional<Values> values_of(const std::vector<size_t>& inputs,
                                  const std::vector<Tensor>& tensors) const;
  bool is_recorded_alone(const Values& values);
  std::optional<size_t> varied_most(const Values& values);
  Tensor with_variables(const Tensor& x, const Axes& axes, const std::vector<bool>& vary) const;

  std::vector<const ValueMessage*> declared_;
  std::vector<Size> sizes_;
  std::vector<Axes> axes_;  // by input
  std::set<Values> alone_;  // the combinations that were recorded alone
  bool has_bounds_ = false, is_given_up_ = false, are_inferred_ = false;
};

}  // namespace plugrad::onnx
