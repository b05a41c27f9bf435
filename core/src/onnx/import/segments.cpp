#include "onnx/import/segments.h"

#include <algorithm>

#include "base/check.h"
#include "onnx/import/declared.h"
#include "onnx/import/graph_run.h"
#include "tensor/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr size_t kMostSegments = 32;           // that are recorded
constexpr size_t kMostSegmentRecordings = 32;  // of one segment
constexpr size_t kMostSeenKeys = 64;           // of one segment, that may come again
constexpr int kMostNewInARow = 4;              // calls of a segment that are recorded anew

// Calls `use` with the names that the node reads, and with all names of its graphs.
template <class Use>
void for_each_read(const NodeMessage& node, const Use& use) {
  for (const std::string_view name : node.inputs)
    if (!name.empty()) use(name);
  for (const AttributeMessage& attribute : node.attributes)
    for (const auto& graph : attribute.graphs) {
      for (const NodeMessage& inner : graph->nodes) for_each_read(inner, use);
      for (const ValueMessage& output : graph->outputs) use(output.name);
    }
}

// Whether the node computes earlier nodes again.
bool reads_all(const NodeMessage& node) {
  const auto is_inner = [](const auto& graph) {
    return std::ranges::any_of(graph->nodes, reads_all);
  };
  return node.op == "Gradient" ||
         std::ranges::any_of(node.attributes, [&](const AttributeMessage& attribute) {
           return std::ranges::any_of(attribute.graphs, is_inner);
         });
}

// A value in a key. The elements of known ones are constants of the recording.
void add_to(std::vector<uint64_t>& key, const Value& value) {
  if (!value.is_given()) {
    key.push_back(0);
    return;
  }
  const tensor::HostValues* const known = value.known();
  const Shape shape = known ? known->shape : value.tensor().shape();
  key.push_back(known ? 1 : 2);
  key.push_back(static_cast<uint64_t>(known ? known->dtype : value.tensor().dtype()));
  key.push_back(static_cast<uint64_t>(value.emulated()));
  key.push_back(shape.size());
  key.insert(key.end(), shape.begin(), shape.end());
  if (known) key.insert(key.end(), known->bits.begin(), known->bits.end());
}

bool is_number_or_none(const Value& value) {
  return value.is_tensor() || !value.is_given();
}

}  // namespace

// Null if the call is not recorded: the last ones all had new keys, and so has this one.
Segment::Recording* Segment::recording_of(const Key& key) {
  auto found = recordings_.find(key);
  if (found == recordings_.end()) {
    const uint64_t hash = jit_detail::hash_of(
        {reinterpret_cast<const char*>(key.data()), key.size() * sizeof(uint64_t)});
    const bool was_seen = std::ranges::find(seen_, hash) != seen_.end();
    if (!was_seen && seen_.size() < kMostSeenKeys)
      seen_.push_back(hash);
    else if (!was_seen)
      seen_[seen_count_++ % kMostSeenKeys] = hash;
    if (++new_in_a_row_ > kMostNewInARow && !was_seen) return nullptr;
    if (recordings_.size() >= kMostSegmentRecordings)
      recordings_.erase(std::ranges::min_element(
          recordings_, {}, [](const auto& entry) { return entry.second.last_used; }));
    found = recordings_.try_emplace(key).first;
    found->second.calls = std::make_unique<jit_detail::Calls>(/*is_pure=*/true);
  } else {
    new_in_a_row_ = 0;
  }
  found->second.last_used = ++uses_;
  return &found->second;
}

std::vector<Value> Segment::run(const ModelMessage& model, ModelFiles& files,
                                std::string_view file_name,
                                const std::map<std::string_view, Value>& given,
                                const Names& varying) {
  const auto compute = [&](bool is_jitted) {
    return GraphRun(model, files, is_jitted, file_name).outputs_of_nodes(first_, last_, given, out);
  };
  const auto realized = [](std::vector<Value> values) {
    std::vector<Tensor> tensors;
    for (const Value& value : values)
      if (value.is_tensor() && !value.known()) tensors.push_back(value.tensor());
    Tensor::realize(tensors);
    return values;
  };
  if (is_on_host_) {
    std::vector<Value> results = compute(false);
    // Elements that differ from call to call must not become constants.
    for (Value& value : results)
      if (value.known()) value = Value(value.tensor()).as(value.emulated());
    return realized(std::move(results));
  }
  Key key;
  std::vector<Tensor> tensors;
  for (const std::string_view name : varying) {
    const Value& value = given.at(name);
    add_to(key, value);
    if (value.is_tensor() && !value.known()) tensors.push_back(value.tensor());
  }
  Recording* const recording = recording_of(key);
  if (!recording) return realized(compute(true));
  const auto record = [&] {
    jit_detail::Flat flat;
    std::vector<std::optional<Value>> fixed;
    std::vector<DataType> types;
    for (const Value& value : compute(true)) {
      if (!is_number_or_none(value)) throw NeedsHostValues();
      types.push_back(value.emulated());
      if (value.known())
        fixed.emplace_back(Value::known(*value.known()).as(value.emulated()));
      else if (!value.is_given())
        fixed.emplace_back(Value());
      else {
        fixed.emplace_back();
        flat.tensors.push_back(value.tensor());
      }
    }
    recording->results = std::move(fixed);
    recording->types = std::move(types);
    return flat;
  };
  std::vector<Tensor> made;
  try {
    made = recording->calls->call({std::move(tensors), {}}, record).tensors;
  } catch (...) {
    recordings_.erase(key);
    throw;
  }
  std::vector<Value> results;
  auto next = made.begin();
  for (size_t i = 0; i < out.size(); ++i)
    results.push_back(recording->results[i] ? *recording->results[i]
                                            : Value(*next++).as(recording->types[i]));
  return results;
}

Segments::Segments(const ModelMessage& model, ModelFiles& files, std::string_view file_name)
    : model_(model), files_(files), file_name_(file_name) {
  const GraphMessage& graph = model.graph;
  can_be_cut_ = std::ranges::none_of(graph.nodes, reads_all);
  for (const TensorMessage& tensor : graph.constants)
    constants_.emplace(tensor.name, files.constant(tensor));
  for (const SparseTensorMessage& tensor : graph.sparse_constants)
    constants_.emplace(tensor.values.name, files.constant(tensor));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for_each_read(graph.nodes[i], [&](std::string_view name) { last_use_[name] = i; });
  for (const ValueMessage& output : graph.outputs) last_use_[output.name] = graph.nodes.size();
  find_names(segments_.emplace_back(0, graph.nodes.size(), false));
}

void Segments::find_names(Segment& segment) const {
  const auto nodes =
      std::span(model_.graph.nodes).subspan(segment.first(), segment.last() - segment.first());
  std::set<std::string_view> computed, read;
  for (const NodeMessage& node : nodes) {
    for_each_read(node, [&](std::string_view name) {
      if (!computed.contains(name) && read.insert(name).second) segment.in.push_back(name);
    });
    for (const std::string_view name : node.outputs) {
      computed.insert(name);
      const auto use = last_use_.find(name);
      if (!name.empty() && use != last_use_.end() && use->second >= segment.last())
        segment.out.push_back(name);
    }
  }
}

std::vector<Value> Segments::run(Segment& segment, std::map<std::string_view, Value>& values) {
  std::map<std::string_view, Value> given;
  Segment::Names varying;
  for (const std::string_view name : segment.in) {
    const auto at = values.find(name);
    if (at == values.end()) {
      if (const auto constant = constants_.find(name); constant != constants_.end())
        given.emplace(name, constant->second);
      continue;
    }
    Value& value = at->second;
    if (deciding_.contains(name) && value.is_tensor() && !value.known() &&
        value.tensor().numel() <= kMostDeciding) {
      const Tensor& x = value.tensor();
      value = Value::known(values_in_memory(x.to_bytes(), x.shape(), x.dtype()), x)
                  .as(value.emulated());
    }
    given.emplace(name, value);
    varying.push_back(name);
  }
  return segment.run(model_, files_, file_name_, given, varying);
}

// Whether a further try may succeed.
bool Segments::cut(size_t segment, const NeedsHostValues& needs,
                   const std::map<std::string_view, Value>& values) {
  if (!needs.node) return false;
  const size_t node = *needs.node, first = segments_[segment].first(),
               last = segments_[segment].last();
  std::vector<Segment> parts;
  const auto add = [&](size_t from, size_t to, bool is_on_host) {
    if (from < to) find_names(parts.emplace_back(from, to, is_on_host));
  };
  const std::string_view name =
      needs.input ? model_.graph.nodes[node].inputs[*needs.input] : std::string_view();
  const bool is_there = values.contains(name) || constants_.contains(name);
  if (needs.input && deciding_.insert(name).second && is_there) return true;
  add(first, node, false);
  if (needs.input && !is_there) {
    add(node, last, false);
  } else {
    add(node, node + 1, true);
    add(node + 1, last, false);
  }
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(segment));
  segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(segment),
                   std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  return static_cast<size_t>(std::ranges::count(segments_, false, &Segment::is_on_host)) <=
         kMostSegments;
}

std::optional<std::vector<Value>> Segments::call(std::map<std::string_view, Value> values) {
  for (size_t i = 0; can_be_cut_ && i < segments_.size();) {
    std::vector<Value> results;
    try {
      results = run(segments_[i], values);
      can_be_cut_ = std::ranges::all_of(results, is_number_or_none);
    } catch (const NeedsHostValues& needs) {
      can_be_cut_ = cut(i, needs, values);
      continue;
    }
    const Segment& segment = segments_[i++];
    for (size_t k = 0; k < results.size(); ++k)
      values.insert_or_assign(segment.out[k], std::move(results[k]));
    std::erase_if(values, [&](const auto& entry) {
      const auto use = last_use_.find(entry.first);
      return use == last_use_.end() || use->second < segment.last();
    });
  }
  if (!can_be_cut_) return {};
  std::vector<Value> outputs;
  for (const ValueMessage& output : model_.graph.outputs) {
    const auto at = values.find(output.name);
    outputs.push_back(at != values.end() ? at->second : constants_.at(output.name));
    require_declared(outputs.back(), output);
  }
  return outputs;
}

}  // namespace plugrad::onnx
