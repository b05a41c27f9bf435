/// A module that applies layers in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// Calls its layers in order: modules, functions and lambdas of a Tensor. State is named by index:
///   nn::Sequential net(nn::Linear(784, 128), relu, nn::Linear(128, 10));
/// has "0.weight", "0.bias", "2.weight" and "2.bias". A copy has layers of its own.
class Sequential {
 public:
  /// A type-erased layer. Converts from the name of an overloaded function, such as gelu, and picks
  /// the overload of one Tensor.
  class Part {
   public:
    Part() {}  // no layer
    Part(Tensor (*function)(const Tensor&))
        : call(function), copy([function] { return Part(function); }) {}
    template <class Layer>
      requires(!std::is_same_v<Layer, Part>)
    Part(Layer layer);

    std::function<Tensor(const Tensor&)> call;
    std::function<void(StateVisitor&)> visit_fields;  // empty for a layer without state
    std::function<Part()> copy;                       // makes a Part with a copy of the layer
  };

  template <class... Layers>
  explicit Sequential(Layers... layers) {
    (add(std::move(layers)), ...);
  }
  // Overload for arguments with an overloaded function's name; add() allows more than 16 layers.
  explicit Sequential(Part a, Part b = {}, Part c = {}, Part d = {}, Part e = {}, Part f = {},
                      Part g = {}, Part h = {}, Part i = {}, Part j = {}, Part k = {}, Part l = {},
                      Part m = {}, Part n = {}, Part o = {}, Part p = {}) {
    for (Part* part : {&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l, &m, &n, &o, &p})
      if (part->call) parts_.push_back(std::move(*part));
  }
  Sequential(const Sequential& other) : parts_(copied(other)), copies_(other.copies_) {}
  Sequential(Sequential&&) noexcept = default;
  Sequential& operator=(const Sequential& other) { return *this = Sequential(other); }
  Sequential& operator=(Sequential&&) noexcept = default;
  ~Sequential() = default;
  template <class Layer>
  Sequential& add(Layer layer) {
    parts_.push_back(Part(std::move(layer)));
    return *this;
  }
  Sequential& add(Tensor (*function)(const Tensor&)) {
    parts_.push_back(Part(function));
    return *this;
  }

  Tensor operator()(const Tensor& x) const { return run(x, 0, parts_.size()); }
  /// Calls layers [begin, end).
  Tensor run(const Tensor& x, size_t begin, size_t end) const {
    Tensor y = x;
    for (size_t i = begin; i < end; ++i) y = parts_.at(i).call(y);
    return y;
  }
  size_t size() const { return parts_.size(); }

  void visit_fields(StateVisitor& visitor) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].visit_fields) visitor.field(std::to_string(i), parts_[i]);
  }

 private:
  static std::vector<Part> copied(const Sequential& other) {
    std::vector<Part> parts;
    for (const Part& part : other.parts_) parts.push_back(part.copy());
    return parts;
  }

  std::vector<Part> parts_;
  FieldCopies copies_{this};
};

template <class Layer>
  requires(!std::is_same_v<Layer, Sequential::Part>)
Sequential::Part::Part(Layer layer) {
  constexpr bool is_layer = std::is_invocable_r_v<Tensor, Layer&, const Tensor&>;
  static_assert(is_layer,
                "a layer of nn::Sequential takes one Tensor and returns one: a module with "
                "operator()(const Tensor&), a function or a lambda");
  if constexpr (is_layer) {
    auto shared = std::make_shared<Layer>(std::move(layer));
    call = [shared](const Tensor& x) { return std::invoke(*shared, x); };
    if constexpr (HasFields<Layer>)
      visit_fields = [shared](StateVisitor& visitor) { shared->visit_fields(visitor); };
    static_assert(std::is_copy_constructible_v<Layer>, "a layer of nn::Sequential can be copied");
    copy = [shared] { return Part(Layer(*shared)); };
  }
}

}  // namespace plugrad::nn
