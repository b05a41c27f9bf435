// Remembers what composed functions record: see engine/recording/recorded_nodes.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

enum class Operands : uint8_t {
  Any,     ///< the function sees nothing but their shapes and dtypes
  Stored,  ///< it also sees how an operand was computed: copies are made for stored ones alone
};

/// A call of a function whose nodes follow from its name, its options and its operands' shapes and
/// dtypes, and which reads no values.
class RememberedCall {
 public:
  /// `function` and `operands` must outlive the call.
  RememberedCall(std::string_view function, std::span<const int64_t> options,
                 std::span<const Tensor* const> operands, Operands kind);
  /// The results of a call like it that was remembered, for these operands; empty if there is none.
  std::vector<Tensor> results() const;
  /// To be called with the results of a call for which results() was empty.
  void remember(std::span<const Tensor* const> results) const;

 private:
  std::string_view function_;
  std::span<const Tensor* const> operands_;
  bool is_ordinary_ = false;  // nothing else decides what is recorded, e.g. a mesh or a jitted call
  Hash128 key_;
};

/// make(), or a copy of what it recorded before.
template <class Make>
Tensor remembered(std::string_view function, std::span<const int64_t> options,
                  std::span<const Tensor* const> operands, Operands kind, const Make& make) {
  const RememberedCall call(function, options, operands, kind);
  if (std::vector<Tensor> known = call.results(); !known.empty()) return std::move(known[0]);
  Tensor made = make();
  const Tensor* const results[] = {&made};
  call.remember(results);
  return made;
}

/// The same for a function with two results.
template <class Make>
std::pair<Tensor, Tensor> remembered_pair(std::string_view function,
                                          std::span<const int64_t> options,
                                          std::span<const Tensor* const> operands, Operands kind,
                                          const Make& make) {
  const RememberedCall call(function, options, operands, kind);
  if (std::vector<Tensor> known = call.results(); !known.empty())
    return {std::move(known[0]), std::move(known[1])};
  std::pair<Tensor, Tensor> made = make();
  const Tensor* const results[] = {&made.first, &made.second};
  call.remember(results);
  return made;
}

}  // namespace plugrad::tensor
