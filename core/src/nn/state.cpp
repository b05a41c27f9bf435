// State dictionaries: collecting, comparing, reading and writing them.
#include <map>

#include "base/check.h"
#include "nn/safetensors.h"
#include "plugrad/nn.h"

namespace plugrad::nn {
namespace {

bool both_floats(const Tensor& a, const Tensor& b) { return is_float(a.dtype()) && is_float(b.dtype()); }

/// What keeps `source` from filling `target`, a line each; empty when nothing does.
std::string differences(const StateDict& target, const std::map<std::string, Tensor>& source) {
  std::string lines;
  std::map<std::string, Tensor> wanted(target.begin(), target.end());
  for (const auto& [name, tensor] : target) {
    auto found = source.find(name);
    if (found == source.end()) {
      lines += fmt::format("\n  missing: {} {} {}", name, to_string(tensor.shape()), name_of(tensor.dtype()));
    } else if (found->second.shape() != tensor.shape()) {
      lines += fmt::format("\n  shape of {}: {} is given, {} is needed", name, to_string(found->second.shape()),
                           to_string(tensor.shape()));
    } else if (found->second.dtype() != tensor.dtype() && !both_floats(found->second, tensor)) {
      lines += fmt::format("\n  dtype of {}: {} is given, {} is needed", name, name_of(found->second.dtype()),
                           name_of(tensor.dtype()));
    }
  }
  for (const auto& [name, tensor] : source)
    if (!wanted.contains(name))
      lines += fmt::format("\n  unknown: {} {} {}", name, to_string(tensor.shape()), name_of(tensor.dtype()));
  return lines;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

void StateVisitor::field(std::string_view name, const Tensor& tensor) {
  if (tensor.defined()) out_.emplace_back(prefix_ + std::string(name), tensor);
}

std::string_view StateVisitor::next_name(std::string_view& names) {
  size_t comma = names.find(',');
  std::string_view name = trim(names.substr(0, comma));
  names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  return name;
}

void StateVisitor::enter(std::string_view name) { prefix_.append(name).append("."); }

void StateVisitor::leave(std::string_view name) { prefix_.resize(prefix_.size() - name.size() - 1); }

std::vector<Tensor> trained(const StateDict& state) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state)
    if (tensor.requires_grad()) tensors.push_back(tensor);
  return tensors;
}

void load_state(const StateDict& target, const StateDict& source) {
  std::map<std::string, Tensor> given(source.begin(), source.end());
  std::string lines = differences(target, given);
  require(lines.empty(), "[load_state_dict] the state does not fit the module:{}\nnothing was loaded", lines);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : target) {
    Tensor& destination = tensors.emplace_back(tensor);
    destination.assign(given.at(name).cast(tensor.dtype()).to(tensor.device()).detach());
  }
  Tensor::realize(tensors);
}

void save_state(const StateDict& state, const std::string& path) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back(tensor);
  Tensor::realize(tensors);
  std::vector<std::vector<std::byte>> values;
  std::vector<NamedArray> arrays;
  values.reserve(state.size());  // the spans below point into it
  for (const auto& [name, tensor] : state) {
    values.push_back(tensor.to_bytes());
    arrays.push_back({name, tensor.dtype(), tensor.shape(), values.back()});
  }
  write_safetensors(path, arrays);
}

StateDict read_state(const std::string& path, std::string_view device) {
  SafetensorsFile file = read_safetensors(path);
  StateDict state;
  for (const NamedArray& array : file.arrays)
    state.emplace_back(array.name, Tensor::from_bytes(array.bytes, array.shape, array.dtype, device, file.mapping));
  return state;
}

}  // namespace plugrad::nn
