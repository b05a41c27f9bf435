#include "bench/networks/networks.h"

#include <algorithm>
#include <stdexcept>

namespace plugrad::bench {

std::vector<std::string> network_names() {
  return {"resnet18", "resnet50", "mobilenet_v2", "unet", "minilm", "vit_tiny", "gpt2_decode"};
}

Network make_network(const std::string& name, int64_t batch) {
  const auto names = network_names();
  if (std::ranges::count(names, name) == 0) throw std::out_of_range("there is no network " + name);
  const bool takes_tokens = name == "minilm" || name == "vit_tiny" || name == "gpt2_decode";
  Network network =
      takes_tokens ? make_token_network(name, batch) : make_image_network(name, batch);
  Tensor::realize(network.data);
  std::vector<Tensor> weights;
  for (const auto& [key, tensor] : network.state) weights.push_back(tensor);
  Tensor::realize(weights);
  return network;
}

}  // namespace plugrad::bench
