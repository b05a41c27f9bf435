// Random graphs of views, elementwise ops and reductions: every plan computes its graph's values.
#include "check.h"
#include "ir/text/printer.h"
#include "ir/verifier.h"

namespace plugrad::test {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  std::vector<Id> make(Tensors& t) {
    std::vector<Id> pool;
    for (int i = 0; i < 3; ++i) pool.push_back(t.buffer(random_shape()));
    for (int i = 0; i < 14; ++i) pool.push_back(step(t, pool[pick(pool.size())], pool));
    return {pool.back(), pool[pick(pool.size())], pool[pool.size() / 2]};
  }

 private:
  size_t pick(size_t below) { return random_() % below; }
  Dims random_shape() {
    static const Dims shapes[] = {{2, 3, 4}, {4, 6}, {1, 5}, {12}, {3, 1, 2}, {2, 2, 2, 3}};
    return shapes[pick(std::size(shapes))];
  }

  Id step(Tensors& t, Id x, const std::vector<Id>& pool) {
    const Dims s = t.shape(x);
    switch (pick(10)) {
      case 0:
        return t.reshape(x, {element_count(s)});
      case 1:
        return s.size() < 2 ? t.reshape(x, {1, element_count(s)}) : t.transpose(x);
      case 2:
        return padded(t, x, s);
      case 3:
        return cut(t, x, s);
      case 4:
        return t.flip(x, Dims(s.size(), 1));
      case 5:
        return t.reduce(pick(3) == 0 ? Op::Max : Op::Add, x,
                        {static_cast<int64_t>(pick(s.size()))});
      case 6:
        return repeated(t, x, s);
      case 7:
        return t.relu(t.plus(x, -1));
      case 8:
        return t.contiguous(x);
      default:
        return joined(t, x, s, pool);
    }
  }
  Id padded(Tensors& t, Id x, const Dims& s) {
    Dims pads;
    for (size_t i = 0; i < 2 * s.size(); ++i) pads.push_back(static_cast<int64_t>(pick(2)));
    return element_count(s) > 200 ? x : t.pad(x, pads);
  }
  Id cut(Tensors& t, Id x, const Dims& s) {
    Dims bounds;
    for (int64_t size : s) {
      const int64_t begin = static_cast<int64_t>(pick(static_cast<size_t>(size)));
      bounds.push_back(begin);
      bounds.push_back(begin + 1 + static_cast<int64_t>(pick(static_cast<size_t>(size - begin))));
    }
    return t.shrink(x, bounds);
  }
  Id repeated(Tensors& t, Id x, const Dims& s) {
    Dims one = s, many = s;
    const size_t at = pick(s.size() + 1);
    one.insert(one.begin() + static_cast<int64_t>(at), 1);
    many.insert(many.begin() + static_cast<int64_t>(at), 3);
    return element_count(s) > 100 || s.size() > 4 ? x : t.expand(t.reshape(x, one), many);
  }
  Id joined(Tensors& t, Id x, const Dims& s, const std::vector<Id>& pool) {
    for (size_t tries = 0; tries < 8; ++tries) {
      const Id y = pool[pick(pool.size())];
      if (t.shape(y) == s) return pick(2) == 0 ? t.add(x, y) : t.sub(t.times(x, 0.5), y);
      if (element_count(t.shape(y)) == element_count(s)) return t.add(x, t.reshape(y, s));
    }
    return t.mul(x, x);
  }

  std::mt19937 random_;
};

TEST(RandomGraphs, ComputeTheSameInEveryLayout) {
  for (uint32_t seed = 1; seed < 400; ++seed) {
    Tensors t;
    const auto roots = RandomGraph(seed).make(t);
    schedule::Options options;
    options.layout_seed = seed;
    options.max_params = seed % 5 == 0 ? 3 : 64;
    const auto plan = check(t, roots, options);
    for (const auto& ast : plan.asts) verify_kernel_ast(const_cast<Graph&>(ast->graph), ast->sink);
    if (::testing::Test::HasFailure())
      FAIL() << "seed " << seed << "\n" << print(t.g, roots) << to_string(plan);
  }
}

TEST(RandomGraphs, ComputeWhatTheyMean) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    Tensors t;
    const auto roots = RandomGraph(seed).make(t);
    schedule::Options options;
    options.max_params = seed % 3 == 0 ? 3 : 64;
    if (seed % 4 == 0) options.max_buffer_bytes = 512;
    const auto plan = check(t, roots, options);
    uint64_t largest = 512;
    for (const auto& buffer : plan.buffers)
      largest = std::max(
          largest,
          (static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype) + 255) / 256 * 256);
    for (const auto& arena : plan.arenas)
      EXPECT_LE(arena.size_bytes, std::max(options.max_buffer_bytes, largest));
    for (const auto& step : plan.steps) EXPECT_LE(step.buffers.size(), options.max_params);
    for (const auto& ast : plan.asts) verify_kernel_ast(const_cast<Graph&>(ast->graph), ast->sink);
    if (::testing::Test::HasFailure())
      FAIL() << "seed " << seed << "\n" << print(t.g, roots) << to_string(plan);
  }
}

}  // namespace
}  // namespace plugrad::test
