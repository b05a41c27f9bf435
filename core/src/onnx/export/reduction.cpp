// Reductions that are no operator of a network.
#include "symbolic/reduction.h"

#include <algorithm>
#include <limits>

#include "onnx/export/translation.h"

namespace plugrad::onnx {
namespace {

std::int64_t count_along(const List& sizes, const List& axes) {
  std::int64_t count = 1;
  for (const std::int64_t axis : axes) count *= sizes[static_cast<std::size_t>(axis)];
  return count;
}

}  // namespace

std::string Translation::rows(Id source, const List& axes) {
  const List sizes = shape(source);
  List order, last;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const bool is_last = std::ranges::find(axes, axis) != axes.end();
    (is_last ? last : order).push_back(axis);
  }
  order.insert(order.end(), last.begin(), last.end());
  std::string x = in(source, DType::I64);
  if (!std::ranges::is_sorted(order)) x = to_.node("Transpose", {x}, {{"perm", order}});
  const std::int64_t count = count_along(sizes, axes);
  return reshape(x, {element_count(sizes) / count, count});
}

// ONNX Runtime adds and multiplies integers as doubles in its reductions, but exactly in MatMul and
// Mul.
std::string Translation::sum_of_integers(Id source, const List& axes) {
  const std::int64_t count = count_along(shape(source), axes);
  const std::string ones = to_.node("Expand", {number(DType::I64, 1), to_.integers({count, 1})});
  return to_.node("MatMul", {rows(source, axes), ones});
}

std::string Translation::product_of_integers(Id source, const List& axes) {
  std::int64_t count = count_along(shape(source), axes);
  std::string x = rows(source, axes);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return to_.node("Slice", {x, to_.integers({begin}), to_.integers({end}), to_.integers({1})});
  };
  while (count > 1) {
    const std::int64_t half = count / 2;
    std::string y = to_.node("Mul", {part(0, half), part(half, 2 * half)});
    if (count % 2 == 1) y = to_.node("Concat", {y, part(2 * half, count)}, {{"axis", 1}});
    x = y;
    count -= half;
  }
  return x;
}

std::string Translation::reduction(Id id) {
  const auto list = graph_.arg_list(id);
  const auto op = static_cast<Op>(list[0]);
  const List axes(list.begin() + 1, list.end());
  const Id source = operands_.at(id)[0];
  const DType own = dtype(id);
  if (element_count(shape(source)) == 0)
    return expand(constant(identity_of(graph_, op, own)), own, shape(id));
  if (op == Op::Add && (own == DType::I64 || own == DType::U64))
    return cast(reshape(sum_of_integers(source, axes), shape(id)), DType::I64, own);
  if (op == Op::Mul && is_integer(own))
    return cast(reshape(product_of_integers(source, axes), shape(id)), DType::I64, own);
  DType held = own;
  if (is_small_float(own)) held = DType::F32;
  if (!is_float(own) && own != DType::Index) held = DType::I64;
  // The order of u64 is that of i64 with the highest bit inverted.
  const bool flips = own == DType::U64 && op == Op::Max;
  const std::string highest =
      flips ? to_.number(DType::I64, 0, std::numeric_limits<std::int64_t>::min()) : "";
  std::string x = in(source, held);
  if (flips) x = to_.node("BitwiseXor", {x, highest});
  const std::string_view name_of_op = op == Op::Add   ? "ReduceSum"
                                      : op == Op::Mul ? "ReduceProd"
                                                      : "ReduceMax";
  std::string y = to_.node(name_of_op, {x, to_.integers(axes)}, {{"keepdims", 1}});
  if (flips) y = to_.node("BitwiseXor", {y, highest});
  return cast(y, held, own);
}

}  // namespace plugrad::onnx
