// The operators by subject. Source of their meaning: the operator schemas of ONNX 1.23 at onnx.ai.
#pragma once

#include <limits>
#include <span>

#include "onnx/import/call.h"

namespace plugrad::onnx {

using Values = std::vector<Value>;
using Integers = std::vector<int64_t>;

/// The steps of a loop that become part of the surrounding graph, where they may fuse; a longer
/// loop is recorded as one (plugrad/scan.h), so that its kernels are planned and compiled once.
inline constexpr int64_t kMostUnrolled = 4;

inline constexpr std::string_view kMachineLearning = "ai.onnx.ml", kMicrosoft = "com.microsoft",
                                  kBlockedChannels = "com.microsoft.nchwc";
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An operator that is a method of its input.
template <Tensor (Tensor::*method)() const>
std::vector<Value> unary(Call& call) {
  return {(call[0].*method)()};
}

std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> activation_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> constant_operators();
std::span<const OperatorRow> network_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> index_operators();
std::span<const OperatorRow> quantised_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> training_operators();
std::span<const OperatorRow> tree_operators();
std::span<const OperatorRow> unique_operators();
std::span<const OperatorRow> linear_operators();
std::span<const OperatorRow> support_vector_operators();
std::span<const OperatorRow> sampling_operators();
std::span<const OperatorRow> region_operators();
std::span<const OperatorRow> microsoft_attention_operators();
std::span<const OperatorRow> blocked_operators();
std::span<const OperatorRow> microsoft_fused_operators();
std::span<const OperatorRow> tokenizer_operators();
std::span<const OperatorRow> loss_operators();
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> linear_attention_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> cast_operators();
std::span<const OperatorRow> random_operators();
std::span<const OperatorRow> string_operators();
std::span<const OperatorRow> vocabulary_operators();

}  // namespace plugrad::onnx
