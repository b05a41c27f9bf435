// Optimisers whose state is cut over a mesh against the same optimisers on one device.
#include <functional>

#include "sharding/meshes.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

Mesh on_cpu(bool is_square) {
  return is_square ? Mesh({{"data", 2}, {"model", 2}}, {"CPU", "CPU", "CPU", "CPU"})
                   : Mesh({{"data", 2}}, {"CPU", "CPU"});
}

struct OptimNet {
  nn::Linear hidden{5, 7}, out{7, 3};
  PLUGRAD_FIELDS(hidden, out)
  Tensor operator()(const Tensor& x) const { return out(hidden(x).tanh()); }
};

struct Run {
  std::vector<float> losses, parameters;
};

using StatePlace = std::function<void(OptimNet&)>;

template <class Optimizer, class Options, class Shard>
Run trained(const Options& options, const Mesh* mesh, const StatePlace& place, const Shard& shard) {
  Tensor::manual_seed(11);
  OptimNet net;
  place(net);
  std::vector<Tensor> parameters = nn::parameters(net);
  if constexpr (std::is_same_v<Optimizer, optim::Muon>)
    parameters = {net.hidden.weight, net.out.weight};
  Optimizer optimizer(parameters, options);
  Run run;
  for (int step = 0; step < 4; ++step) {
    shard(optimizer, step);
    Tensor x = counting({9, 5}, 0.1 * step, 0.02), y = counting({9, 3}, -1.0, 0.07);
    if (mesh != nullptr) {
      x = x.shard(*mesh, {"data"});
      y = y.shard(*mesh, {"data"});
    }
    optimizer.zero_grad();
    const Tensor loss = (net(x) - y).square().mean();
    loss.backward();
    optim::clip_grad_norm(optimizer.parameters(), 0.25);
    optimizer.step();
    run.losses.push_back(loss.item<float>());
  }
  for (const Tensor& p : optimizer.parameters())
    for (const float value : p.to_vector<float>()) run.parameters.push_back(value);
  return run;
}

void expect_near(const Run& actual, const Run& expected, const std::string& what) {
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-5F * expected.losses[i]) << what;
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_NEAR(actual.parameters[i], expected.parameters[i], 2e-5F) << what << ", value " << i;
}

/// State as the parameters lie; cut before the first step; cut between steps; by rules of names.
template <class Optimizer, class Options>
void expect_equal_everywhere(const std::string& name, const Options& options) {
  const auto stay = [](auto&, int) {};
  const Run expected = trained<Optimizer>(options, nullptr, [](OptimNet&) {}, stay);
  for (const bool is_square : {false, true}) {
    const Mesh mesh = on_cpu(is_square);
    const StatePlace whole = [&](OptimNet& net) { nn::data_parallel(net, mesh); };
    const StatePlace cut = [&](OptimNet& net) {
      nn::shard(net, mesh, nn::tensor_parallel(net, "model"));
    };
    const auto at = [](int wanted) {
      return [wanted](auto& optimizer, int step) {
        if (step == wanted) optimizer.shard_state("data");
      };
    };
    const std::string where = name + " on " + mesh.device();
    expect_near(trained<Optimizer>(options, &mesh, whole, stay), expected, where);
    expect_near(trained<Optimizer>(options, &mesh, whole, at(0)), expected, where + ", cut first");
    expect_near(trained<Optimizer>(options, &mesh, whole, at(2)), expected, where + ", cut later");
    if (is_square)
      expect_near(trained<Optimizer>(options, &mesh, cut, at(0)), expected, where + ", of parts");
  }
}

TEST(ShardedOptimizers, SGD) {
  expect_equal_everywhere<optim::SGD>("SGD", optim::SGDOptions{.lr = 0.1});
  expect_equal_everywhere<optim::SGD>(
      "SGD with momentum",
      optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01});
}

TEST(ShardedOptimizers, Adam) {
  expect_equal_everywhere<optim::Adam>("Adam", optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1});
}

TEST(ShardedOptimizers, AdamW) {
  expect_equal_everywhere<optim::AdamW>("AdamW",
                                        optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1});
}

TEST(ShardedOptimizers, LAMB) {
  expect_equal_everywhere<optim::LAMB>("LAMB", optim::LAMBOptions{.lr = 0.01, .weight_decay = 0.1});
}

TEST(ShardedOptimizers, Muon) {
  expect_equal_everywhere<optim::Muon>("Muon", optim::MuonOptions{.lr = 0.01});
}

TEST(ShardedOptimizers, AStateLiesAsItsParameterUntilItIsCut) {
  const Mesh mesh = on_cpu(true);
  OptimNet net;
  nn::shard(net, mesh, nn::tensor_parallel(net, "model"));
  optim::Adam adam(nn::parameters(net));
  const auto spec_of = [&](const std::string& wanted) {
    for (const auto& [name, tensor] : nn::state_dict(adam))
      if (name == wanted) return tensor.shard_spec().to_string();
    return "no " + wanted;
  };
  EXPECT_EQ(spec_of("mean.0"), "[model, -]");
  EXPECT_EQ(spec_of("variance.2"), "[-, model]");
  adam.shard_state("data");
  EXPECT_EQ(spec_of("mean.0"), "[model, data]");
  EXPECT_EQ(spec_of("mean.1"), "[model]");
  EXPECT_EQ(spec_of("variance.2"), "[data, model]");
  EXPECT_EQ(spec_of("variance.3"), "[data]");
  counting({2, 5}).shard(mesh, {"data"});
  net(counting({2, 5}).shard(mesh, {"data"})).sum().backward();
  adam.step();
  EXPECT_EQ(spec_of("mean.0"), "[model, data]");
  EXPECT_EQ(net.hidden.weight.shard_spec().to_string(), "[model, -]");
}

TEST(ShardedOptimizers, StateIsCutByRulesOfNames) {
  const Mesh mesh = on_cpu(false);
  OptimNet net;
  nn::data_parallel(net, mesh);
  optim::Adam adam(nn::parameters(net));
  nn::shard(adam, mesh, {{"mean.*", {"data"}}, {"variance.0", {"", "data"}}});
  net(counting({2, 5}).shard(mesh, {"data"})).sum().backward();
  adam.step();
  EXPECT_EQ(nn::state_dict(adam)[0].second.shard_spec().to_string(), "[data, -]");
  EXPECT_EQ(nn::state_dict(adam)[4].second.shard_spec().to_string(), "[-, data]");
}

auto jitted_step(OptimNet& net, optim::Adam& adam) {
  return jit([&net, &adam](const Tensor& x) {
    adam.zero_grad();
    const Tensor loss = net(x).square().sum();
    loss.backward();
    adam.step();
    return loss;
  });
}

TEST(ShardedOptimizers, AJittedStepIsRecordedOnce) {
  const Mesh mesh = on_cpu(false);
  const auto train = [&](bool is_sharded) {
    Tensor::manual_seed(2);
    OptimNet net;
    if (is_sharded) nn::data_parallel(net, mesh);
    optim::Adam adam(nn::parameters(net), {.lr = 0.01});
    if (is_sharded) adam.shard_state("data");
    const auto step = jitted_step(net, adam);
    std::vector<float> losses;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = counting({6, 5}, 0.3 * i, 0.01);
      losses.push_back(step(is_sharded ? x.shard(mesh, {"data"}) : x).template item<float>());
    }
    EXPECT_EQ(step.recordings(), 1u);
    return losses;
  };
  const std::vector<float> one = train(false), two = train(true);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-5F * one[i]);
}

// A replay of the old recording would read other parts than it knows.
TEST(ShardedOptimizers, AJittedStepIsRecordedAgainAfterTensorsWereCut) {
  const Mesh mesh = on_cpu(false);
  const auto train = [&](const std::function<void(OptimNet&, optim::Adam&)>& change) {
    Tensor::manual_seed(2);
    OptimNet net;
    nn::data_parallel(net, mesh);
    optim::Adam adam(nn::parameters(net), {.lr = 0.01});
    const auto step = jitted_step(net, adam);
    std::vector<float> losses;
    for (int i = 0; i < 8; ++i) {
      if (i == 4) change(net, adam);
      losses.push_back(step(counting({6, 5}, 0.3 * i, 0.01).shard(mesh, {"data"})).item<float>());
    }
    return losses;
  };
  const std::vector<float> kept = train([](OptimNet&, optim::Adam&) {});
  const auto expect_same = [&](const std::vector<float>& losses) {
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(losses[i], kept[i], 1e-5F * kept[i]) << i;
  };
  expect_same(train([](OptimNet&, optim::Adam& adam) { adam.shard_state("data"); }));
  expect_same(
      train([&](OptimNet&, optim::Adam& adam) { nn::shard(adam, mesh, {{"mean.*", {"data"}}}); }));
  expect_same(train([&](OptimNet& net, optim::Adam& adam) {
    nn::shard(net, mesh, {{"*", {"data"}}});
    nn::shard(adam, mesh, {{"mean.*", {"data"}}, {"variance.*", {"data"}}});
  }));
}

TEST(ShardedOptimizers, NameWhatIsWrong) {
  OptimNet net;
  optim::Adam plain(nn::parameters(net));
  EXPECT_THAT(error_of([&] { plain.shard_state("data"); }), HasSubstr("no parameter is on a mesh"));
  nn::data_parallel(net, on_cpu(false));
  optim::Adam adam(nn::parameters(net));
  EXPECT_THAT(error_of([&] { adam.shard_state("modell"); }), HasSubstr("no axis \"modell\""));
  net(counting({2, 5}).shard(on_cpu(false))).sum().backward();
  EXPECT_THAT(error_of([&] { plain.step(); }),
              HasSubstr("create the optimiser after shard(net, mesh), or move it as well"));
}

}  // namespace
}  // namespace plugrad
