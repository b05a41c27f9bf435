// The networks of the C++ examples as ONNX files; those of the Python ones are in
// tests/python/onnx/exports.py. PLUGRAD_TEST_ONNX as in round_trip.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plugrad/plugrad.h>
#include <plugrad/scan.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "exported/round_trip.h"

// The headers that the examples include are above: the classes of each are in a namespace. Nothing
// calls their main(), which need not return a value where it is a program's.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"
namespace custom_ops {
#include "docs/examples/custom_ops.cpp"
}
namespace gpt {
#include "docs/examples/gpt.cpp"
}
namespace mnist {
#include "docs/examples/mnist.cpp"
}
namespace resnet {
#include "docs/examples/resnet.cpp"
}
namespace search {
#include "docs/examples/search.cpp"
}
namespace train {
#include "docs/examples/train.cpp"
}
#pragma GCC diagnostic pop

namespace plugrad::exported {
namespace {

using Tensors = std::vector<Tensor>;

void check(const std::string& name, const onnx::TensorFunction& function, const Tensors& inputs,
           const nn::StateDict& parameters = {}) {
  const nn::TrainingScope evaluation(false);
  const Folder folder;
  const Tensors wanted = function(inputs);
  const Tensors got = folder.round_trip("example_" + name, function, inputs, parameters);
  std::vector<std::vector<double>> errors;
  ASSERT_EQ(got.size(), wanted.size()) << name;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double largest = wanted[i].abs().max().item<double>();
    errors.emplace_back(static_cast<size_t>(wanted[i].numel()), 1e-4 * largest);
    EXPECT_LE(relative_difference(got[i], wanted[i]), 1e-6) << name << " " << i;
  }
  folder.keep("example_" + name, inputs, wanted, errors);
}

template <class Net>
void check_net(const std::string& name, Net net, const Tensor& x) {
  check(name, [&](const Tensors& in) { return Tensors{net(in[0])}; }, {x}, nn::state_dict(net));
}

TEST(ExportedExamples, Networks) {
  Tensor::manual_seed(2);
  check_net("gpt", gpt::Gpt(20), Tensor::randint({2, gpt::kContext}, 0, 20).realize());
  check_net("mnist", mnist::Net(), Tensor::rand({2, 1, 28, 28}).realize());
  check_net("resnet", resnet::ResNet(8), Tensor::randn({2, 3, 16, 16}).realize());
  check_net("search", search::Net(), Tensor::rand({1, 1, 28, 28}).realize());
  check_net("train", train::Net(), Tensor::rand({4, 2}).realize());
}

TEST(ExportedExamples, Functions) {
  Tensor::manual_seed(2);
  const Tensor gate = Tensor::randn({64, 64}).realize(), up = Tensor::randn({64, 64}).realize();
  check("custom_ops",
        [&](const Tensors& x) {
          return Tensors{custom_ops::my_gelu(x[0]), custom_ops::my_rms_norm(x[0], gate[0]),
                         custom_ops::my_swiglu(x[0], gate, up), custom_ops::round_through(x)[0]};
        },
        {Tensor::randn({32, 64}).realize()});
  const nn::LSTM lstm(3, 5);
  check(
      "recurrent",
      [&](const Tensors& x) {
        const auto [output, state] = lstm(x[0], {}, x[1]);
        return Tensors{output, state.h, state.c};
      },
      {Tensor::randn({4, 2, 3}).realize(), Tensor::from<int>({4, 2})}, nn::state_dict(lstm));
}

TEST(ExportedExamples, AKernelOfTheProgramIsRefusedByName) {
  const Folder folder;
  const auto call = [](const Tensors& x) {
    return Tensors{custom_ops::square_plus(4)({x[0], x[0]}, {{{4}}})[0]};
  };
  try {
    folder.round_trip("kernel", call, {Tensor::ones({4})});
    FAIL() << "the file was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("a kernel of the program"));
  }
}

}  // namespace
}  // namespace plugrad::exported
