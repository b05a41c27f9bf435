// Every public tensor function replays, evaluated and trained, at sizes from one element up:
// tools/check/surface.py finds functions without a case. PLUGRAD_TEST_REPLAY_SIZES=all adds larger
// sizes.
#include <cstdlib>

#include "jit/patterns/replay_case.h"
#include "jit/surface/families.h"

using namespace plugrad;

namespace {

std::vector<Shape> sizes(const std::string& family) {
  std::vector<Shape> all = {{1, 1}, {6, 40}};
  // Sizes from which these families use separate kernels.
  if (family == "running totals" || family == "orders" || family == "elements at places" ||
      family == "elements put at places")
    all.push_back({3, 600});
  const char* more = std::getenv("PLUGRAD_TEST_REPLAY_SIZES");
  if (more != nullptr && std::string(more) == "all") {
    all.push_back({1, 257});
    all.push_back({32, 512});
  }
  return all;
}

std::function<Tensors(int)> arguments(const Shape& shape) {
  return [shape](int call) { return Tensors{numbers(shape, call), places(shape, shape[1], call)}; };
}

/// All members of a family in one function.
ReplayCase evaluated(const Family& family, const Shape& shape) {
  return function_case(
      family.name + " " + to_string(shape),
      [family](const Tensors& in) {
        Tensors results;
        for (const Member& member : family.members)
          for (Tensor& result : member.function(in[0], in[1])) results.push_back(result);
        return results;
      },
      arguments(shape));
}

/// A step for each member against the gradient of the sum of its first result.
ReplayCase trained(const Family& family, const Shape& shape) {
  return {family.name + " trained " + to_string(shape),
          [family, shape] {
            const auto w = kept<Tensor>(Tensor::uniform(shape, 0.9, 1.1).realize());
            w->requires_grad_();
            return [w, family](const Tensors& in) {
              Tensors results;
              Tensor step = w->detach();
              for (const Member& member : family.members) {
                if (!member.has_gradient) continue;
                const Tensor y = member.function(in[0] * *w, in[1])[0];
                results.push_back(gradient((y * y).sum(), {*w})[0]);
                step = step - where(results.back().isfinite(), results.back() * 1e-7, 0);
              }
              w->assign(step);
              results.push_back(*w);
              return results;
            };
          },
          arguments(shape)};
}

std::vector<ReplayCase> surface(const std::vector<Family>& families) {
  std::vector<ReplayCase> all;
  for (const Family& family : families)
    for (const Shape& shape : sizes(family.name)) {
      all.push_back(evaluated(family, shape));
      all.push_back(trained(family, shape));
    }
  return all;
}

class Surface : public testing::TestWithParam<ReplayCase> {};

TEST_P(Surface, Replays) {
  expect_replays(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Elementwise, Surface, testing::ValuesIn(surface(elementwise_families())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Shaping, Surface, testing::ValuesIn(surface(shaping_families())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Data, Surface, testing::ValuesIn(surface(data_families())), name_of_case);
INSTANTIATE_TEST_SUITE_P(Modules, Surface, testing::ValuesIn(surface(module_families())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Network, Surface, testing::ValuesIn(surface(network_families())),
                         name_of_case);

}  // namespace
