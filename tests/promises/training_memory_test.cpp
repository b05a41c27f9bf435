// Training uses constant memory, and continues after memory runs out.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

struct Model {
  Tensor weight = Tensor::full({16, 4}, 0.1).contiguous().realize();
  Model() { weight.requires_grad_(); }

  Tensor loss(int64_t rows) const {
    const Tensor x = Tensor::full({rows, 16}, 0.5).contiguous();
    return (matmul(x, weight) - 1).square().mean();
  }
  double step(int64_t rows) {
    weight.zero_grad();
    const Tensor error = loss(rows);
    error.backward();
    weight -= weight.grad() * 0.1;
    Tensor::realize(std::vector{weight, error});
    return error.item<double>();
  }
};

TEST(TrainingMemory, ten_thousand_steps_hold_it_flat) {
  Model model;
  engine::Session& session = engine::Session::current();
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) model.step(8);
    session.collect();
    return session.statistics();
  };
  const auto early = run(1000), late = run(9000);
  EXPECT_EQ(late.graph_nodes, early.graph_nodes);
  EXPECT_EQ(late.value_bytes, early.value_bytes);
}

TEST(TrainingMemory, dropped_arrays_of_the_host_do_not_pile_up) {
  constexpr int64_t kBytes = 1 << 20;
  std::vector<std::weak_ptr<const void>> owners;
  for (int i = 0; i < 200; ++i) {
    auto array = std::make_shared<std::vector<std::byte>>(kBytes);
    const std::span<const std::byte> bytes(*array);
    owners.emplace_back(array);
    const Tensor dropped = Tensor::from_bytes(bytes, {kBytes}, DType::U8, "", std::move(array));
  }
  EXPECT_LE(std::ranges::count_if(owners, [](const auto& each) { return !each.expired(); }), 3);
}

TEST(TrainingMemory, many_live_tensors_do_not_slow_the_others_down) {
  engine::Session& session = engine::Session::current();
  std::vector<Tensor> live;
  for (int i = 0; i < 3000; ++i) live.push_back(Tensor::from({float(i), 1.0F}).realize());
  const uint64_t before = session.statistics().collections;
  for (int i = 0; i < 500; ++i)
    EXPECT_EQ((live[static_cast<size_t>(i)] + 1).to_vector<float>()[1], 2);
  // Each visits all tensors, so that one a call would take time proportional to their number.
  EXPECT_LE(session.statistics().collections - before, 10);
  const Tensor big = Tensor::full({1 << 20}, 1.0).contiguous().realize();
  const uint64_t used = session.statistics().value_bytes;
  for (int i = 0; i < 20; ++i) (big + i).realize();
  EXPECT_LE(session.statistics().value_bytes, used + (3u << 22)) << "large values are freed soon";
}

TEST(TrainingMemory, running_out_raises_and_training_goes_on_when_memory_is_freed) {
  Model model;
  const double before = model.step(8);
  engine::Session& session = engine::Session::current();
  session.collect();
  std::optional<Tensor> hoard = Tensor::full({1 << 18}, 1.0).contiguous().realize();  // 1 MiB
  const uint64_t used = session.statistics().value_bytes;
  const SettingScope tight([&](Settings& s) { s.memory_limit_bytes = used + (512 << 10); });
  EXPECT_THROW(model.step(1 << 14), OutOfMemoryError);  // 1 MiB of samples
  hoard.reset();
  EXPECT_LT(model.step(8), before) << "the update that found no memory is computed now";
  EXPECT_NO_THROW(model.step(1 << 13)) << "what was freed serves a larger batch";
}

}  // namespace
}  // namespace plugrad
