// Read access to the node of a UOp.
#include <ostream>

#include "ir/text/printer.h"
#include "tensor/uop/session_nodes.h"

namespace plugrad::ir {
std::string UOp::op() const {
  const Lock lock;
  return printed_name(graph()[node_of(*this, "op")].op);
}

DType UOp::dtype() const {
  const Lock lock;
  return graph()[node_of(*this, "dtype")].dtype;
}

std::vector<UOp> UOp::sources() const {
  const Lock lock;
  std::vector<UOp> result;
  for (Id s : graph().sources(node_of(*this, "sources")))
    result.push_back(tensor::uop_of(engine::Session::current().make(s)));
  return result;
}

std::vector<int64_t> UOp::arg() const {
  const Lock lock;
  const Node& n = graph()[node_of(*this, "arg")];
  switch (op_info(n.op).arg) {
    case ArgKind::List: {
      const auto list = graph().list(static_cast<ListId>(n.arg));
      return {list.begin(), list.end()};
    }
    case ArgKind::Int:
      return {static_cast<int64_t>(n.arg)};
    default:
      return {};
  }
}

Shape UOp::shape() const {
  const Lock lock;
  const auto sizes = engine::Session::current().shape(node_of(*this, "shape"));
  return {sizes.begin(), sizes.end()};
}

bool UOp::is_constant() const {
  const Lock lock;
  return is_const(graph(), node_of(*this, "is_constant"));
}

int64_t UOp::integer() const {
  const Lock lock;
  const Id id = node_of(*this, "integer");
  require(is_const(graph(), id) && !is_float(graph()[id].dtype),
          "[integer] {} is no integer constant", print_node(graph(), id));
  return const_int(graph(), id);
}

double UOp::number() const {
  const Lock lock;
  const Id id = node_of(*this, "number");
  require(is_const(graph(), id), "[number] {} is no constant", print_node(graph(), id));
  return const_float(graph(), id);
}

size_t UOp::size() const {
  const Lock lock;
  const Id id = node_of(*this, "size");
  Reachable reachable;
  return reachable.from(graph(), std::span(&id, 1)).size();
}

std::string UOp::to_string() const {
  if (!defined()) return "UOp(undefined)\n";
  const Lock lock;
  return print(graph(), state_->node, Numbering::FromZero);
}

bool operator==(const UOp& a, const UOp& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const Lock lock;
  return tensor::state_of(a)->node == tensor::state_of(b)->node;
}

std::ostream& operator<<(std::ostream& out, const UOp& node) {
  return out << node.to_string();
}

}  // namespace plugrad::ir
