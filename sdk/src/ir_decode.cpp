// Decodes bytes into tables. The bounds of each table are checked before its records are read;
// ir_verify.cpp checks the rules between instructions.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ir_verify.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::sdk {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw StatusError(PGR_STATUS_INVALID_ARGUMENT, "kernel IR: " + what);
}

// Bytes of a record up to the last field of version 1.0. Later minor versions append fields; those
// that the writer does not know are 0.
#define PLUGRAD_SIZE_THROUGH(record, field) (offsetof(record, field) + sizeof(record::field))
template <typename Record>
constexpr uint64_t kFirstSize = sizeof(Record);
template <>
constexpr uint64_t kFirstSize<pgr_ir_header> = PLUGRAD_SIZE_THROUGH(pgr_ir_header, group_count);
template <>
constexpr uint64_t kFirstSize<pgr_ir_param> = PLUGRAD_SIZE_THROUGH(pgr_ir_param, max);
template <>
constexpr uint64_t kFirstSize<pgr_ir_array> = PLUGRAD_SIZE_THROUGH(pgr_ir_array, elem_count);
template <>
constexpr uint64_t kFirstSize<pgr_ir_inst> = PLUGRAD_SIZE_THROUGH(pgr_ir_inst, arg);
#undef PLUGRAD_SIZE_THROUGH

template <typename Record>
Record read_record(const std::byte* from, uint64_t bytes) {
  Record record{};
  std::memcpy(&record, from, std::min<uint64_t>(bytes, sizeof record));
  return record;
}

struct Table {
  const char* name;
  uint64_t offset, stride, count;
};

void check_bounds(const Table& table, uint64_t total_bytes) {
  if (table.count == 0) return;
  const std::string where = std::string("table of ") + table.name;
  if (table.offset % 8 != 0)
    fail(where + " starts at " + std::to_string(table.offset) + ", not a multiple of 8");
  // Counts and strides are 32 bits wide, so that the product cannot overflow.
  if (table.offset > total_bytes || table.stride * table.count > total_bytes - table.offset)
    fail(where + " (" + std::to_string(table.count) + " records of " +
         std::to_string(table.stride) + " bytes at " + std::to_string(table.offset) +
         ") ends outside the block of " + std::to_string(total_bytes) + " bytes");
}

template <typename Record>
std::vector<Record> read_table(std::span<const std::byte> block, const Table& table) {
  if (table.count > 0 && table.stride < kFirstSize<Record>)
    fail(std::string("table of ") + table.name + " has records of " + std::to_string(table.stride) +
         " bytes; at least " + std::to_string(kFirstSize<Record>) + " are needed");
  check_bounds(table, block.size());
  std::vector<Record> records(table.count);
  for (uint64_t i = 0; i < table.count; ++i)
    records[i] = read_record<Record>(block.data() + table.offset + i * table.stride, table.stride);
  return records;
}

pgr_ir_header read_header(std::span<const std::byte> block) {
  constexpr uint64_t kFirst = kFirstSize<pgr_ir_header>;
  if (block.size() < kFirst)
    fail("the block has " + std::to_string(block.size()) + " bytes; a header has " +
         std::to_string(kFirst));
  auto header = read_record<pgr_ir_header>(block.data(), kFirst);
  if (header.magic != PGR_IR_MAGIC) fail("the magic number is wrong: not a kernel IR block");
  constexpr uint32_t kMajor = 100;  // a version is 100 * major + minor
  if (header.version / kMajor != PGR_IR_VERSION / kMajor)
    fail("version " + std::to_string(header.version) + " is of another major than " +
         std::to_string(PGR_IR_VERSION));
  if (header.header_bytes < kFirst || header.header_bytes > block.size())
    fail("the header says it has " + std::to_string(header.header_bytes) + " bytes; at least " +
         std::to_string(kFirst) + " are needed, and the block has " + std::to_string(block.size()));
  if (header.total_bytes != block.size())
    fail("the header says " + std::to_string(header.total_bytes) + " bytes, the block has " +
         std::to_string(block.size()));
  return read_record<pgr_ir_header>(block.data(), header.header_bytes);
}

bool is_identifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

std::string read_name(std::span<const std::byte> block, const pgr_ir_header& header) {
  check_bounds({"name bytes", header.name_offset, 1, header.name_bytes}, block.size());
  std::string name(reinterpret_cast<const char*>(block.data()) + header.name_offset,
                   header.name_bytes);
  if (!is_identifier(name)) fail("the kernel name \"" + name + "\" is not a C identifier");
  return name;
}

}  // namespace

IrView decode_ir(std::span<const std::byte> block) {
  IrView view;
  view.header_ = read_header(block);
  const pgr_ir_header& h = view.header_;
  if (h.name_bytes == 0) fail("the kernel has no name");
  view.name_ = read_name(block, h);
  view.params_ = read_table<pgr_ir_param>(
      block, {"parameters", h.param_offset, h.param_stride, h.param_count});
  view.arrays_ =
      read_table<pgr_ir_array>(block, {"arrays", h.array_offset, h.array_stride, h.array_count});
  view.insts_ =
      read_table<pgr_ir_inst>(block, {"instructions", h.inst_offset, h.inst_stride, h.inst_count});
  view.operands_ = read_table<uint32_t>(
      block, {"operands", h.operand_offset, sizeof(uint32_t), h.operand_count});
  IrVerifier(view).run();
  return view;
}

IrView decode_ir(const void* block, uint64_t size_bytes) {
  if (!block) fail("the block is NULL");
  return decode_ir(std::span(static_cast<const std::byte*>(block), size_bytes));
}

std::span<const uint32_t> IrView::sources(uint32_t number) const {
  const pgr_ir_inst& inst = insts_[number];
  if (inst.src_count > 4) return std::span(operands_).subspan(inst.src[0], inst.src_count);
  return std::span(inst.src, inst.src_count);
}

bool IrView::is_pointer(uint32_t number) const {
  const pgr_ir_inst& inst = insts_[number];
  if (inst.op == PGR_OP_PARAM) return params_[inst.arg].kind == PGR_PARAM_BUFFER;
  return inst.op == PGR_OP_ARRAY;
}

}  // namespace plugrad::sdk
