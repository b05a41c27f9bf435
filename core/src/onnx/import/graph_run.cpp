#include "onnx/import/graph_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <set>
#include <unordered_map>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/file/attribute_check.h"
#include "onnx/file/graph_check.h"
#include "onnx/import/declared.h"
#include "onnx/import/strings_as_ids.h"
#include "plugrad/source_scope.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr int kMostDepth = 100;        // of functions and subgraphs in one another
constexpr int64_t kMostFolded = 4096;  // elements of a result that the host computes
constexpr size_t kMostNodesNamed = 4;  // in an error

// Whether the host computes the node: all its inputs are known, and it gives the same each time.
bool folds(const NodeMessage& node, const OperatorRow& row, const std::vector<Value>& inputs) {
  if (row.is_random) return false;
  if (std::ranges::any_of(node.attributes, [](const auto& a) { return !a.graphs.empty(); }))
    return false;
  return std::ranges::all_of(inputs,
                             [](const Value& value) { return !value.is_given() || value.known(); });
}

Value folded(Value value) {
  if (!value.is_tensor() || value.known() || value.tensor().numel() > kMostFolded) return value;
  auto values = tensor::host_values(value.tensor());
  if (!values) return value;
  values->dtype = strong(values->dtype);
  return Value::known(std::move(*values)).as(value.emulated());
}

// The emulated type of the elements that the operator moves.
DataType moved_type(const std::vector<Value>& inputs) {
  for (const Value& input : inputs)
    if (input.emulated() != DataType::Undefined) return input.emulated();
  return DataType::Undefined;
}

// The function's node with the attributes of its call in place of references to them.
NodeMessage with_attributes(const NodeMessage& node, const NodeMessage& call,
                            const FunctionMessage& function) {
  NodeMessage resolved = node;
  resolved.attributes.clear();
  for (const AttributeMessage& attribute : node.attributes) {
    if (attribute.referenced.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto add_from = [&](const std::vector<AttributeMessage>& list) {
      const auto at = std::ranges::find(list, attribute.referenced, &AttributeMessage::name);
      if (at == list.end()) return false;
      resolved.attributes.push_back(*at);
      resolved.attributes.back().name = attribute.name;
      return true;
    };
    if (!add_from(call.attributes)) add_from(function.defaults);
  }
  return resolved;
}

bool has_references(const NodeMessage& node) {
  return std::ranges::any_of(node.attributes, [](const auto& a) { return !a.referenced.empty(); });
}

// The node's name, or the value that it computes.
std::string_view traced_name(const NodeMessage& node) {
  return node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
}

}  // namespace

struct GraphRun::Scope {
  std::unordered_map<std::string_view, Value> values;
  const Scope* outer = nullptr;
  std::span<const NodeMessage> done;  // the nodes that were run

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer)
      if (const auto at = scope->values.find(name); at != scope->values.end()) return &at->second;
    return nullptr;
  }
};

struct GraphRun::Opsets {
  const std::vector<Opset>& list;
  std::int64_t of(std::string_view domain) const {
    for (const Opset& opset : list)
      if (canonical(opset.domain) == canonical(domain)) return opset.version;
    return 1;
  }
};

// A function or subgraph that runs.
class GraphRun::Level {
 public:
  Level(GraphRun& run, std::string_view what, std::string_view name) : run_(run) {
    require(run_.depth_ < kMostDepth, "[onnx] {} \"{}\" is nested too deep", what, shown(name));
    ++run_.depth_;
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  ~Level() { --run_.depth_; }

 private:
  GraphRun& run_;
};

// The result of `run`. Its errors get the node's name, but for those of an inner node.
template <class Run>
auto GraphRun::named(const NodeMessage& node, Run run) {
  const std::string begin = fmt::format("[onnx] {}: ", label_of(node));
  const auto with_name = [&](std::string_view what) {
    constexpr std::string_view kPrefix = "[onnx] ";
    if (!what.starts_with(begin)) {
      if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
      named_ = begin + std::string(what);
    } else {
      named_ = what;
    }
    return named_;
  };
  const auto is_named = [&](std::string_view what) {
    return !named_.empty() && what.starts_with(named_);
  };
  try {
    return run();
  } catch (const OutOfMemoryError& error) {
    if (is_named(error.what())) throw;
    throw OutOfMemoryError(error.size_bytes(), with_name(error.what()));
  } catch (const Error& error) {
    if (is_named(error.what())) throw;
    throw_error(error.kind(), with_name(error.what()), error.reason());
  } catch (const std::bad_alloc&) {
    throw OutOfMemoryError(0, with_name("the host's memory is used up"));
  } catch (const std::length_error&) {
    throw_error(ErrorKind::User, with_name("a list for it would be too long"));
  } catch (const std::out_of_range&) {
    throw_error(ErrorKind::User, with_name("an input or attribute has too few elements"));
  }
}

GraphRun::GraphRun(const ModelMessage& model, ModelFiles& files, bool is_jitted,
                   std::string_view file_name, tensor::SizeArithmetic* sizes,
                   bool sizes_are_inferred)
    : model_(model),
      files_(files),
      is_jitted_(is_jitted),
      file_name_(file_name),
      sizes_(sizes),
      sizes_are_inferred_(sizes_are_inferred) {}

std::vector<Value> GraphRun::outputs_of_model(const std::map<std::string_view, Value>& inputs) {
  Scope given;
  for (const auto& [name, value] : inputs) given.values.emplace(name, value);
  std::vector<Value> in_order;
  for (const ValueMessage& input : model_.graph.inputs) {
    const Value* const value = given.find(input.name);
    in_order.push_back(value ? *value : Value());  // an initializer is the default
  }
  std::vector<Value> outputs = run(model_.graph, in_order, nullptr, {model_.opsets});
  for (size_t i = 0; i < outputs.size(); ++i) require_declared(outputs[i], model_.graph.outputs[i]);
  return outputs;
}

std::vector<Value> GraphRun::outputs_of_nodes(size_t first, size_t last,
                                              const std::map<std::string_view, Value>& given,
                                              std::span<const std::string_view> names) {
  const Level level(*this, "graph", model_.graph.name);
  Scope scope;
  scope.values.insert(given.begin(), given.end());
  run_nodes(std::span(model_.graph.nodes).first(last), scope, {model_.opsets}, first);
  std::vector<Value> values;
  for (const std::string_view name : names) {
    const Value* const value = scope.find(name);
    values.push_back(value ? *value : Value());
  }
  return values;
}

std::vector<Value> GraphRun::run(const GraphMessage& graph, const std::vector<Value>& inputs,
                                 const Scope* outer, const Opsets& opsets) {
  const Level level(*this, "graph", graph.name);
  Scope scope;
  scope.outer = outer;
  for (const TensorMessage& tensor : graph.constants)
    scope.values.emplace(tensor.name, files_.constant(tensor));
  for (const SparseTensorMessage& tensor : graph.sparse_constants)
    scope.values.emplace(tensor.values.name, files_.constant(tensor));
  for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i)
    if (inputs[i].is_given() || !scope.values.contains(graph.inputs[i].name))
      scope.values.insert_or_assign(graph.inputs[i].name, inputs[i]);
  count_work(graph.name);
  run_nodes(graph.nodes, scope, opsets);
  std::vector<Value> outputs;
  for (const ValueMessage& output : graph.outputs) {
    const Value* const value = scope.find(output.name);
    ensure(value != nullptr, "no node computes the output {}", shown(output.name));
    outputs.push_back(*value);
  }
  return outputs;
}

// Errors: User once a call has done more than it may; what the interruption check throws.
void GraphRun::count_work(std::string_view of) {
  poll_interruption();
  require(
      ++work_ <= kMostNodes,
      "[onnx] \"{}\": the call ran more than {} nodes with the steps of loops; does a loop end?",
      shown(of), kMostNodes);
}

void GraphRun::run_nodes(std::span<const NodeMessage> nodes, Scope& scope, const Opsets& opsets,
                         size_t first) {
  for (size_t index = first; index < nodes.size(); ++index) {
    const NodeMessage& node = nodes[index];
    count_work(traced_name(node));
    scope.done = nodes.first(index);
    const SourceScope source(file_name_, static_cast<unsigned>(index + 1), traced_name(node));
    std::vector<Value> results;
    try {
      results = results_of(node, scope, opsets);
    } catch (NeedsHostValues& needs) {
      needs.node = index;
      if (nodes.data() != model_.graph.nodes.data()) needs.input.reset();
      throw;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty())
        scope.values.insert_or_assign(node.outputs[i],
                                      i < results.size() ? std::move(results[i]) : Value());
  }
}

std::vector<Value> GraphRun::results_of(const NodeMessage& node, const Scope& scope,
                                        const Opsets& opsets) {
  std::vector<Value> inputs;
  for (const std::string_view name : node.inputs) {
    const Value* const value = name.empty() ? nullptr : scope.find(name);
    ensure(name.empty() || value, "no earlier node has {}", shown(name));
    inputs.push_back(value ? *value : Value());
  }
  if (const FunctionMessage* function = function_of(model_, node))
    return call_function(*function, node, std::move(inputs));
  return named(node, [&] { return run_operator(node, std::move(inputs), scope, opsets); });
}

std::vector<Value> GraphRun::run_operator(const NodeMessage& node, std::vector<Value> inputs,
                                          const Scope& scope, const Opsets& opsets) {
  const OperatorRow* const row = find_operator(canonical(node.domain), node.op);
  ensure(row != nullptr, "operator {} was not found before", node.op);
  const bool is_of_variable_sizes = sizes_ && has_variable_sizes(node, *row, inputs);
  const size_t moved = moved_results(node);
  const StringIds ids(moved > 0 || compares_elements(node) ? inputs : std::vector<Value>());
  if (ids.is_needed())
    for (Value& input : inputs) input = ids.ids_of(input);
  const DataType type = moved > 0 ? moved_type(inputs) : DataType::Undefined;
  const bool is_folded = folds(node, *row, inputs);
  ++nodes_;
  if (is_folded) ++folded_nodes_;
  Recording recording{&files_, is_jitted_, sizes_, sizes_are_inferred_, {}, {}};
  recording.run = [&](const GraphMessage& graph, const std::vector<Value>& given) {
    return run(graph, given, &scope, opsets);
  };
  recording.recompute = [&](const auto& given, std::string_view wanted) {
    return recomputed(given, wanted, scope, opsets);
  };
  Call call(node, opsets.of(node.domain), std::move(inputs), is_folded, recording);
  std::vector<Value> results = row->function(call);
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_folded) results[i] = folded(std::move(results[i]));
    if (sizes_) results[i] = settled(std::move(results[i]), is_of_variable_sizes, call);
    if (i >= moved) continue;
    if (ids.is_needed()) results[i] = ids.strings_of(results[i], is_jitted_);
    if (type != DataType::Undefined) results[i] = results[i].as(type);
  }
  return results;
}

// Whether an input has a variable size. Errors: NeedsExactSizes if the operator does not take it.
bool GraphRun::has_variable_sizes(const NodeMessage& node, const OperatorRow& row,
                                  const std::vector<Value>& inputs) const {
  const bool found = std::ranges::any_of(inputs, [](const Value& input) {
    const auto* const elements = input.elements();
    return elements
               ? !elements->empty()
               : input.is_tensor() && !input.known() && tensor::has_variable_size(input.tensor());
  });
  if (found && !row.takes_variable_sizes)
    throw NeedsExactSizes{fmt::format("{} takes no variable sizes", label_of(node))};
  return found;
}

// In a recording with variable sizes: known, if the elements are the same for all sizes; and not
// of any size that another operand may have. Errors: NeedsExactSizes if its size is not clear.
Value GraphRun::settled(Value value, bool is_of_variable_sizes, const Call& call) const {
  if (!value.is_tensor() || value.known()) return value;
  Tensor x = value.tensor();
  bool are_sizes = false;
  if (!is_float(x.dtype()) && x.numel() <= kMostSizes) {
    const auto elements = sizes_->elements(x);
    are_sizes = elements.has_value();
    if (elements && std::ranges::none_of(*elements, &tensor::SizeValue::varies)) {
      tensor::HostValues numbers{x.shape(), strong(x.dtype()), {}};
      for (const auto& each : *elements) numbers.bits.push_back(static_cast<uint64_t>(each.least));
      return Value::known(std::move(numbers)).as(value.emulated());
    }
  }
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    if (!tensor::SizeArithmetic::takes_any_size(x, axis)) continue;
    if (is_of_variable_sizes && !are_sizes) call.needs_exact_sizes("loses a variable size");
    x = call.with_fixed_size(x, axis);
  }
  return Value(sizes_->with_equal_counts(x)).as(value.emulated());
}

std::vector<Value> GraphRun::call_function(const FunctionMessage& function, const NodeMessage& node,
                                           std::vector<Value> inputs) {
  const Level level(*this, "function", function.name);
  Scope scope;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    scope.values.emplace(function.inputs[i], i < inputs.size() ? inputs[i] : Value());
  std::vector<NodeMessage> nodes;
  for (const NodeMessage& each : function.nodes) {
    nodes.push_back(with_attributes(each, node, function));
    const OperatorSchema* const schema = has_references(each) && !function_of(model_, each)
                                             ? find_schema(canonical(each.domain), each.op)
                                             : nullptr;
    if (schema) require_attributes(nodes.back(), *schema);
  }
  run_nodes(nodes, scope, {function.opsets.empty() ? model_.opsets : function.opsets});
  std::vector<Value> outputs;
  for (const std::string_view name : function.outputs) {
    const Value* const value = scope.find(name);
    outputs.push_back(value ? *value : Value());
  }
  return outputs;
}

// Runs the nodes that lead from the given names to the wanted one; other values stay.
Value GraphRun::recomputed(const std::map<std::string_view, Value>& given, std::string_view wanted,
                           const Scope& scope, const Opsets& opsets) {
  const Level level(*this, "the gradient of", wanted);
  Scope inner;
  inner.outer = &scope;
  inner.values.insert(given.begin(), given.end());
  std::set<std::string_view> changed;
  for (const auto& [name, value] : given) changed.insert(name);
  std::vector<NodeMessage> nodes;
  for (const NodeMessage& node : scope.done) {
    const bool is_changed =
        std::ranges::any_of(node.attributes, [](const auto& a) { return !a.graphs.empty(); }) ||
        std::ranges::any_of(node.inputs, [&](auto name) { return changed.contains(name); });
    const bool is_given =
        std::ranges::any_of(node.outputs, [&](auto name) { return given.contains(name); });
    if (!is_changed || is_given) continue;
    nodes.push_back(node);
    for (const std::string_view name : node.outputs)
      if (!name.empty()) changed.insert(name);
  }
  run_nodes(nodes, inner, opsets);
  const Value* const value = inner.find(wanted);
  return value ? *value : Value();
}

const FunctionMessage* function_of(const ModelMessage& model, const NodeMessage& node) {
  for (const FunctionMessage& function : model.functions)
    if (function.name == node.op && canonical(function.domain) == canonical(node.domain) &&
        function.overload == node.overload)
      return &function;
  return nullptr;
}

namespace {

using Missing = std::map<std::string, std::vector<std::string>>;

void look(const ModelMessage& model, const std::vector<NodeMessage>& nodes, Missing& missing) {
  for (const NodeMessage& node : nodes) {
    for (const AttributeMessage& attribute : node.attributes)
      for (const auto& graph : attribute.graphs) look(model, graph->nodes, missing);
    const std::string_view domain = canonical(node.domain);
    if (function_of(model, node) || find_operator(domain, node.op)) continue;
    missing[domain.empty() ? shown(node.op) : fmt::format("{}.{}", shown(domain), shown(node.op))]
        .push_back(node.name.empty() ? fmt::format("at byte {}", node.offset)
                                     : fmt::format("\"{}\"", shown(node.name)));
  }
}

}  // namespace

Missing missing_operators(const ModelMessage& model) {
  Missing missing;
  look(model, model.graph.nodes, missing);
  for (const FunctionMessage& function : model.functions) look(model, function.nodes, missing);
  return missing;
}

void require_operators(const ModelMessage& model) {
  std::string text;
  for (const auto& [op, nodes] : missing_operators(model)) {
    const auto shown = std::span(nodes).first(std::min(nodes.size(), kMostNodesNamed));
    text += fmt::format("\n  {} ({}{})", op, fmt::join(shown, ", "),
                        nodes.size() > kMostNodesNamed
                            ? fmt::format(" and {} more", nodes.size() - kMostNodesNamed)
                            : "");
  }
  if (!text.empty())
    fail(ErrorKind::Unsupported, "[onnx] the model needs operators that plugrad does not have:{}",
         text);
}

}  // namespace plugrad::onnx
