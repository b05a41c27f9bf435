// Finds the matrices of a state and how tensor parallelism cuts each of them.
#include <algorithm>
#include <map>

#include "plugrad/nn/sharding.h"

namespace plugrad::nn {
namespace {

struct Matrix {
  std::string layer;   // the name of the weight without "weight": "blocks.0.up."
  std::string parent;  // "blocks.0."
  int64_t rows, columns;
  bool has_bias;
  enum class Cut : uint8_t { Unknown, Rows, Columns } cut = Cut::Unknown;
};

std::string parent_of(const std::string& layer) {
  if (layer.empty()) return {};
  const size_t dot = layer.rfind('.', layer.size() - 2);
  return dot == std::string::npos ? std::string() : layer.substr(0, dot + 1);
}

std::vector<Matrix> matrices_of(const StateDict& state) {
  constexpr std::string_view kWeight = "weight";
  std::vector<Matrix> found;
  for (const auto& [name, tensor] : state) {
    const bool is_weight = name == kWeight || name.ends_with(".weight");
    if (!is_weight || tensor.ndim() != 2) continue;
    const std::string layer = name.substr(0, name.size() - kWeight.size());
    const bool has_bias = std::ranges::any_of(
        state, [&](const auto& entry) { return entry.first == layer + "bias"; });
    found.push_back({layer, parent_of(layer), tensor.size(0), tensor.size(1), has_bias});
  }
  return found;
}

void cut_attention(std::vector<Matrix>& matrices) {
  std::map<std::string_view, Matrix*> by_layer;
  for (Matrix& matrix : matrices) by_layer[matrix.layer] = &matrix;
  for (Matrix& out : matrices) {
    if (out.layer != out.parent + "out_proj.") continue;
    const auto part = [&](const char* name) {
      const auto known = by_layer.find(out.parent + name);
      return known == by_layer.end() ? nullptr : known->second;
    };
    Matrix *const q = part("q_proj."), *const k = part("k_proj."), *const v = part("v_proj.");
    if (q == nullptr || k == nullptr || v == nullptr) continue;
    q->cut = k->cut = v->cut = Matrix::Cut::Rows;
    out.cut = Matrix::Cut::Columns;
  }
}

void cut_pairs(std::vector<Matrix>& matrices) {
  for (size_t i = 0; i + 1 < matrices.size(); ++i) {
    Matrix &first = matrices[i], &second = matrices[i + 1];
    const bool is_free = first.cut == Matrix::Cut::Unknown && second.cut == Matrix::Cut::Unknown;
    if (!is_free || first.parent != second.parent || first.rows != second.columns) continue;
    first.cut = Matrix::Cut::Rows;
    second.cut = Matrix::Cut::Columns;
  }
}

}  // namespace

std::vector<ShardRule> tensor_parallel_rules(const StateDict& state, std::string_view axis) {
  std::vector<Matrix> matrices = matrices_of(state);
  cut_attention(matrices);
  cut_pairs(matrices);
  std::vector<ShardRule> rules;
  for (const Matrix& matrix : matrices) {
    const bool by_columns = matrix.cut == Matrix::Cut::Columns;
    rules.push_back({matrix.layer + "weight", by_columns ? ShardSpec{"", axis} : ShardSpec{axis}});
    if (matrix.has_bias && !by_columns) rules.push_back({matrix.layer + "bias", ShardSpec{axis}});
  }
  return rules;
}

}  // namespace plugrad::nn
