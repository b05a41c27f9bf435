#include "onnx/ops/tables.h"

#include <map>
#include <utility>

namespace plugrad::onnx {

const OperatorRows& all_operators() {
  static const OperatorRows kRows = [] {
    OperatorRows rows;
    for (const auto& table : {elementwise_operators(),
                              activation_operators(),
                              movement_operators(),
                              reduction_operators(),
                              constant_operators(),
                              network_operators(),
                              pooling_operators(),
                              index_operators(),
                              quantised_operators(),
                              recurrent_operators(),
                              control_operators(),
                              resize_operators(),
                              loss_operators(),
                              attention_operators(),
                              linear_attention_operators(),
                              microsoft_attention_operators(),
                              microsoft_fused_operators(),
                              blocked_operators(),
                              tokenizer_operators(),
                              sampling_operators(),
                              region_operators(),
                              signal_operators(),
                              training_operators(),
                              unique_operators(),
                              linear_operators(),
                              tree_operators(),
                              support_vector_operators(),
                              sequence_operators(),
                              cast_operators(),
                              random_operators(),
                              string_operators(),
                              vocabulary_operators()})
      for (const OperatorRow& row : table) rows.emplace(std::pair(row.domain, row.name), &row);
    return rows;
  }();
  return kRows;
}

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  const auto at = all_operators().find({domain, name});
  return at == all_operators().end() ? nullptr : at->second;
}

}  // namespace plugrad::onnx
