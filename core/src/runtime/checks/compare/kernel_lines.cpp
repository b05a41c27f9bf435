#include "runtime/checks/compare/kernel_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "runtime/checks/compare/values.h"

namespace plugrad::runtime {
namespace {

constexpr uint64_t kMostRecords = 1 << 24;

// The records of one table, each cut or extended with zeros to this version's size.
template <class Record>
bool read_table(std::span<const std::byte> block, uint32_t offset, uint32_t stride, uint32_t count,
                std::vector<Record>& out) {
  if (count > kMostRecords || (count > 0 && stride == 0)) return false;
  if (offset > block.size() || uint64_t{stride} * count > block.size() - offset) return false;
  for (uint32_t i = 0; i < count; ++i) {
    Record record{};
    std::memcpy(&record, block.data() + offset + std::size_t{i} * stride,
                std::min<std::size_t>(stride, sizeof record));
    out.push_back(record);
  }
  return true;
}

uint64_t padded(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

template <class Record>
uint32_t append(std::vector<std::byte>& out, const std::vector<Record>& records) {
  const std::size_t at = padded(out.size());
  out.resize(padded(at + records.size() * sizeof(Record)));
  if (!records.empty())
    std::memcpy(out.data() + at, records.data(), records.size() * sizeof(Record));
  return static_cast<uint32_t>(at);
}

bool read_sources(const pgr_ir_inst& inst, std::span<const uint32_t> operands, uint32_t number,
                  std::vector<uint32_t>& out) {
  if (inst.src_count <= 4) {
    out.assign(inst.src, inst.src + inst.src_count);
  } else {
    if (inst.src[0] > operands.size() || inst.src_count > operands.size() - inst.src[0])
      return false;
    const auto first = operands.begin() + inst.src[0];
    out.assign(first, first + inst.src_count);
  }
  return std::ranges::all_of(out, [&](uint32_t source) { return source < number; });
}

struct OpRow {
  const char* name;
  uint32_t number, op_class;
};
constexpr OpRow kOps[] = {
#define PLUGRAD_ROW(NAME, Pascal, number, lo, hi, op_class, meaning) {#NAME, number, op_class},
    PGR_KERNEL_OPS(PLUGRAD_ROW)
#undef PLUGRAD_ROW
};

const OpRow* row_of(uint32_t op) {
  const auto at = std::ranges::find(kOps, op, &OpRow::number);
  return at == std::end(kOps) ? nullptr : &*at;
}

}  // namespace

std::optional<KernelLines> read_kernel_lines(std::span<const std::byte> block) {
  pgr_ir_header h{};
  if (block.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, block.data(), sizeof h);
  if (h.magic != PGR_IR_MAGIC || h.version / 100 != PGR_IR_VERSION / 100) return std::nullopt;
  if (h.name_offset > block.size() || h.name_bytes > block.size() - h.name_offset)
    return std::nullopt;
  KernelLines out;
  out.name.assign(reinterpret_cast<const char*>(block.data()) + h.name_offset, h.name_bytes);
  out.flags = h.flags;
  std::copy_n(h.group_count, 3, out.group_count.begin());
  std::copy_n(h.local_size, 3, out.local_size.begin());
  std::vector<pgr_ir_inst> insts;
  std::vector<uint32_t> operands;
  if (!read_table(block, h.param_offset, h.param_stride, h.param_count, out.params) ||
      !read_table(block, h.array_offset, h.array_stride, h.array_count, out.arrays) ||
      !read_table(block, h.inst_offset, h.inst_stride, h.inst_count, insts) ||
      !read_table(block, h.operand_offset, sizeof(uint32_t), h.operand_count, operands))
    return std::nullopt;
  for (const pgr_ir_inst& inst : insts) {
    KernelLines::Line line{inst.op, inst.dtype, inst.lanes, inst.arg, {}};
    const auto number = static_cast<uint32_t>(out.lines.size());
    if (!read_sources(inst, operands, number, line.sources)) return std::nullopt;
    out.lines.push_back(std::move(line));
  }
  return out;
}

std::vector<std::byte> KernelLines::encode() const {
  std::vector<pgr_ir_inst> insts;
  std::vector<uint32_t> operands;
  for (const Line& line : lines) {
    pgr_ir_inst inst{};
    inst.op = static_cast<uint16_t>(line.op);
    inst.dtype = static_cast<uint16_t>(line.dtype);
    inst.lanes = static_cast<uint16_t>(line.lanes);
    inst.src_count = static_cast<uint16_t>(line.sources.size());
    inst.arg = line.arg;
    if (line.sources.size() <= 4) {
      std::ranges::copy(line.sources, inst.src);
    } else {
      inst.src[0] = static_cast<uint32_t>(operands.size());
      operands.insert(operands.end(), line.sources.begin(), line.sources.end());
    }
    insts.push_back(inst);
  }
  pgr_ir_header h{};
  h.magic = PGR_IR_MAGIC;
  h.version = PGR_IR_VERSION;
  h.header_bytes = sizeof h;
  h.flags = flags;
  std::vector<std::byte> out(sizeof h);
  h.param_offset = append(out, params);
  h.array_offset = append(out, arrays);
  h.inst_offset = append(out, insts);
  h.operand_offset = append(out, operands);
  h.name_offset = append(out, std::vector<char>(name.begin(), name.end()));
  h.name_bytes = static_cast<uint32_t>(name.size());
  h.param_stride = sizeof(pgr_ir_param);
  h.array_stride = sizeof(pgr_ir_array);
  h.inst_stride = sizeof(pgr_ir_inst);
  h.param_count = static_cast<uint32_t>(params.size());
  h.array_count = static_cast<uint32_t>(arrays.size());
  h.inst_count = static_cast<uint32_t>(insts.size());
  h.operand_count = static_cast<uint32_t>(operands.size());
  std::ranges::copy(local_size, h.local_size);
  std::ranges::copy(group_count, h.group_count);
  h.total_bytes = out.size();
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

bool KernelLines::writes(uint32_t line) const {
  return lines[line].op == PGR_OP_STORE || lines[line].op == PGR_OP_ATOMIC_ADD;
}

bool KernelLines::is_pointer(uint32_t line) const {
  return lines[line].op == PGR_OP_ARRAY ||
         (lines[line].op == PGR_OP_PARAM && params[lines[line].arg].kind == PGR_PARAM_BUFFER);
}

bool KernelLines::opens(uint32_t line) const {
  return lines[line].op == PGR_OP_LOOP || lines[line].op == PGR_OP_IF;
}

uint32_t KernelLines::closer(uint32_t opener) const {
  for (uint32_t i = opener + 1; i < lines.size(); ++i)
    if ((lines[i].op == PGR_OP_END_LOOP || lines[i].op == PGR_OP_END_IF) &&
        lines[i].sources[0] == opener)
      return i;
  return opener;
}

bool KernelLines::is_parallel() const {
  for (int axis = 0; axis < 3; ++axis)
    if (group_count[axis] > 1 || local_size[axis] > 1) return true;
  return false;
}

bool KernelLines::has_op(uint32_t op) const {
  return std::ranges::any_of(lines, [&](const Line& line) { return line.op == op; });
}

void KernelLines::insert(uint32_t at, Line line) {
  for (Line& old : lines)
    for (uint32_t& source : old.sources) source += source >= at;
  lines.insert(lines.begin() + at, std::move(line));
}

void KernelLines::redirect(uint32_t from, uint32_t to) {
  for (uint32_t i = to + 1; i < lines.size(); ++i)
    if (i != from) std::ranges::replace(lines[i].sources, from, to);
}

void KernelLines::keep_groups(std::size_t axis, uint64_t first, uint64_t count) {
  group_count[axis] = count;
  for (uint32_t i = 0; first > 0 && i < lines.size(); ++i) {
    const Line id = lines[i];
    if (id.op != PGR_OP_GROUP_ID || id.arg != axis) continue;
    insert(i + 1, {PGR_OP_CONST, id.dtype, 1, first, {}});
    insert(i + 2, {PGR_OP_ADD, id.dtype, 1, 0, {i, i + 1}});
    redirect(i, i + 2);
  }
}

void KernelLines::remove(const std::function<bool(uint32_t)>& goes) {
  std::vector<uint32_t> number(lines.size());
  std::vector<Line> kept;
  for (uint32_t i = 0; i < lines.size(); ++i) {
    number[i] = static_cast<uint32_t>(kept.size());
    if (!goes(i)) kept.push_back(std::move(lines[i]));
  }
  for (Line& line : kept)
    for (uint32_t& source : line.sources) source = number[source];
  lines = std::move(kept);
}

void KernelLines::remove_unused() {
  std::vector<bool> used(lines.size());
  for (std::size_t i = lines.size(); i-- > 0;) {
    const bool stays =
        !has_value(static_cast<uint32_t>(i)) || lines[i].op == PGR_OP_LOOP || used[i];
    used[i] = stays && lines[i].op != PGR_OP_NOP;
    if (used[i])
      for (const uint32_t source : lines[i].sources) used[source] = true;
  }
  remove([&](uint32_t line) { return !used[line]; });
}

std::string op_name(uint32_t op) {
  const OpRow* row = row_of(op);
  return row ? row->name : fmt::format("op {}", op);
}

uint32_t op_class(uint32_t op) {
  const OpRow* row = row_of(op);
  return row ? row->op_class : PGR_OP_CLASS_STRUCTURE;
}

std::string dtype_name(uint32_t dtype) {
  switch (dtype) {
#define PLUGRAD_ROW(NAME, Pascal, number, size, text) \
  case number:                                        \
    return text;
    PGR_DTYPES(PLUGRAD_ROW)
#undef PLUGRAD_ROW
    default:
      return fmt::format("dtype {}", dtype);
  }
}

uint32_t claimed_dtype(const KernelLines& kernel, uint32_t number) {
  const KernelLines::Line& line = kernel.lines[number];
  const auto source = [&](std::size_t i) { return kernel.lines[line.sources[i]].dtype; };
  switch (line.op) {
    case PGR_OP_CAST:
    case PGR_OP_BITCAST:
    case PGR_OP_CMPLT:
    case PGR_OP_CMPEQ:
    case PGR_OP_CMPNE:
    case PGR_OP_WMMA:
      return source(0);
    case PGR_OP_STORE:
    case PGR_OP_ATOMIC_ADD:
      return source(2);
    case PGR_OP_ASYNC_COPY:
      return source(0);
    default:
      return line.dtype == PGR_DTYPE_VOID ? uint32_t{PGR_DTYPE_BOOL} : line.dtype;
  }
}

std::string operation_text(const KernelLines& kernel, uint32_t number) {
  const KernelLines::Line& line = kernel.lines[number];
  std::string out = op_name(line.op) + " " + dtype_name(claimed_dtype(kernel, number));
  if (line.op == PGR_OP_CAST || line.op == PGR_OP_BITCAST) out += " " + dtype_name(line.dtype);
  if (line.lanes > 1) out += fmt::format("x{}", line.lanes);
  return out;
}

std::string print(const KernelLines& kernel) {
  std::string out =
      fmt::format("kernel {}  groups {}  local {}\n", kernel.name,
                  fmt::join(kernel.group_count, "x"), fmt::join(kernel.local_size, "x"));
  std::size_t depth = 1;
  for (uint32_t i = 0; i < kernel.lines.size(); ++i) {
    const KernelLines::Line& line = kernel.lines[i];
    if (line.op == PGR_OP_END_LOOP || line.op == PGR_OP_END_IF) --depth;
    out += fmt::format("{:>4}{:{}}", i, "", 2 * depth);
    if (kernel.has_value(i)) {
      out += dtype_name(line.dtype);
      if (line.lanes > 1) out += fmt::format("x{}", line.lanes);
      out += " = ";
    }
    out += op_name(line.op);
    if (line.op == PGR_OP_CONST)
      out += " " + value_text(line.dtype, line.arg);
    else if (op_class(line.op) == PGR_OP_CLASS_STRUCTURE && line.sources.empty())
      out += fmt::format(" {}", line.arg);
    else if (line.op == PGR_OP_LANE || line.op == PGR_OP_WMMA || line.op == PGR_OP_ASYNC_WAIT)
      out += fmt::format(" {}", line.arg);
    for (const uint32_t source : line.sources) out += fmt::format(" %{}", source);
    if (line.op == PGR_OP_PARAM && kernel.is_pointer(i))
      out += fmt::format("  buffer of {}", kernel.params[line.arg].elem_count);
    out += '\n';
    if (kernel.opens(i)) ++depth;
  }
  return out;
}

}  // namespace plugrad::runtime
