// Copied modules have their own tensors; averages of parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

struct CopiedBlock {
  nn::Linear linear{2, 2, false};
  Tensor scale = Tensor::ones({2}).requires_grad_();
  int depth = 7;
  PLUGRAD_FIELDS(linear, scale)
};

struct CopiedNet {
  CopiedBlock first{};
  std::vector<CopiedBlock> rest = std::vector<CopiedBlock>(2);
  nn::Sequential last{nn::Linear(2, 1), nn::BatchNorm(1)};
  PLUGRAD_FIELDS(first, rest, last)
};

using Values = std::vector<std::vector<double>>;

Values values_of(const nn::StateDict& state) {
  Values values;
  for (const auto& [name, tensor] : state) values.push_back(tensor.to_vector<double>());
  return values;
}

template <class Module>
void expect_independent(const Module& a, const Module& b) {
  const nn::StateDict first = nn::state_dict(a), second = nn::state_dict(b);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(values_of(first), values_of(second));
  const Values before = values_of(first);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, second[i].first);
    EXPECT_NE(tensor::state_of(first[i].second), tensor::state_of(second[i].second))
        << first[i].first;
    EXPECT_EQ(first[i].second.requires_grad(), second[i].second.requires_grad());
    Tensor changed = second[i].second;
    changed.assign(changed + 1);
  }
  EXPECT_EQ(values_of(first), before);
  EXPECT_NE(values_of(second), before);
}

TEST(Copies, AreIndependent) {
  const CopiedNet net;
  CopiedNet copy = net;
  EXPECT_EQ(copy.first.depth, 7);
  expect_independent(net, copy);
  const CopiedNet again = nn::clone(net);
  expect_independent(net, again);
  CopiedNet assigned;
  assigned = net;
  expect_independent(net, assigned);
  const nn::Linear layer(2, 3);
  const std::vector<nn::Linear> layers(3, layer);
  expect_independent(layers[0], layers[1]);
  expect_independent(layer, layers[2]);
}

// Lists of modules are copied, listed and converted like a module that contains them.
TEST(Copies, OfListsAreIndependent) {
  const std::vector<CopiedBlock> blocks(2);
  expect_independent(blocks, nn::clone(blocks));
  EXPECT_EQ(nn::state_dict(blocks)[1].first, "0.scale");
  EXPECT_EQ(nn::state_dict(blocks)[2].first, "1.linear.weight");
  EXPECT_EQ(nn::parameters(blocks).size(), 4u);
}

TEST(Copies, HaveGradientsOfTheirOwn) {
  const CopiedBlock block;
  const CopiedBlock copy = block;
  Tensor::realize(std::vector{block.scale, copy.scale});
  (block.scale * 2.0 + copy.scale * 3.0).sum().backward();
  EXPECT_EQ(block.scale.grad().to_vector<double>(), (std::vector<double>{2, 2}));
  EXPECT_EQ(copy.scale.grad().to_vector<double>(), (std::vector<double>{3, 3}));
}

TEST(Copies, KeepTiedWeightsTied) {
  struct Tied {
    nn::Embedding in{3, 2};
    nn::Linear out{2, 3, false};
    PLUGRAD_FIELDS(in, out)
  };
  Tied tied;
  tied.out.weight = tied.in.weight;
  const Tied copy = tied;
  EXPECT_EQ(tensor::state_of(copy.out.weight), tensor::state_of(copy.in.weight));
  EXPECT_NE(tensor::state_of(copy.out.weight), tensor::state_of(tied.out.weight));
}

TEST(Copies, MovingKeepsTheTensors) {
  static_assert(std::is_nothrow_move_constructible_v<nn::Linear>);
  static_assert(std::is_nothrow_move_constructible_v<nn::BatchNorm>);
  static_assert(std::is_nothrow_move_constructible_v<nn::Sequential>);
  static_assert(std::is_nothrow_move_constructible_v<CopiedNet>);
  CopiedNet net;
  const auto state = tensor::state_of(net.rest[1].linear.weight);
  const CopiedNet moved = std::move(net);
  EXPECT_EQ(tensor::state_of(moved.rest[1].linear.weight), state);
}

struct Early {
  PLUGRAD_FIELDS(weight)
  Tensor weight = Tensor::ones({1});
};

TEST(Copies, FieldsBehindTheirNamesAreAnError) {
  const Early early;
  try {
    const Early copy = early;
    FAIL() << "copied";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("PLUGRAD_FIELDS(weight) stands before a field"));
  }
}

TEST(Ema, FollowsTheParameters) {
  CopiedBlock block;
  block.scale.assign(Tensor::from({1.0f, 2.0f}));
  nn::Ema ema(block, 0.5);
  EXPECT_FALSE(ema.module.scale.requires_grad());
  block.scale.assign(Tensor::from({3.0f, 6.0f}));
  ema.update(block);
  EXPECT_EQ(ema.module.scale.to_vector<double>(), (std::vector<double>{2, 4}));
  ema.update(block);
  EXPECT_EQ(ema.module.scale.to_vector<double>(), (std::vector<double>{2.5, 5}));
  EXPECT_EQ(block.scale.to_vector<double>(), (std::vector<double>{3, 6}));
  EXPECT_TRUE(block.scale.requires_grad());
}

}  // namespace
}  // namespace plugrad
