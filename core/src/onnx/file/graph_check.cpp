#include "onnx/file/graph_check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/file/attribute_check.h"

namespace plugrad::onnx {
namespace {

constexpr int kMostCalls = 100;  // of functions in one another

// The names that nodes of a graph may read: its own, and those around its node.
struct Names {
  std::unordered_set<std::string_view> own;
  const Names* outer = nullptr;

  bool contains(std::string_view name) const {
    for (const Names* names = this; names; names = names->outer)
      if (names->own.contains(name)) return true;
    return false;
  }
};

class Checker {
 public:
  explicit Checker(const ModelMessage& model) {
    for (const FunctionMessage& function : model.functions)
      functions_.emplace(std::tuple(canonical(function.domain), function.name, function.overload),
                         &function);
  }

  void check(const GraphMessage& graph, const Names* outer) {
    Names names{{}, outer};
    for (const ValueMessage& input : graph.inputs)
      if (!names.own.insert(input.name).second)
        fail(ErrorKind::User, "[onnx] graph \"{}\" declares its input \"{}\" twice",
             shown(graph.name), shown(input.name));
    std::unordered_set<std::string_view> constants;
    const auto add_constant = [&](std::string_view name) {
      if (!constants.insert(name).second)
        fail(ErrorKind::User, "[onnx] graph \"{}\" has two initialisers named \"{}\"",
             shown(graph.name), shown(name));
      names.own.insert(name);
    };
    for (const TensorMessage& tensor : graph.constants) add_constant(tensor.name);
    for (const SparseTensorMessage& tensor : graph.sparse_constants)
      add_constant(tensor.values.name);
    check(graph.nodes, names);
    for (const ValueMessage& output : graph.outputs)
      if (!names.contains(output.name))
        fail(ErrorKind::User, "[onnx] no node of graph \"{}\" computes its output \"{}\"",
             shown(graph.name), shown(output.name));
  }

  void check(const ModelMessage& model) {
    check(model.graph, nullptr);
    if (expanded(model.graph.nodes, 0).nodes > kMostNodes)
      fail(ErrorKind::User,
           "[onnx] the graph has more than {} nodes once its functions' nodes take the place of "
           "their calls",
           kMostNodes);
  }

  void check(const FunctionMessage& function) {
    Names names;
    for (const std::string_view input : function.inputs)
      if (!names.own.insert(input).second)
        fail(ErrorKind::User, "[onnx] function \"{}\" declares its input \"{}\" twice",
             shown(function.name), shown(input));
    check(function.nodes, names);
    for (const std::string_view output : function.outputs)
      if (!names.contains(output))
        fail(ErrorKind::User, "[onnx] no node of function \"{}\" computes its output \"{}\"",
             shown(function.name), shown(output));
    expanded(function, 0);
  }

 private:
  void check(const std::vector<NodeMessage>& nodes, Names& names) {
    for (const NodeMessage& node : nodes) {
      poll_interruption();
      for (const std::string_view name : node.inputs)
        if (!name.empty() && !names.contains(name))
          fail(ErrorKind::User,
               "[onnx] {} needs \"{}\", which no input, initialiser or earlier node gives",
               label_of(node), shown(name));
      check_form(node);
      for (const AttributeMessage& attribute : node.attributes)
        for (const auto& graph : attribute.graphs) check(*graph, &names);
      for (const std::string_view name : node.outputs)
        if (!name.empty() && !names.own.insert(name).second)
          fail(ErrorKind::User, "[onnx] {} computes \"{}\", which the graph has already",
               label_of(node), shown(name));
    }
  }

  // Attributes and the numbers of inputs and outputs, as the function or the operator has them.
  void check_form(const NodeMessage& node) const {
    size_t most_inputs = kMany, most_outputs = kMany;
    if (const FunctionMessage* const function = function_of(node)) {
      require_distinct_attributes(node);
      most_inputs = function->inputs.size();
      most_outputs = function->outputs.size();
    } else if (const OperatorSchema* const schema = find_schema(canonical(node.domain), node.op)) {
      require_attributes(node, *schema);
      most_inputs = static_cast<size_t>(schema->most_inputs);
      most_outputs = static_cast<size_t>(schema->most_outputs);
    }
    if (node.inputs.size() > most_inputs)
      fail(ErrorKind::User, "[onnx] {} has {} inputs, {} takes at most {}", label_of(node),
           node.inputs.size(), shown(node.op), most_inputs);
    if (node.outputs.size() > most_outputs)
      fail(ErrorKind::User, "[onnx] {} has {} outputs, {} gives at most {}", label_of(node),
           node.outputs.size(), shown(node.op), most_outputs);
  }

  const FunctionMessage* function_of(const NodeMessage& node) const {
    const auto at = functions_.find(std::tuple(canonical(node.domain), node.op, node.overload));
    return at == functions_.end() ? nullptr : at->second;
  }

  // The work of a list of nodes: how deep its functions call one another, and its nodes in all.
  struct Expanded {
    int height = 0;
    std::int64_t nodes = 0;  // up to kMostNodes + 1
  };

  Expanded expanded(const FunctionMessage& function, int above) {
    const auto refuse_if = [&](bool is_too_deep) {
      if (is_too_deep)
        fail(ErrorKind::User, "[onnx] function \"{}\" calls itself, or is nested too deep",
             shown(function.name));
    };
    if (const auto known = expanded_.find(&function); known != expanded_.end()) {
      refuse_if(above + known->second.height > kMostCalls);
      return known->second;
    }
    refuse_if(above > kMostCalls);
    const Expanded all = expanded(function.nodes, above);
    expanded_.emplace(&function, all);
    return all;
  }
  Expanded expanded(const std::vector<NodeMessage>& nodes, int above) {
    Expanded all;
    const auto add = [&](const Expanded& part) {
      all.height = std::max(all.height, part.height);
      all.nodes = std::min(all.nodes + part.nodes, kMostNodes + 1);
    };
    for (const NodeMessage& node : nodes) {
      add({0, 1});
      if (const FunctionMessage* const called = function_of(node)) {
        const Expanded below = expanded(*called, above + 1);
        add({below.height + 1, below.nodes});
      }
      for (const AttributeMessage& attribute : node.attributes)
        for (const auto& graph : attribute.graphs) add(expanded(graph->nodes, above));
    }
    return all;
  }

  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionMessage*>
      functions_;
  std::unordered_map<const FunctionMessage*, Expanded> expanded_;
};

}  // namespace

void require_sound(const ModelMessage& model) {
  Checker checker(model);
  for (const FunctionMessage& function : model.functions) checker.check(function);
  checker.check(model);
}

}  // namespace plugrad::onnx
