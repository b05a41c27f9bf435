// Collects, compares, reads and writes state dictionaries.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "base/check.h"
#include "base/text.h"
#include "io/safetensors.h"
#include "nn/checkpoint/in_all_ranks.h"
#include "nn/state_differences.h"
#include "plugrad/nn.h"
#include "tensor/handles.h"

namespace plugrad::nn {
namespace {

bool both_floats(DType a, DType b) {
  return is_float(a) && is_float(b);
}

std::string describe_tensor(const TensorFacts& tensor) {
  return fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
}

using Kind = StateDifference::Kind;

std::vector<StateDifference> differences(const StateDict& target,
                                         const std::map<std::string, TensorFacts>& source) {
  std::vector<StateDifference> found;
  std::set<std::string> wanted;
  for (const auto& [name, handle] : target) {
    const TensorFacts tensor{handle.shape(), handle.dtype()};
    wanted.insert(name);
    const auto given = source.find(name);
    if (given == source.end()) {
      found.push_back({Kind::Missing, name, describe_tensor(tensor), {}});
      continue;
    }
    const TensorFacts& other = given->second;
    if (other.shape != tensor.shape)
      found.push_back({Kind::Shape, name, describe_tensor(tensor), describe_tensor(other)});
    else if (other.dtype != tensor.dtype && !both_floats(other.dtype, tensor.dtype))
      found.push_back({Kind::DType, name, describe_tensor(tensor), describe_tensor(other)});
  }
  for (const auto& [name, tensor] : source)
    if (!wanted.contains(name))
      found.push_back({Kind::Unexpected, name, {}, describe_tensor(tensor)});
  return found;
}

constexpr size_t kRows = 40;  // rows of the table; further differences are counted

}  // namespace

void StateVisitor::field(std::string_view name, const Tensor& tensor) {
  if (handles_ != nullptr)
    handles_->push_back(&tensor);
  else if (tensor.defined())
    out_->emplace_back(prefix_ + std::string(name), tensor);
}

void StateVisitor::require_before(std::string_view names, const void* field) const {
  const auto lies_before = std::less<const void*>();
  require(!prefix_.empty() || begin_ == nullptr || lies_before(field, begin_) ||
              !lies_before(field, end_),
          "[nn::clone] PLUGRAD_FIELDS({}) stands before a field that it names; move it behind the "
          "fields",
          names);
}

std::string_view StateVisitor::next_name(std::string_view& names) {
  size_t comma = names.find(',');
  std::string_view name = trimmed(names.substr(0, comma));
  names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  return name;
}

void StateVisitor::enter(std::string_view name) {
  prefix_.append(name).append(".");
}

void StateVisitor::leave(std::string_view name) {
  prefix_.resize(prefix_.size() - name.size() - 1);
}

namespace {

/// A new leaf with the present value of `tensor`.
Tensor separate(const Tensor& tensor) {
  Tensor copy = tensor.detach().clone();
  if (tensor.requires_grad()) copy.requires_grad_();
  return copy;
}

}  // namespace

FieldCopies& FieldCopies::operator=(const FieldCopies& other) {
  if (this == &other) return *this;
  offset_ = other.offset_;
  list_ = other.list_;
  separate_from(other);
  return *this;
}

void FieldCopies::separate_from(const FieldCopies& original) {
  Handles from, to;
  original.list_(original, from);
  list_(*this, to);
  std::map<const void*, Tensor> copies;  // key: the original's tensor
  for (size_t i = 0; i < to.size() && i < from.size(); ++i) {
    if (!from[i]->defined()) continue;
    // The module is being copied and is not const; nested modules are separate already.
    Tensor& handle = *const_cast<Tensor*>(to[i]);
    const bool is_shared = tensor::state_of(handle) == tensor::state_of(*from[i]);
    const auto [known, is_new] = copies.try_emplace(tensor::state_of(*from[i]).get(), handle);
    if (is_new && is_shared) known->second = separate(handle);
    handle = known->second;
  }
}

const void* identity_of(const Tensor& tensor) {
  return tensor::state_of(tensor).get();
}

std::vector<Tensor> trained(const StateDict& state) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state)
    if (tensor.requires_grad()) tensors.push_back(tensor);
  return tensors;
}

const char* StateDifference::kind_name() const {
  switch (kind) {
    case Kind::Missing:
      return "missing";
    case Kind::Unexpected:
      return "unexpected";
    case Kind::Shape:
      return "shape";
    case Kind::DType:
      return "dtype";
  }
  return "";
}

std::string describe(const std::vector<StateDifference>& differences) {
  const size_t rows = std::min(differences.size(), kRows);
  std::vector<std::array<std::string, 4>> table = {
      {"difference", "name", "in the module", "in the state"}};
  for (const StateDifference& row : std::span(differences).first(rows))
    table.push_back({row.kind_name(), row.name, row.in_module.empty() ? "-" : row.in_module,
                     row.in_state.empty() ? "-" : row.in_state});
  size_t widths[3] = {};
  for (const auto& row : table)
    for (size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : table)
    text += fmt::format("\n  {:{}}  {:{}}  {:{}}  {}", row[0], widths[0], row[1], widths[1], row[2],
                        widths[2], row[3]);
  if (differences.size() > rows) text += fmt::format("\n  and {} more", differences.size() - rows);
  return text;
}

std::vector<StateDifference> compare_states(std::string_view function, const StateDict& target,
                                            const std::map<std::string, TensorFacts>& source,
                                            Loading loading) {
  std::vector<StateDifference> found = differences(target, source);
  require(loading == Loading::NotStrict || found.empty(),
          "[{}] the state does not fit the module:{}\nnothing was loaded; "
          "loading that is not strict skips what differs",
          function, describe(found));
  return found;
}

std::vector<StateDifference> load_state(const StateDict& target, const StateDict& source,
                                        Loading loading) {
  const std::map<std::string, Tensor> given(source.begin(), source.end());
  std::map<std::string, TensorFacts> facts;
  for (const auto& [name, tensor] : given) facts[name] = {tensor.shape(), tensor.dtype()};
  std::vector<StateDifference> found = compare_states("load_state_dict", target, facts, loading);
  std::set<std::string> skipped;
  for (const StateDifference& row : found) skipped.insert(row.name);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : target) {
    if (skipped.contains(name)) continue;
    Tensor& destination = tensors.emplace_back(tensor);
    destination.assign(given.at(name).cast(tensor.dtype()).to(tensor.device()).detach());
  }
  Tensor::realize(tensors);
  return found;
}

void save_state(const StateDict& state, const std::string& path) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back(tensor);
  Tensor::realize(tensors);
  const bool is_sharded = std::ranges::any_of(tensors, &Tensor::is_sharded);
  const bool writes = !is_sharded || this_rank().number == 0;
  std::vector<std::vector<std::byte>> values;
  std::vector<io::NamedArray> arrays;
  values.reserve(state.size());  // the spans below point into it
  for (const auto& [name, tensor] : state) {
    std::vector<std::byte> bytes = tensor.to_bytes();  // in all ranks, which send their parts
    if (!writes) continue;
    values.push_back(std::move(bytes));
    arrays.push_back({name, tensor.dtype(), tensor.bound_shape(), values.back()});
  }
  const auto write = [&] {
    if (writes) io::write_safetensors(path, arrays);
  };
  is_sharded ? in_all_ranks("nn::save", write) : write();
}

StateDict read_state(const std::string& path, std::string_view device) {
  std::error_code ignored;
  require(!std::filesystem::is_directory(path, ignored),
          "[load] {} is a folder; nn::load_sharded reads a sharded checkpoint", path);
  io::SafetensorsFile file = io::read_safetensors(path);
  StateDict state;
  for (const io::NamedArray& array : file.arrays)
    state.emplace_back(array.name, Tensor::from_bytes(array.bytes, array.shape, array.dtype, device,
                                                      file.mapping));
  return state;
}

}  // namespace plugrad::nn
