// Builds the nodes that one device computes of its parts.
#pragma once

#include <span>
#include <vector>

#include "ir/facts.h"
#include "sharding/spec.h"

namespace plugrad::sharding {

class LocalBuilder {
 public:
  LocalBuilder(Graph& graph, Shapes& shapes, Devices& devices)
      : graph_(graph), shapes_(shapes), devices_(devices) {}

  std::vector<int64_t> shape(Id x) {
    const auto sizes = shapes_[x];
    return {sizes.begin(), sizes.end()};
  }
  Id move(Op op, Id x, std::span<const int64_t> list) {
    return graph_.add(op, graph_[x].dtype, {x}, graph_.list(list));
  }
  Id reshape(Id x, std::span<const int64_t> to);
  Id flat(Id x);
  /// The indices `part` of dimension d.
  Id slice(Id x, size_t d, Part part);
  /// The parts one after another along dimension d. Selects each part by its indices: a sum of
  /// padded parts would turn -0 into +0.
  Id join(std::span<const Id> parts, size_t d);
  /// The same of `count` parts of one shape, whose elements follow each other in x.
  Id join_equal(Id x, size_t count, std::span<const int64_t> part, size_t d);
  /// The `count` equal parts of x along dimension d, flat, one after another.
  Id cut_equal(Id x, size_t count, size_t d);
  /// `x` on a device; itself if it is there, or is computed of constants alone.
  Id on(Id x, uint32_t device);
  /// The reduction of the terms as a balanced tree in their order: ((0, 1), (2, 3)).
  Id tree(Op reduction, std::span<const Id> terms);
  /// The identity of a reduction in every element.
  Id identity(Op reduction, DType dtype, std::span<const int64_t> shape);

  Graph& graph() { return graph_; }
  uint32_t device(Id x) { return devices_[x]; }

 private:
  Id counter(std::span<const int64_t> shape, size_t d);
  Graph& graph_;
  Shapes& shapes_;
  Devices& devices_;
};

}  // namespace plugrad::sharding
