#include "onnx/segments/segments.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "jit/calls.h"
#include "onnx/import/declared.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr size_t kMostSegments = 32;   // that are recorded
constexpr int64_t kMostDeciding = 64;  // elements of a tensor that are part of a key

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

// Whether the node or one of its graphs computes earlier nodes again.
bool reads_earlier_nodes(const NodeMessage& node) {
  if (node.op == "Gradient") return true;
  for (const AttributeMessage& attribute : node.attributes)
    for (const auto& graph : attribute.graphs)
      if (std::ranges::any_of(graph->nodes, reads_earlier_nodes)) return true;
  return false;
}

bool may_decide(const Value& value) {
  return value.is_tensor() && (value.known() || (value.tensor().numel() <= kMostDeciding &&
                                                 !tensor::has_variable_size(value.tensor())));
}

}  // namespace

Segments::Segments(const ModelMessage& model, ModelFiles& files, std::string_view file_name,
                   const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds)
    : source_{model, files, file_name}, declared_(declared), open_sizes_(declared, bounds) {
  const GraphMessage& graph = model.graph;
  can_be_cut_ = std::ranges::none_of(graph.nodes, reads_earlier_nodes);
  for (const TensorMessage& tensor : graph.constants)
    source_.constants.emplace(tensor.name, files.constant(tensor));
  for (const SparseTensorMessage& tensor : graph.sparse_constants)
    source_.constants.emplace(tensor.values.name, files.constant(tensor));
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for_each_read(graph.nodes[i], [&](std::string_view name) { last_use_[name] = i; });
    for (const std::string_view name : graph.nodes[i].outputs)
      if (!name.empty()) computed_by_.emplace(name, i);
  }
  for (const ValueMessage& output : graph.outputs) last_use_[output.name] = graph.nodes.size();
  find_names(segments_.emplace_back(Segment::Kind::Whole, 0, graph.nodes.size()));
}

void Segments::find_names(Segment& segment) const {
  const GraphMessage& graph = source_.message.graph;
  std::set<std::string_view> known;  // computed or noted
  const auto read = [&](std::string_view name) {
    if (!known.insert(name).second) return;
    if (source_.constants.contains(name)) segment.constants.push_back(name);
    const bool is_input =
        std::ranges::find(declared_, name, &ValueMessage::name) != declared_.end();
    if (is_input || computed_by_.contains(name)) segment.in.push_back(name);
  };
  if (segment.kind == Segment::Kind::Whole)
    for (const ValueMessage* input : declared_) read(input->name);
  for (size_t i = segment.first; i < segment.last; ++i) {
    for_each_read(graph.nodes[i], read);
    for (const std::string_view name : graph.nodes[i].outputs) {
      known.insert(name);
      const auto use = last_use_.find(name);
      const bool is_read = use != last_use_.end() && use->second >= segment.last;
      if (is_read && segment.kind != Segment::Kind::Whole) segment.out.push_back(name);
    }
  }
  if (segment.kind != Segment::Kind::Whole) return;
  for (const ValueMessage& output : graph.outputs) {
    read(output.name);
    segment.out.push_back(output.name);
  }
}

std::vector<Value> Segments::run(Segment& segment, Values& values) {
  std::vector<Value> given;
  for (const std::string_view name : segment.in) {
    const auto at = values.find(name);
    if (at == values.end()) {
      given.emplace_back();
      continue;
    }
    Value& value = at->second;
    if (deciding_.contains(name) && !value.known() && may_decide(value)) {
      const Tensor& x = value.tensor();
      value = Value::known(values_in_memory(x.to_bytes(), x.shape(), x.dtype()), x)
                  .as(value.emulated());
    }
    given.push_back(value);
  }
  const auto can_decide = [&](const NeedsHostValues& needs) {
    std::set<std::string_view> deciding;
    return decide(segment, needs, values, deciding);
  };
  return segment.run(source_, given, &open_sizes_, can_decide);
}

// Adds the values that the segment is given and computes the name of; false if one of these has
// many elements, of which more than the sizes matter, or if the name is random.
bool Segments::add_leaves(std::string_view name, const Segment& segment, const Values& values,
                          std::set<std::string_view>& leaves) const {
  std::vector<std::string_view> open{name};
  std::set<std::string_view> seen;
  while (!open.empty()) {
    name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) continue;
    if (const auto at = values.find(name); at != values.end()) {
      if (!may_decide(at->second)) return false;
      if (is_float(at->second.tensor().dtype()) && seen.size() > 1) return false;
      leaves.insert(name);
      continue;
    }
    const auto at = computed_by_.find(name);
    if (at == computed_by_.end() || at->second < segment.first) continue;  // a constant
    const NodeMessage& node = source_.message.graph.nodes[at->second];
    const OperatorRow* const row = find_operator(canonical(node.domain), node.op);
    if (!row || row->is_random) return false;
    if (node.op == "Shape" || node.op == "Size") continue;
    for_each_read(node, [&](std::string_view read) { open.push_back(read); });
  }
  return true;
}

// Whether the call can be repeated with elements of the segment's inputs, which are added.
bool Segments::decide(const Segment& segment, const NeedsHostValues& needs, const Values& values,
                      std::set<std::string_view>& deciding) const {
  if (!needs.node || needs.is_data) return false;
  const NodeMessage& node = source_.message.graph.nodes[*needs.node];
  std::set<std::string_view> leaves;
  bool are_small = true;
  const auto add = [&](std::string_view name) {
    are_small = are_small && add_leaves(name, segment, values, leaves);
  };
  if (needs.input)
    add(node.inputs[*needs.input]);
  else
    for_each_read(node, add);
  if (!are_small || std::ranges::includes(deciding_, leaves)) return false;
  deciding.insert(leaves.begin(), leaves.end());
  return true;
}

// Whether the segment, which needs elements that its inputs do not give, could be cut.
bool Segments::cut(size_t segment, const NeedsHostValues& needs, const Values& values) {
  if (!needs.node) return false;
  const size_t node = *needs.node, first = segments_[segment].first, last = segments_[segment].last;
  std::vector<Segment> parts;
  const auto add = [&](Segment::Kind kind, size_t from, size_t to) {
    if (from < to) find_names(parts.emplace_back(kind, from, to));
  };
  const std::string_view name = needs.input && !needs.is_data
                                    ? source_.message.graph.nodes[node].inputs[*needs.input]
                                    : std::string_view();
  const auto at = computed_by_.find(name);
  add(Segment::Kind::Part, first, node);
  if (at != computed_by_.end() && at->second >= first && !values.contains(name)) {
    deciding_.insert(name);
    add(Segment::Kind::Part, node, last);
    cuts_ +=
        fmt::format("cut before {}: the elements of \"{}\" decide, and each value is recorded\n",
                    label_of(source_.message.graph.nodes[node]), name);
  } else {
    add(Segment::Kind::Host, node, node + 1);
    add(Segment::Kind::Part, node + 1, last);
    cuts_ += fmt::format("cut at {}: the host computes it, of the elements of what it reads\n",
                         label_of(source_.message.graph.nodes[node]));
  }
  if (debugging(1))
    debug_write(fmt::format("onnx: cut at {}\n", label_of(source_.message.graph.nodes[node])));
  const auto place = segments_.begin() + static_cast<std::ptrdiff_t>(segment);
  segments_.insert(segments_.erase(place), std::make_move_iterator(parts.begin()),
                   std::make_move_iterator(parts.end()));
  return static_cast<size_t>(std::ranges::count(segments_, Segment::Kind::Part, &Segment::kind)) <=
         kMostSegments;
}

std::optional<std::vector<Value>> Segments::call(const std::vector<Value>& given) {
  ++source_.calls;
  auto results = run_all(given);
  if (!results) ++whole_calls_;
  return results;
}

std::optional<std::vector<Value>> Segments::run_all(const std::vector<Value>& given) {
  if (is_given_up_) return {};
  Values values;
  bool may_cut = can_be_cut_ && !jit_detail::is_part_of_recording();
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_given()) continue;
    may_cut &= !tensor::has_variable_size(given[i].tensor());
    values.emplace(declared_[i]->name, given[i]);
  }
  if (segments_.size() != 1 && !may_cut) return {};
  for (size_t i = 0; i < segments_.size();) {
    std::vector<Value> results;
    try {
      results = run(segments_[i], values);
    } catch (const NeedsHostValues& needs) {
      if (decide(segments_[i], needs, values, deciding_)) continue;
      if (may_cut && cut(i, needs, values)) continue;
      is_given_up_ = may_cut || !can_be_cut_;
      given_up_because_ = fmt::format(
          "{} needs elements on the host, and {}",
          needs.node ? label_of(source_.message.graph.nodes[*needs.node]) : "a node",
          can_be_cut_ ? fmt::format("the graph would have more than {} segments", kMostSegments)
                      : "a graph with Gradient nodes is not cut");
      return {};
    }
    const Segment& segment = segments_[i++];
    for (size_t k = 0; k < results.size(); ++k) {
      if (results[k].is_given() && !results[k].is_tensor()) {
        is_given_up_ = true;
        given_up_because_ =
            fmt::format("\"{}\", where the graph is cut, is no tensor of numbers", segment.out[k]);
      }
      values.insert_or_assign(segment.out[k], std::move(results[k]));
    }
    if (is_given_up_) return {};
    std::erase_if(values, [&](const auto& entry) {
      const auto use = last_use_.find(entry.first);
      return use == last_use_.end() || use->second < segment.last;
    });
  }
  std::vector<Value> outputs;
  for (const ValueMessage& output : source_.message.graph.outputs) {
    const auto at = values.find(output.name);
    outputs.push_back(at != values.end() ? at->second : source_.constants.at(output.name));
    require_declared(outputs.back(), output);
  }
  return outputs;
}

// "nodes 2 to 5".
std::string Segments::name_of(const Segment& segment) const {
  return segment.last - segment.first == 1
             ? label_of(source_.message.graph.nodes[segment.first])
             : fmt::format("nodes {} to {}", segment.first + 1, segment.last);
}

std::string Segments::explain() const {
  const bool is_whole = segments_[0].kind == Segment::Kind::Whole;
  std::string text = fmt::format("{} calls", source_.calls);
  if (whole_calls_ > 0) text += fmt::format(", {} recorded anew", whole_calls_);
  if (is_given_up_) return text + ": " + given_up_because_ + "\n";
  text += is_whole ? ": " : fmt::format(" in {} segments\n{}", segments_.size(), cuts_);
  std::string advice = open_sizes_.explain();
  bool has_shapes = false;
  for (const Segment& segment : segments_) {
    if (segment.kind == Segment::Kind::Host) continue;
    text += (is_whole ? "" : name_of(segment) + ": ") + segment.explain();
    advice += segment.explain_sizes();
    has_shapes |= segment.history().has(engine::Cause::Shape);
  }
  if (has_shapes && !open_sizes_.has_bounds())
    text +=
        "- each shape has a recording of its own until a size has had three values; bounds, given "
        "to load(), make one that serves all sizes from the first call on\n";
  return text + advice;
}

std::string Segments::contradiction(const std::vector<Value>& given) const {
  std::vector<size_t> inputs;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_tensor()) continue;
    inputs.push_back(i);
    tensors.push_back(given[i].tensor());
  }
  return open_sizes_.contradiction(inputs, tensors);
}

}  // namespace plugrad::onnx
