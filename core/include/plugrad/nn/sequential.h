/// Layers one after the other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// Calls its parts in order: modules, functions and lambdas of a Tensor. State is named by place:
///   nn::Sequential net(nn::Linear(784, 128), relu, nn::Linear(128, 10));
/// has "0.weight", "0.bias", "2.weight" and "2.bias". A copy shares the layers.
class Sequential {
 public:
  template <class... Layers>
  explicit Sequential(Layers... layers) {
    (add(std::move(layers)), ...);
  }
  template <class Layer>
  Sequential& add(Layer layer) {
    auto shared = std::make_shared<Layer>(std::move(layer));
    Part part{[shared](const Tensor& x) { return std::invoke(*shared, x); }, {}};
    if constexpr (requires(StateVisitor& visitor) { shared->visit_fields(visitor); })
      part.visit_fields = [shared](StateVisitor& visitor) { shared->visit_fields(visitor); };
    parts_.push_back(std::move(part));
    return *this;
  }

  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const Part& part : parts_) y = part.call(y);
    return y;
  }
  size_t size() const { return parts_.size(); }

  void visit_fields(StateVisitor& visitor) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].visit_fields) visitor.field(std::to_string(i), parts_[i]);
  }

 private:
  struct Part {
    std::function<Tensor(const Tensor&)> call;
    std::function<void(StateVisitor&)> visit_fields;  // empty for what has no state
  };
  std::vector<Part> parts_;
};

}  // namespace plugrad::nn
