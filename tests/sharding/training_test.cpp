// Gradients and optimisers of sharded tensors.
#include "base/settings.h"
#include "sharding/meshes.h"
#include "sharding/trained.h"

namespace plugrad {
namespace {

TEST(ShardedTraining, AGradientLiesOnTheMeshOfItsTensor) {
  const Mesh mesh = two();
  const Tensor x = counting({4, 3}).shard(mesh, {"data"});
  Tensor w = counting({3, 2}).shard(mesh).realize();
  w.requires_grad_();
  const Tensor loss = x.matmul(w).square().sum();
  loss.backward();
  EXPECT_EQ(w.grad().device(), mesh.device());
  Tensor plain = counting({3, 2});
  plain.requires_grad_();
  const Tensor same = counting({4, 3}).matmul(plain).square().sum();
  same.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), plain.grad().to_vector<float>());
  EXPECT_EQ(loss.item<float>(), same.item<float>());
}

TEST(ShardedTraining, GradientsPassFromAMeshToADeviceAndBack) {
  const Tensor x = counting({5}), cut = x.shard(two(), {"data"});
  const Tensor of_device = gradient((cut * cut).sum(), {x})[0];
  EXPECT_EQ(of_device.device(), "CPU");
  EXPECT_EQ(of_device.to_vector<float>(), (x * 2).to_vector<float>());
  const Tensor of_mesh = gradient(cut.unshard().square().sum(), {cut})[0];
  EXPECT_EQ(of_mesh.device(), two().device());
  EXPECT_EQ(of_mesh.to_vector<float>(), (x * 2).to_vector<float>());
}

TEST(ShardedTraining, DataParallelStepsAreThoseOfOneDevice) {
  const auto train = [](bool is_sharded) {
    Tensor::manual_seed(3);
    nn::Linear first(6, 8), last(8, 3);
    const Mesh mesh = two();
    std::vector<Tensor> parameters = {first.weight, first.bias, last.weight, last.bias};
    if (is_sharded)
      for (Tensor* p : {&first.weight, &first.bias, &last.weight, &last.bias})
        *p = p->shard(mesh).realize().requires_grad_();
    parameters = {first.weight, first.bias, last.weight, last.bias};
    optim::Adam adam(parameters, {.lr = 0.01});
    std::vector<float> losses;
    for (int step = 0; step < 4; ++step) {
      Tensor x = counting({8, 6}, step * 0.1, 0.03), y = counting({8, 3}, 0.0, 0.1);
      if (is_sharded) {
        x = x.shard(mesh, {"data"});
        y = y.shard(mesh, {"data"});
      }
      adam.zero_grad();
      const Tensor loss = (last(first(x).relu()) - y).square().mean();
      loss.backward();
      adam.step();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  const std::vector<float> one = train(false), many = train(true);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], 1e-5F * std::abs(one[i]));
}

TEST(ShardedTraining, DeterministicStepsHaveEqualBitsOnAnyNumberOfPositions) {
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  const auto positions = [](size_t count) {
    return Mesh({{"data", static_cast<int64_t>(count)}}, std::vector<std::string>(count, "CPU"));
  };
  const std::vector<float> one = trained_on(positions(1));
  for (const size_t count : {2, 4, 8}) EXPECT_EQ(trained_on(positions(count)), one) << count;
}

TEST(ShardedTraining, DeterministicMeshesHaveOnePartADevice) {
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  const Mesh mesh = two();
  EXPECT_EQ(mesh.size(), 2);
  EXPECT_EQ(mesh.axes(), (std::vector<Mesh::Axis>{{"data", 2}}));
  for (const int64_t rows : {5, 1, 16}) {
    const Tensor x = counting({rows, 3}), cut = x.shard(mesh, {"data"});
    EXPECT_EQ(cut.shard_spec(), (ShardSpec{"data", ""}));
    EXPECT_EQ(cut.mesh(), mesh);
    const std::vector<Tensor> parts = cut.shards();
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].shape(), (Shape{rows / 2, 3}));
    EXPECT_EQ(from_shards(mesh, {"data"}, {rows, 3}, parts).to_vector<float>(),
              x.to_vector<float>());
  }
}

TEST(ShardedTraining, AJittedStepReplaysWithNewParts) {
  const Mesh mesh = two();
  Tensor w = counting({6, 3}, 0.1, 0.02).shard(mesh, {"data"}).realize();
  const auto step = jit([&](const Tensor& x) {
    const Tensor y = x.matmul(w);
    w.assign(w * 0.5);
    return y.sum();
  });
  std::vector<float> expected(18);
  Tensor plain = counting({6, 3}, 0.1, 0.02);
  for (int i = 0; i < 5; ++i) {
    const Tensor x = counting({4, 6}, i, 0.1);
    const float want = x.matmul(plain).sum().item<float>();
    plain.assign(plain * 0.5).realize();
    const Tensor got = step(x.shard(mesh, {"", "data"}));
    EXPECT_NEAR(got.item<float>(), want, 1e-5F * std::abs(want)) << i;
    EXPECT_EQ(w.to_vector<float>(), plain.to_vector<float>()) << i;
  }
  EXPECT_EQ(step.recordings(), 1u);
}

}  // namespace
}  // namespace plugrad
