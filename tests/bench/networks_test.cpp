// Checks the bench's networks against their papers by the number of weights, and that files of them
// compute the same: that of PLUGRAD_TEST_NETWORK, a name or all.
#include "bench/networks/networks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "exported/round_trip.h"

namespace plugrad::bench {
namespace {

Network unrealised(const std::string& name, int64_t batch) {
  const bool takes_tokens = name == "minilm" || name == "vit_tiny" || name == "gpt2_decode";
  return takes_tokens ? make_token_network(name, batch) : make_image_network(name, batch);
}

// Excludes the statistics of batch norms.
int64_t weights_of(const Network& network) {
  int64_t count = 0;
  for (const auto& [name, tensor] : network.state)
    if (name.find("running_") == std::string::npos) count += tensor.numel();
  return count;
}

TEST(BenchNetworks, HaveAsManyWeightsAsTheirPapersSay) {
  EXPECT_EQ(weights_of(unrealised("resnet18", 1)), 11'689'512);
  EXPECT_EQ(weights_of(unrealised("resnet50", 1)), 25'557'032);
  EXPECT_EQ(weights_of(unrealised("mobilenet_v2", 1)), 3'504'872);
  EXPECT_EQ(weights_of(unrealised("gpt2_decode", 1)), 124'439'808);
  EXPECT_EQ(weights_of(unrealised("vit_tiny", 1)), 5'717'416);
  // 22 713 216 with the pooler (384 x 384 + 384) and the two segments (768), which are omitted.
  EXPECT_EQ(weights_of(unrealised("minilm", 1)), 22'713'216 - 384 * 385 - 768);
}

TEST(BenchNetworks, ACallGivesTheShapeOfItsTask) {
  const auto shape_of = [](const std::string& name, int64_t batch) {
    const Network network = unrealised(name, batch);
    const auto shape = network.call(network.data).shape();
    return std::vector<int64_t>(shape.begin(), shape.end());
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(shape_of("resnet18", 8), (Sizes{8, 1000}));
  EXPECT_EQ(shape_of("resnet50", 1), (Sizes{1, 1000}));
  EXPECT_EQ(shape_of("mobilenet_v2", 2), (Sizes{2, 1000}));
  EXPECT_EQ(shape_of("unet", 1), (Sizes{1, 1, 256, 256}));
  EXPECT_EQ(shape_of("minilm", 8), (Sizes{8, 128, 384}));
  EXPECT_EQ(shape_of("vit_tiny", 3), (Sizes{3, 1000}));
  EXPECT_EQ(shape_of("gpt2_decode", 1), (Sizes{1, 1, 50257}));
}

TEST(BenchNetworks, AreEvaluated_NotTrained) {
  const Network network = unrealised("resnet18", 1);
  network.call(network.data);
  EXPECT_TRUE(nn::is_training()) << "the scope ends with the call";
  EXPECT_THROW(make_network("alexnet", 1), std::out_of_range);
}

TEST(BenchNetworks, AreTheSameInOnnxFiles) {
  const char* given = std::getenv("PLUGRAD_TEST_NETWORK");
  const std::string one = given ? given : "mobilenet_v2";
  const exported::Folder folder;
  for (const std::string& name : one == "all" ? network_names() : std::vector{one}) {
    Tensor::manual_seed(3);
    const Network network = make_network(name, 1);
    const auto call = [&](const auto& data) { return std::vector{network.call(data)}; };
    const Tensor wanted = network.call(network.data);
    const Tensor got = folder.round_trip(name, call, network.data, network.state)[0];
    ASSERT_EQ(got.shape(), wanted.shape());
    const double difference = exported::relative_difference(got, wanted);
    std::printf("%s: differs by %g of its largest element\n", name.c_str(), difference);
    EXPECT_LE(difference, 1e-5);
    const double permitted = 1e-4 * wanted.abs().max().item<double>();
    folder.keep(name, network.data, {wanted},
                {std::vector(static_cast<size_t>(wanted.numel()), permitted)});
  }
}

}  // namespace
}  // namespace plugrad::bench
