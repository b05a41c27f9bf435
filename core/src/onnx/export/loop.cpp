// Loops with one recorded step (engine/execute/loop_body.h) become Scan. Arrays have their elements
// of a step at a stride, so that the Scan's body takes and gives padded rows.
#include "engine/execute/loop_body.h"
#include "ir/user.h"
#include "onnx/export/translation.h"

namespace plugrad::onnx {
namespace {

using engine::LoopBody;

/// A step in the session's graph, without aliases.
struct CopiedStep {
  std::vector<Id> inputs, roots;
};

CopiedStep copied(engine::Session& session, const LoopBody& body, std::uint32_t device) {
  const Graph& from = body.graph;
  Graph& to = session.graph();
  std::vector<Id> own(from.size(), kNoId);
  CopiedStep step;
  for (const Id id : body.inputs) {
    own[id] = session.placeholder(from.arg_list(id).subspan(2), from[id].dtype, device);
    step.inputs.push_back(own[id]);
  }
  Reachable reachable;
  for (const Id id : reachable.from(from, body.roots)) {
    if (own[id] != kNoId) continue;
    const Node& node = from[id];
    std::vector<Id> sources;
    for (const Id source : from.sources(id)) sources.push_back(own[source]);
    if (is_alias(node.op)) {
      own[id] = sources[0];
      continue;
    }
    const bool has_list = op_info(node.op).arg == ArgKind::List;
    own[id] =
        to.add(node.op, node.dtype, sources, has_list ? to.list(from.arg_list(id)) : node.arg);
  }
  for (const Id id : body.roots) step.roots.push_back(own[id]);
  return step;
}

}  // namespace

std::string Translation::loop(Id id) {
  const auto list = graph_.arg_list(id);
  List key(list.begin(), list.end());
  const auto output = static_cast<std::size_t>(std::exchange(key[1], 0));
  std::vector<std::string>& outputs = loops_[{std::move(key), operands_.at(id)}];
  if (outputs.empty()) outputs = scan(id);
  return outputs[output];
}

std::vector<std::string> Translation::scan(Id id) {
  const UserKernelArg arg(graph_.arg_list(id));
  const engine::LoopBodyPtr body = session_.loops()[arg.kernel() & ~kLoopBit];
  const std::vector<Id> sources = operands_.at(id);
  const CopiedStep step = copied(session_, *body, context_.devices[id]);
  const std::size_t states = body->states, stepped = body->stepped.size();
  std::vector<std::string> outer;
  std::vector<GraphWriter::Value> inputs, outputs, rows;
  for (const Id source : sources) name(source);  // outside of the body
  to_.begin_body();
  for (std::size_t i = 0; i < states + stepped; ++i) {
    List sizes = shape(sources[i]);
    if (i >= states) sizes.erase(sizes.begin());
    outer.push_back(name(sources[i]));
    inputs.push_back({to_.unique(i < states ? "state" : "row"), dtype(sources[i]), sizes});
  }
  NamedNodes given;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const std::size_t number = body->number_of[i];
    std::string value = number < inputs.size() ? inputs[number].name : name(sources[number]);
    if (number >= states && number < inputs.size()) {
      const List one = shape(step.inputs[i]);
      const std::string part =
          to_.node("Slice", {value, to_.integers({0}), to_.integers({element_count(one)})});
      value = reshape(part, one);
    }
    given[step.inputs[i]] = {[value] { return value; }, true};
  }
  Translation inner(session_, to_, given);
  inner.translate(step.roots);
  for (std::size_t i = 0; i < step.roots.size(); ++i) {
    const DType type = strong(dtype(step.roots[i]));
    const std::string value = inner.root(step.roots[i]);
    const std::int64_t count = body->arrays[i].elem_count;
    const std::int64_t stride = engine::loop_stride(count, type);
    if (i < states) outputs.push_back({to_.node("Identity", {value}), type, shape(step.roots[i])});
    rows.push_back({pad(reshape(value, {count}), type, {0, stride - count}), type, {stride}});
  }
  outputs.insert(outputs.end(), rows.begin(), rows.end());
  const std::int64_t direction = body->is_reversed ? 1 : 0;
  const auto number_of_rows = static_cast<std::int64_t>(stepped);
  std::vector<std::string> names =
      to_.add_with_body("Scan", outer, outputs.size(),
                        {{"num_scan_inputs", number_of_rows},
                         {"scan_input_directions", List(stepped, direction)},
                         {"scan_output_directions", List(rows.size(), direction)}},
                        inputs, outputs);
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(states));
  return names;
}

}  // namespace plugrad::onnx
