// Helpers of the tests of models with open sizes.
#pragma once

#include <cctype>

#include "engine/session.h"
#include "plugrad/onnx.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {

inline Model loaded(const Message& graph, const SizeBounds& bounds = {}) {
  const std::string bytes = model_of_bytes(graph);
  return Model::from_bytes(std::as_bytes(std::span(bytes)), {}, bounds);
}

/// A float tensor's declaration; sizes are numbers or names.
inline Message named_value(std::string_view name, const std::vector<std::string>& sizes) {
  Message dims;
  for (const std::string& size : sizes) {
    const bool is_number = std::isdigit(size.front()) != 0;
    dims.message(1, is_number ? Message().integer(1, std::stoll(size)) : Message().text(2, size));
  }
  return value(name, Message().message(1, Message().integer(1, 1).message(2, dims)));
}

inline uint64_t plans() {
  const engine::Statistics seen = engine::Session::current().statistics();
  return seen.plans_made + seen.plan_cache_hits;
}

}  // namespace plugrad::onnx
