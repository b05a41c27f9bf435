// Records the operations of a model's graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file/messages.h"
#include "onnx/import/call.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {

/// One call of a model.
class GraphRun {
 public:
  /// Traces name nodes as "file_name:5", the fifth of its graph. `sizes`: of the inputs' axes;
  /// `sizes_are_inferred`: see Recording.
  GraphRun(const ModelMessage& model, ModelFiles& files, bool is_jitted,
           std::string_view file_name = {}, tensor::SizeArithmetic* sizes = nullptr,
           bool sizes_are_inferred = false);

  /// The graph's outputs. Errors: User, with the node's name; NeedsHostValues; NeedsExactSizes.
  std::vector<Value> outputs_of_model(const std::map<std::string_view, Value>& inputs);

  /// The values of names after nodes [first, last) of the main graph; not given if there are none.
  /// `given` has the values that the nodes read, also those of constants. Errors: as above;
  /// NeedsHostValues has the node.
  std::vector<Value> outputs_of_nodes(size_t first, size_t last,
                                      const std::map<std::string_view, Value>& given,
                                      std::span<const std::string_view> names);

  /// Nodes of operators that ran, and those of them that the host computed.
  size_t nodes() const { return nodes_; }
  size_t folded_nodes() const { return folded_nodes_; }

 private:
  struct Scope;
  struct Opsets;
  std::vector<Value> run(const GraphMessage& graph, const std::vector<Value>& inputs,
                         const Scope* outer, const Opsets& opsets);
  void run_nodes(std::span<const NodeMessage> nodes, Scope& scope, const Opsets& opsets,
                 size_t first = 0);
  class Level;
  void count_work(std::string_view of);
  template <class Run>
  auto named(const NodeMessage& node, Run run);
  std::vector<Value> results_of(const NodeMessage& node, const Scope& scope, const Opsets& opsets);
  std::vector<Value> run_operator(const NodeMessage& node, std::vector<Value> inputs,
                                  const Scope& scope, const Opsets& opsets);
  std::vector<Value> call_function(const FunctionMessage& function, const NodeMessage& node,
                                   std::vector<Value> inputs);
  bool has_variable_sizes(const NodeMessage& node, const OperatorRow& row,
                          const std::vector<Value>& inputs) const;
  Value settled(Value value, bool is_of_variable_sizes, const Call& call) const;
  Value recomputed(const std::map<std::string_view, Value>& given, std::string_view wanted,
                   const Scope& scope, const Opsets& opsets);

  const ModelMessage& model_;
  ModelFiles& files_;
  bool is_jitted_;
  std::string_view file_name_;
  tensor::SizeArithmetic* sizes_;
  bool sizes_are_inferred_;
  int depth_ = 0;  // of functions and subgraphs
  size_t nodes_ = 0, folded_nodes_ = 0;
  int64_t work_ = 0;   // nodes and graphs that ran
  std::string named_;  // the last error that has its node's name
};

/// The model's function that the node calls; null if it calls an operator.
const FunctionMessage* function_of(const ModelMessage& model, const NodeMessage& node);

/// The operators that plugrad does not have, each with names of its nodes.
std::map<std::string, std::vector<std::string>> missing_operators(const ModelMessage& model);

/// Errors: Unsupported, with all operators that plugrad does not have and the nodes that use them.
void require_operators(const ModelMessage& model);

}  // namespace plugrad::onnx
