// Turns nodes of tensor graphs into nodes of an ONNX graph.
//   sum over k of expand(x) * expand(w)   ->   MatMul(x, w)
//   where(x < 0, 0, x)                    ->   Where(Less(x, 0), 0, x)
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/session.h"
#include "onnx/export/graph_writer.h"
#include "onnx/export/recognised.h"

namespace plugrad::onnx {

/// A node whose value is not computed.
struct NamedNode {
  std::function<std::string()> name;  // in the file
  bool is_input = false;              // else a parameter, the same in each run
};
using NamedNodes = std::unordered_map<Id, NamedNode>;

/// Floats of 8 and 16 bits, for which ONNX Runtime has few operators.
inline bool is_small_float(DType dtype) {
  return is_float(dtype) && dtype != DType::WeakFloat && size_of(dtype) < 4;
}

/// The dtype in which ONNX Runtime computes values of the dtype.
DType wide(DType dtype);

/// Whether the node shows the same elements as its first source, such as Detach.
inline bool is_alias(Op op) {
  return op == Op::Detach || op == Op::Contiguous || op == Op::Copy || op == Op::Function;
}

class Translation {
 public:
  Translation(engine::Session& session, GraphWriter& to, const NamedNodes& given);
  /// Translates what the roots need. Errors: Unsupported, with every node that ONNX cannot express.
  void translate(const std::vector<Id>& roots);
  /// The name of a translated root, in its strong dtype.
  std::string root(Id id);

 private:
  // Which nodes are needed, and how each is computed.
  void plan(const std::vector<Id>& roots);
  /// Whether the node has no elements, so that nothing is computed for it.
  bool is_empty(Id id);
  std::vector<Id> operands(Id id);
  void refuse_unsupported(const std::vector<Id>& nodes);

  /// A value with the elements of a node, in any shape.
  struct Elements {
    std::string value;
    List shape;
  };
  Elements translated(Id id);
  std::string movement(Id id);
  std::string reduction(Id id);
  /// The sum or product of 64-bit integers over the axes, as a column.
  std::string sum_of_integers(Id source, const List& axes);
  std::string product_of_integers(Id source, const List& axes);
  /// A matrix of 64-bit integers whose last axis is those axes.
  std::string rows(Id source, const List& axes);
  std::string elementwise(Id id);
  std::string unary(Id id);
  std::string division(Id id);
  std::string shift(Id id);
  std::string constant(Id id);
  std::string bitcast(Id id);
  std::string bits_of(Id value, DType dtype);
  std::string value_of(Id bits, DType dtype);
  /// An output of a loop with one recorded step, which becomes a Scan.
  std::string loop(Id id);
  std::vector<std::string> scan(Id id);

  Elements of(Id id, std::monostate none);
  Elements of(Id id, const MatMulNode& node);
  Elements of(Id id, const ConvNode& node);
  Elements of(Id id, const PoolNode& node);
  Elements of(Id id, const GatherNode& node);
  Elements of(Id id, const UnaryNode& node);
  /// `value` with the axes in this order, as a stack of matrices.
  std::string matrix(Id value, const List& batch, const List& first, const List& second);

  /// The translated node in its shape.
  const std::string& name(Id id);
  DType dtype(Id id) { return graph_[id].dtype; }
  List shape(Id id) { return autodiff::shape_of(context_, id); }
  std::string cast(const std::string& value, DType from, DType to);
  /// The node in another dtype; each once.
  std::string in(Id id, DType dtype);
  std::string number(DType dtype, double value);
  std::string number(DType dtype, double real, std::int64_t whole);
  std::string pad(const std::string& value, DType dtype, const List& pads);
  std::string expand(const std::string& value, DType dtype, const List& shape);
  std::string reshape(const std::string& value, const List& shape);
  std::string where(const std::string& condition, const std::string& yes, const std::string& no,
                    DType dtype);
  std::string where(const std::string& condition, const std::string& yes, const std::string& no) {
    return to_.node("Where", {condition, yes, no});
  }

  engine::Session& session_;
  Graph& graph_;
  GraphWriter& to_;
  const NamedNodes& given_;
  autodiff::Context context_;
  std::vector<Id> needed_;  // ascending
  std::unordered_map<Id, MatchedOperator> operators_;
  std::unordered_map<Id, std::vector<Id>> operands_;
  std::unordered_map<Id, Elements> elements_;
  std::unordered_map<Id, std::string> names_;  // of nodes whose shape was asked for
  std::unordered_map<Id, bool> is_constant_;
  std::map<std::pair<Id, DType>, std::string> casts_;
  std::map<std::pair<List, std::vector<Id>>, std::vector<std::string>> loops_;  // names of outputs
};

}  // namespace plugrad::onnx
