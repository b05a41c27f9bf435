// Modules on a mesh: rules by name, and the rules of data and tensor parallel training.
#include "sharding/meshes.h"

namespace plugrad {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Block {
  nn::LayerNorm norm{{8}};
  nn::MultiHeadAttention attention{8, 4};
  nn::Linear up{8, 32}, down{32, 8};
  PLUGRAD_FIELDS(norm, attention, up, down)

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(norm(x), {.causal = true});
    return h + down(gelu(up(h)));
  }
};

struct Letters {
  nn::Embedding letter{11, 8};
  std::vector<Block> blocks = std::vector<Block>(2);
  nn::Linear out{8, 11};
  PLUGRAD_FIELDS(letter, blocks, out)

  Tensor operator()(const Tensor& x) const {
    Tensor h = letter(x);
    for (const Block& block : blocks) h = block(h);
    return out(h);
  }
};

std::string spec_of(const nn::StateDict& state, const std::string& name) {
  for (const auto& [known, tensor] : state)
    if (known == name) return tensor.shard_spec().to_string();
  return "no " + name;
}

TEST(ShardedModules, TheFirstRuleThatMatchesDecides) {
  Letters net;
  const auto before = nn::parameters(net);
  const std::vector<float> values = net.blocks[1].up.weight.to_vector<float>();
  nn::shard(net, two_by_two(),
            {{"blocks.1.up.weight", {"data"}},
             {"blocks.*.up.*", {"model"}},
             {"*.down.weight", {"", "data+model"}}});
  const nn::StateDict state = nn::state_dict(net);
  EXPECT_EQ(spec_of(state, "blocks.0.up.weight"), "[model, -]");
  EXPECT_EQ(spec_of(state, "blocks.1.up.weight"), "[data, -]");
  EXPECT_EQ(spec_of(state, "blocks.1.up.bias"), "[model]");
  EXPECT_EQ(spec_of(state, "blocks.0.down.weight"), "[-, data+model]");
  EXPECT_EQ(spec_of(state, "out.weight"), "[-, -]");
  EXPECT_EQ(net.blocks[1].up.weight.to_vector<float>(), values);
  const auto after = nn::parameters(net);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_TRUE(after[i].requires_grad());
    EXPECT_EQ(nn::identity_of(after[i]), nn::identity_of(before[i]));
  }
}

TEST(ShardedModules, MoveToAnotherMeshAndBack) {
  nn::Linear layer(3, 5);
  const std::vector<float> values = layer.weight.to_vector<float>();
  nn::shard(layer, two(), {{"weight", {"data"}}});
  nn::shard(layer, four(), {{"*", {"data"}}});
  EXPECT_EQ(layer.weight.device(), four().device());
  EXPECT_EQ(layer.weight.shards()[0].shape(), (Shape{1, 3}));
  nn::to(layer, "CPU");
  EXPECT_FALSE(layer.weight.is_sharded());
  EXPECT_EQ(layer.weight.to_vector<float>(), values);
}

TEST(ShardedModules, RulesThatDoNotFitMoveNothing) {
  Letters net;
  const Mesh mesh = two();
  EXPECT_THAT(error_of([&] { nn::shard(net, mesh, {{"blocks.*.middle", {"data"}}}); }),
              HasSubstr("\"blocks.*.middle\" matches no tensor; the names are letter.weight"));
  EXPECT_THAT(error_of([&] { nn::shard(net, mesh, {{"*.bias", {"", "data"}}}); }),
              HasSubstr("blocks.0.up.bias: [shard] the spec [-, data] has 2 dimensions"));
  EXPECT_THAT(error_of([&] { nn::shard(net, mesh, {{"*.up.weight", {"model"}}}); }),
              HasSubstr("blocks.1.up.weight: [shard] the mesh data=2 has no axis \"model\""));
  EXPECT_THAT(
      error_of([&] { nn::shard(net, mesh, {{"*", ShardSpec().with_partial_sum("data")}}); }),
      HasSubstr("no terms of sums"));
  for (const auto& [name, tensor] : nn::state_dict(net)) EXPECT_FALSE(tensor.is_sharded()) << name;
}

TEST(ShardedModules, RulesKeepTensorsWithoutDimensionsWhole) {
  struct Picture {
    nn::Conv2d conv{1, 4, 3};
    nn::BatchNorm norm{4};
    PLUGRAD_FIELDS(conv, norm)
  } net;
  const Mesh mesh = two();
  nn::shard(net, mesh, {{"*", {"data"}}});
  EXPECT_EQ(net.norm.weight.shard_spec().to_string(), "[data]");
  EXPECT_EQ(net.norm.num_batches_tracked.shard_spec().to_string(), "[]");
  EXPECT_EQ(net.norm.num_batches_tracked.mesh(), mesh);
  const Tensor x = counting({4, 1, 6, 6}).shard(mesh, {"data"});
  net.norm(net.conv(x)).sum().item<float>();
  EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 1);
  EXPECT_THAT(error_of([&] { nn::shard(net, mesh, {{"*", {"", "data"}}}); }),
              AllOf(HasSubstr("norm.bias: [shard] the spec [-, data] has 2 dimensions"),
                    Not(HasSubstr("num_batches_tracked"))));
}

TEST(ShardedModules, ATensorOfTwoNamesHasOneSpec) {
  struct Tied {
    nn::Embedding letter{11, 8};
    nn::Linear out{8, 11, false};
    PLUGRAD_FIELDS(letter, out)
  } net;
  net.out.weight = net.letter.weight;
  EXPECT_THAT(
      error_of([&] { nn::shard(net, two(), {{"letter.*", {"data"}}, {"out.*", {"", "data"}}}); }),
      AllOf(HasSubstr(
                "letter.weight and out.weight are one tensor, of the specs [data] and [-, data]"),
            HasSubstr("put a rule in front that gives \"letter.weight\" and \"out.weight\"")));
  nn::shard(net, two(), {{"out.*", {"data"}}});
  EXPECT_EQ(net.letter.weight.shard_spec().to_string(), "[data, -]");
}

TEST(ShardedModules, TensorParallelCutsHeadsAndPairs) {
  Letters net;
  nn::shard(net, two_by_two(), nn::tensor_parallel(net, "model"));
  const nn::StateDict state = nn::state_dict(net);
  for (const char* layer : {"q_proj", "k_proj", "v_proj"}) {
    EXPECT_EQ(spec_of(state, std::string("blocks.0.attention.") + layer + ".weight"), "[model, -]");
    EXPECT_EQ(spec_of(state, std::string("blocks.0.attention.") + layer + ".bias"), "[model]");
  }
  EXPECT_EQ(spec_of(state, "blocks.1.attention.out_proj.weight"), "[-, model]");
  EXPECT_EQ(spec_of(state, "blocks.1.attention.out_proj.bias"), "[-]");
  EXPECT_EQ(spec_of(state, "blocks.0.up.weight"), "[model, -]");
  EXPECT_EQ(spec_of(state, "blocks.0.down.weight"), "[-, model]");
  EXPECT_EQ(spec_of(state, "blocks.0.norm.weight"), "[-]");
  EXPECT_EQ(spec_of(state, "letter.weight"), "[model, -]");
  EXPECT_EQ(spec_of(state, "out.weight"), "[model, -]");
}

TEST(ShardedModules, TensorParallelKeepsValuesBetweenPairsCut) {
  nn::Sequential net(nn::Linear(6, 8), relu, nn::Linear(8, 5));
  const Mesh mesh = two();
  nn::shard(net, mesh, nn::tensor_parallel(net, "data"));
  const nn::StateDict state = nn::state_dict(net);
  const Tensor x = counting({3, 6}).shard(mesh);
  EXPECT_EQ(linear(x, state[0].second.transpose(), state[1].second).shard_spec().to_string(),
            "[-, data]");
  const Tensor y = linear(x, state[0].second.transpose(), state[1].second);
  EXPECT_EQ(y.matmul(state[2].second.transpose()).shard_spec().to_string(),
            "[-, -] partial add(data)");
}

std::vector<float> module_losses(const std::function<void(Letters&)>& place,
                                 const std::function<Tensor(const Tensor&)>& input) {
  Tensor::manual_seed(7);
  Letters net;
  place(net);
  optim::AdamW adam(nn::parameters(net), {.lr = 0.01});
  std::vector<float> found;
  for (int step = 0; step < 3; ++step) {
    std::vector<int32_t> x(4 * 6), y(4 * 6);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<int32_t>((i * 3 + static_cast<size_t>(step)) % 11);
      y[i] = static_cast<int32_t>((i * 5) % 11);
    }
    adam.zero_grad();
    const Tensor loss = sparse_categorical_crossentropy(net(input(Tensor::from(x, {4, 6}, "CPU"))),
                                                        input(Tensor::from(y, {4, 6}, "CPU")));
    loss.backward();
    optim::clip_grad_norm(adam.parameters(), 0.5);
    adam.step();
    found.push_back(loss.item<float>());
  }
  return found;
}

TEST(ShardedModules, TrainAsOnOneDevice) {
  const std::vector<float> expected =
      module_losses([](Letters&) {}, [](const Tensor& x) { return x; });
  const auto expect_same = [&](const std::vector<float>& actual) {
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-5F * expected[i]) << i;
  };
  const Mesh mesh = Mesh({{"data", 2}, {"model", 2}}, {"CPU", "CPU", "CPU", "CPU"});
  const auto by_rows = [&](const Tensor& x) { return x.shard(mesh, {"data"}); };
  expect_same(module_losses([&](Letters& net) { nn::data_parallel(net, mesh); }, by_rows));
  expect_same(module_losses(
      [&](Letters& net) { nn::shard(net, mesh, nn::tensor_parallel(net, "model")); }, by_rows));
  expect_same(
      module_losses([&](Letters& net) { nn::shard(net, mesh, {{"*", {"data"}}}); }, by_rows));
  expect_same(
      module_losses([&](Letters& net) { nn::shard(net, mesh, {{"*", {"data+model"}}}); }, by_rows));
}

nn::RecurrentOptions two_layers(bool bidirectional, double dropout) {
  nn::RecurrentOptions options;
  options.layers = 2;
  options.bidirectional = bidirectional;
  options.dropout = dropout;
  return options;
}

struct Sequences {
  nn::LSTM lstm{3, 4, two_layers(true, 0)};
  nn::GRU gru{8, 5, two_layers(false, 0.5)};
  nn::Linear out{5, 2};
  PLUGRAD_FIELDS(lstm, gru, out)
};

/// Losses of three steps on 6 sequences of different lengths, which place() puts on a mesh.
template <class Place, class Put>
std::vector<float> losses_of_sequences(const Place& place, const Put& put) {
  Tensor::manual_seed(5);
  Sequences net;
  place(net);
  optim::SGD sgd(nn::parameters(net), {.lr = 0.1});
  const Tensor x = put(counting({5, 6, 3}, -1, 0.02), ShardSpec({"", "data"}));
  const std::vector<int32_t> sizes = {5, 3, 0, 4, 1, 5};
  const Tensor lengths = put(Tensor::from(sizes, {6}), ShardSpec({"data"}));
  std::vector<float> found;
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    const Tensor made = net.out(net.gru(net.lstm(x, {}, lengths).output, {}, lengths).output);
    const Tensor loss = (made - 1).square().mean();
    loss.backward();
    sgd.step();
    found.push_back(loss.item<float>());
  }
  return found;
}

TEST(ShardedModules, RecurrentLayersTrainAsOnOneDevice) {
  const std::vector<float> expected =
      losses_of_sequences([](Sequences&) {}, [](const Tensor& x, const ShardSpec&) { return x; });
  EXPECT_LT(expected.back(), expected.front());
  const Mesh mesh = two();
  const std::vector<float> actual =
      losses_of_sequences([&](Sequences& net) { nn::data_parallel(net, mesh); },
                          [&](const Tensor& x, const ShardSpec& s) { return x.shard(mesh, s); });
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-5F * expected[i]) << i;
}

}  // namespace
}  // namespace plugrad
