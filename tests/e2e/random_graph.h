// Random small tensor graphs with known error bounds, for comparing devices with the evaluator.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "engine/session.h"

namespace plugrad::e2e {

/// Facts about every element of a node.
struct Known {
  Id node = kNoId;
  double bound = 0;  // maximum |value|; unused for integers
  double grid = 0;   // every value is a multiple of this power of two; 0: unknown
  double error = 0;  // allowed difference of a device from the exact value
};

/// Builds nodes in the session's graph. The same seed gives the same graph on every device. Values
/// pass only through ops that preserve the bound: no discontinuous op is applied to a value with an
/// error.
class RandomGraph {
 public:
  RandomGraph(engine::Session& session, uint32_t device, uint64_t seed);

  /// Chooses roots among the nodes. Call under a Session::Lock.
  std::vector<Known> build(int ops);

 private:
  using Shape = std::vector<int64_t>;
  int64_t pick(int64_t low, int64_t high);  // both inclusive
  bool chance(int percent) { return pick(1, 100) <= percent; }
  const Known& any();
  std::optional<Known> any_like(const Known& x);
  Shape shape(const Known& x);
  DType dtype(const Known& x) const { return graph_[x.node].dtype; }
  bool is_real(const Known& x) const { return is_float(dtype(x)); }

  Known leaf();
  std::optional<Known> grow();
  std::optional<Known> unary();
  std::optional<Known> smooth(const Known& x);
  std::optional<Known> binary();
  std::optional<Known> int_binary(const Known& a, const Known& b);
  std::optional<Known> compare();
  std::optional<Known> select();
  std::optional<Known> cast();
  std::optional<Known> move();
  std::optional<Known> reduce();
  Known with_constant(const Known& x);

  Known sum(const Known& a, const Known& b);
  Known product(const Known& a, const Known& b);
  Known rounded(Known x);
  Known moved(const Known& x, Op op, std::span<const int64_t> list);

  engine::Session& session_;
  Graph& graph_;
  const uint32_t device_;
  std::mt19937_64 random_;
  std::vector<Known> made_;
};

}  // namespace plugrad::e2e
