// Shrinks a failing program while it still fails.
#include "programs/operations.h"
#include "programs/perform.h"
#include "programs/run.h"

namespace plugrad::programs {
namespace {

constexpr int kMostRuns = 400;

// A leaf of the same shape and dtype instead of the step's result.
std::optional<Step> as_leaf(const Program& program, size_t at) {
  World world(true);
  for (size_t i = 0; i <= at; ++i) {
    Step step = program.steps[i];
    perform(world, step, nullptr);
  }
  const int id = program.steps[at].id;
  const auto found = world.slots.find({id, 0});
  if (found == world.slots.end() || world.slots.contains({id, 1})) return std::nullopt;
  const Tensor& tensor = *found->second.tensor;
  const auto dtype = static_cast<int64_t>(tensor.dtype());
  Step leaf{id, &operation("given_leaf"), {}, {dtype, tensor.ndim()}};
  for (int64_t size : tensor.shape()) leaf.numbers.push_back(size);
  leaf.numbers.push_back(100);  // no special values
  leaf.numbers.push_back(7);
  return leaf;
}

class Shrinker {
 public:
  explicit Shrinker(Program program) : best_(std::move(program)) {}

  Program run() {
    while (pass() && runs_ < kMostRuns) {
    }
    return best_;
  }

 private:
  bool keep_if_failing(Program candidate) {
    if (++runs_ > kMostRuns || !programs::run(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool pass() {
    bool smaller = false;
    for (size_t i = best_.steps.size(); i-- > 0;) {
      Program without = best_;
      without.steps.erase(without.steps.begin() + static_cast<int64_t>(i));
      if (keep_if_failing(without)) {
        smaller = true;
        continue;
      }
      if (best_.steps[i].inputs.empty()) continue;
      if (const auto leaf = as_leaf(best_, i)) {
        Program replaced = best_;
        replaced.steps[i] = *leaf;
        smaller = keep_if_failing(replaced) || smaller;
      }
    }
    for (bool Program::* flag : {&Program::noopt, &Program::together}) {
      Program plain = best_;
      plain.*flag = false;
      if (best_.*flag) smaller = keep_if_failing(plain) || smaller;
    }
    return smaller;
  }

  Program best_;
  int runs_ = 0;
};

}  // namespace

Program shrink(const Program& program) {
  return Shrinker(program).run();
}

}  // namespace plugrad::programs
