#include <gmock/gmock.h>

#include "near.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"
#include "scratch_folder.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Block {
  nn::Linear linear{2, 2};
  nn::BatchNorm norm{2};
  PLUGRAD_FIELDS(linear, norm)
};

struct StateNet {
  Tensor scale = Tensor::ones({1}).requires_grad_();
  std::vector<Block> blocks = std::vector<Block>(2);
  nn::Dropout dropout{0.1};
  nn::Linear out{2, 3, false};
  PLUGRAD_FIELDS(scale, blocks, dropout, out)
};

std::vector<std::string> names_of(const nn::StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

}  // namespace

TEST(StateDict, NamesFollowTheFields) {
  EXPECT_THAT(
      names_of(nn::state_dict(StateNet())),
      ElementsAre("scale", "blocks.0.linear.weight", "blocks.0.linear.bias", "blocks.0.norm.weight",
                  "blocks.0.norm.bias", "blocks.0.norm.running_mean", "blocks.0.norm.running_var",
                  "blocks.0.norm.num_batches_tracked", "blocks.1.linear.weight",
                  "blocks.1.linear.bias", "blocks.1.norm.weight", "blocks.1.norm.bias",
                  "blocks.1.norm.running_mean", "blocks.1.norm.running_var",
                  "blocks.1.norm.num_batches_tracked", "out.weight"));
}

TEST(StateDict, AModuleIsConvertedInPlace) {
  StateNet net;
  const Tensor weight = net.out.weight;  // another handle of the same tensor
  const auto before = weight.to_vector<float>();
  (net.out(Tensor::ones({1, 2})).sum()).backward();
  nn::to(net, DType::BF16);
  EXPECT_EQ(weight.dtype(), DType::BF16);
  EXPECT_EQ(net.blocks[1].norm.num_batches_tracked.dtype(),
            StateNet().blocks[1].norm.num_batches_tracked.dtype());
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_EQ(nn::parameters(net).size(), 10u);
  const auto after = weight.to_vector<float>();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(after[i], before[i], 0.004 * std::abs(before[i]));
  net.out(Tensor::ones({1, 2}, DType::BF16)).sum().backward();
  EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(nn::to(net, DType::F32).out.weight.dtype(), DType::F32);
  EXPECT_EQ(weight.to_vector<float>(), after);
  EXPECT_THAT(user_error([&] { nn::to(net, DType::I32); }), HasSubstr("[to] i32 is no float"));
  nn::to(net, "REFERENCE");
  EXPECT_EQ(weight.device(), Tensor::ones({1}, DType::F32, "REFERENCE").device());
  EXPECT_EQ(weight.to_vector<float>(), after);
}

TEST(StateDict, ParametersAreWhatIsTrained) {
  EXPECT_EQ(nn::parameters(StateNet()).size(), 10u);
}

TEST(StateDict, IsSavedAndLoaded) {
  ScratchFolder folder;
  StateNet net, other;
  std::string path = (folder.path / "net.safetensors").string();
  net.blocks[1].norm.running_var.assign(Tensor::from<float>({5, 7}));
  nn::save(net, path);
  nn::load(other, path);
  EXPECT_EQ(other.out.weight.to_vector<float>(), net.out.weight.to_vector<float>());
  EXPECT_EQ(other.blocks[0].linear.bias.to_vector<float>(),
            net.blocks[0].linear.bias.to_vector<float>());
  expect_near(other.blocks[1].norm.running_var, {5, 7});
  EXPECT_TRUE(other.out.weight.requires_grad());
}

TEST(StateDict, FloatsAreCastToTheModulesDType) {
  nn::Linear layer(2, 1, false);
  nn::load_state_dict(layer, {{"weight", Tensor::from<float>({{1.5f, 2.5f}}).cast(DType::F16)}});
  EXPECT_EQ(layer.weight.dtype(), DType::F32);
  expect_near(layer.weight, {1.5f, 2.5f});
}

TEST(StateDict, EveryDifferenceIsListedAndNothingIsLoaded) {
  nn::Linear layer(2, 2);
  std::vector<float> before = layer.weight.to_vector<float>();
  nn::StateDict state = {{"weight", Tensor::zeros({2, 3})}, {"extra", Tensor::zeros({1})}};
  std::string message = user_error([&] { nn::load_state_dict(layer, state); });
  EXPECT_THAT(message, HasSubstr("\n  shape       weight  (2, 2) f32     (2, 3) f32\n"));
  EXPECT_THAT(message, HasSubstr("\n  missing     bias    (2,) f32       -\n"));
  EXPECT_THAT(message, HasSubstr("\n  unexpected  extra   -              (1,) f32\n"));
  EXPECT_THAT(message, HasSubstr("nothing was loaded"));
  EXPECT_EQ(layer.weight.to_vector<float>(), before);
  EXPECT_THAT(user_error([&] {
                nn::load_state_dict(layer, {{"weight", Tensor::zeros({2, 2}, DType::I32)},
                                            {"bias", Tensor::zeros({2})}});
              }),
              HasSubstr("\n  dtype       weight  (2, 2) f32     (2, 2) i32"));
}

TEST(StateDict, ADamagedFileLeavesTheModuleAndTheFileAsTheyWere) {
  ScratchFolder folder;
  nn::Linear layer(2, 2);
  std::string path = (folder.path / "layer.safetensors").string();
  nn::save(layer, path);
  std::string bytes = contents(path);
  folder.write("layer.safetensors", bytes.substr(0, bytes.size() - 4));
  std::vector<float> before = layer.weight.to_vector<float>();
  EXPECT_THAT(user_error([&] { nn::load(layer, path); }), HasSubstr("layer.safetensors"));
  EXPECT_EQ(layer.weight.to_vector<float>(), before);
  EXPECT_EQ(contents(path).size(), bytes.size() - 4);
}

TEST(StateDict, AnOptimisersStateIsSavedTheSameWay) {
  ScratchFolder folder;
  std::string path = (folder.path / "adam.safetensors").string();
  Tensor p = Tensor::from<float>({1, 2}).requires_grad_(),
         q = Tensor::from<float>({1, 2}).requires_grad_();
  optim::Adam first({p}, {.lr = 0.1}), second({q}, {.lr = 0.1});
  (p * p).sum().backward();
  first.step();
  nn::save(first, path);
  nn::load(second, path);
  q.assign(p.detach());
  for (auto [tensor, opt] : {std::pair(&p, &first), std::pair(&q, &second)}) {
    opt->zero_grad();
    (*tensor * *tensor).sum().backward();
    opt->step();
  }
  EXPECT_EQ(p.to_vector<float>(), q.to_vector<float>());
}
