#include "codegen/emit/loop_writer.h"

#include "ir/facts.h"
#include "ir/range.h"

namespace plugrad::codegen {

uint32_t LoopWriter::constant(DType dtype, int64_t n) const {
  return writer_.inst(PGR_OP_CONST, dtype, 1, {}, static_cast<uint64_t>(n));
}

std::pair<uint32_t, uint32_t> LoopWriter::bounds(Id loop) const {
  const Node& n = graph_[loop];
  if (is_bounded(n)) return {values_[n.src[1]], values_[n.src[2]]};
  return {constant(n.dtype, 0), values_[n.src[0]]};
}

uint32_t LoopWriter::open(Id loop) const {
  const auto [begin, end] = bounds(loop);
  return writer_.inst(PGR_OP_LOOP, graph_[loop].dtype, 1, {begin, end});
}

uint32_t LoopWriter::open_parts(Id loop, int64_t step) const {
  const DType dtype = graph_[loop].dtype;
  const int64_t count = (range_size(graph_, loop) + step - 1) / step;
  return writer_.inst(PGR_OP_LOOP, dtype, 1, {constant(dtype, 0), constant(dtype, count)});
}

uint32_t LoopWriter::open_part(Id loop, uint32_t part, int64_t step) const {
  const DType dtype = graph_[loop].dtype;
  const int64_t size = range_size(graph_, loop);
  const uint32_t width = constant(dtype, step);
  const uint32_t begin = writer_.inst(PGR_OP_MUL, dtype, 1, {part, width});
  uint32_t end = writer_.inst(PGR_OP_ADD, dtype, 1, {begin, width});
  if (size % step != 0) {
    const uint32_t last = constant(dtype, size);
    const uint32_t fits = writer_.inst(PGR_OP_CMPLT, DType::Bool, 1, {end, last});
    end = writer_.inst(PGR_OP_WHERE, dtype, 1, {fits, end, last});
  }
  return writer_.inst(PGR_OP_LOOP, dtype, 1, {begin, end});
}

}  // namespace plugrad::codegen
