// Whole networks with random weights, evaluated by one call; bench/peers/networks.py has the same
// networks with equal weight names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugrad/nn.h"

namespace plugrad::bench {

struct Network {
  std::vector<Tensor> data;  ///< arguments of a call
  nn::StateDict state;       ///< only the entries used in evaluation
  std::function<Tensor(const std::vector<Tensor>& data)> call;
};

std::vector<std::string> network_names();
/// "resnet18", "resnet50", "mobilenet_v2", "unet", "minilm", "vit_tiny" or "gpt2_decode" (with 256
/// previous tokens). Errors: std::out_of_range.
Network make_network(const std::string& name, int64_t batch);

// By kind of input.
Network make_image_network(const std::string& name, int64_t batch);
Network make_token_network(const std::string& name, int64_t batch);

/// A network that owns `net`.
template <class Net, class Call>
Network network_of(std::shared_ptr<Net> net, std::vector<Tensor> data, Call call) {
  Network out{.data = std::move(data), .state = {}, .call = {}};
  for (auto& [name, tensor] : nn::state_dict(*net))
    if (!name.ends_with("num_batches_tracked")) out.state.emplace_back(name, tensor);
  out.call = [net, call](const std::vector<Tensor>& given) {
    const nn::TrainingScope evaluation(false);
    return call(*net, given);
  };
  return out;
}

}  // namespace plugrad::bench
