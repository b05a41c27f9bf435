#include "codegen/emit/ir_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/facts.h"
#include "ir/range.h"
#include "ir/round.h"

namespace plugrad::codegen {
namespace {

// Appends the bytes of a table and pads to 8; returns the offset.
uint32_t append(std::vector<std::byte>& out, const void* data, size_t size_bytes) {
  const size_t offset = out.size();
  out.resize((offset + size_bytes + 7) / 8 * 8);
  if (size_bytes != 0) std::memcpy(out.data() + offset, data, size_bytes);
  return static_cast<uint32_t>(offset);
}

template <class Row>
uint32_t append(std::vector<std::byte>& out, const std::vector<Row>& rows) {
  return append(out, rows.data(), rows.size() * sizeof(Row));
}

}  // namespace

uint32_t IrWriter::inst(uint16_t op, DType dtype, uint32_t lanes, std::span<const uint32_t> sources,
                        uint64_t arg) {
  pgr_ir_inst row{};
  row.op = op;
  row.dtype = static_cast<uint16_t>(dtype);
  row.lanes = static_cast<uint16_t>(lanes);
  row.src_count = static_cast<uint16_t>(sources.size());
  row.arg = arg;
  if (sources.size() <= 4) {
    std::ranges::copy(sources, row.src);
  } else {
    row.src[0] = static_cast<uint32_t>(operands_.size());
    operands_.insert(operands_.end(), sources.begin(), sources.end());
  }
  insts_.push_back(row);
  return static_cast<uint32_t>(insts_.size()) - 1;
}

std::span<const uint32_t> IrWriter::sources(uint32_t number) const {
  const pgr_ir_inst& row = insts_[number];
  return {row.src_count <= 4 ? row.src : operands_.data() + row.src[0], row.src_count};
}

uint32_t IrWriter::param(const pgr_ir_param& row) {
  params_.push_back(row);
  return static_cast<uint32_t>(params_.size()) - 1;
}

uint32_t IrWriter::array(const pgr_ir_array& row) {
  arrays_.push_back(row);
  return static_cast<uint32_t>(arrays_.size()) - 1;
}

std::vector<std::byte> IrWriter::finish(std::string_view name, const LaunchSize& size,
                                        uint32_t flags) const {
  std::vector<std::byte> out;
  pgr_ir_header header{};
  header.magic = PGR_IR_MAGIC;
  header.version = PGR_IR_VERSION;
  header.header_bytes = sizeof(header);
  header.flags = flags;
  std::copy_n(size.local_size, 3, header.local_size);
  std::copy_n(size.group_count, 3, header.group_count);
  append(out, &header, sizeof(header));
  header.param_offset = append(out, params_);
  header.param_stride = sizeof(pgr_ir_param);
  header.param_count = static_cast<uint32_t>(params_.size());
  header.array_offset = append(out, arrays_);
  header.array_stride = sizeof(pgr_ir_array);
  header.array_count = static_cast<uint32_t>(arrays_.size());
  header.inst_offset = append(out, insts_);
  header.inst_stride = sizeof(pgr_ir_inst);
  header.inst_count = static_cast<uint32_t>(insts_.size());
  header.operand_offset = append(out, operands_);
  header.operand_count = static_cast<uint32_t>(operands_.size());
  header.name_offset = append(out, name.data(), name.size());
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.total_bytes = out.size();
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

uint64_t ir_bits(const Graph& g, Id id) {
  return storage_bits(g[id].arg, g[id].dtype);
}

uint32_t LoopWriter::constant(DType dtype, int64_t n) const {
  return writer_.constant(dtype, static_cast<uint64_t>(n));
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
