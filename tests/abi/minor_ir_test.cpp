// Kernel IR across minors: a reader of the next minor accepts blocks of 1.0, whose records lack its
// fields. (minor_test.cpp has the reverse: today's readers with longer records.)
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::abi {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kAdded = sizeof(uint64_t);  // bytes that next_minor.py appends to each record

// Both kinds of parameters, an array, a loop, and more sources than fit a record.
Bytes kernel() {
  sdk::IrBuilder b("minor");
  b.set_groups(4);
  const auto out = b.buffer(PGR_DTYPE_I32, 32, PGR_PARAM_WRITE);
  const auto count = b.scalar(PGR_DTYPE_I32, 0, 8);
  const auto array = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 8);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  const auto i = b.loop(zero, count);
  b.store(array, i, b.alu(PGR_OP_ADD, {i, b.group_id(0)}));
  b.end_loop(i);
  b.store(out, zero, b.vector({zero, zero, count, count, zero, zero, count, count}));
  return b.finish();
}

void append(Bytes& to, const Bytes& from, uint32_t& offset, uint32_t& stride, uint32_t count) {
  const uint32_t first = static_cast<uint32_t>(to.size());
  for (uint32_t i = 0; i < count; ++i) {
    const auto record = from.begin() + offset + static_cast<ptrdiff_t>(i) * stride;
    to.insert(to.end(), record, record + static_cast<ptrdiff_t>(stride - kAdded));
  }
  offset = first;
  stride -= static_cast<uint32_t>(kAdded);
}

// The block as written by 1.0: every record without the next minor's fields.
Bytes as_of_1_0(const Bytes& block) {
  pgr_ir_header header;
  std::memcpy(&header, block.data(), sizeof header);
  Bytes out(sizeof header - kAdded);
  append(out, block, header.param_offset, header.param_stride, header.param_count);
  append(out, block, header.array_offset, header.array_stride, header.array_count);
  append(out, block, header.inst_offset, header.inst_stride, header.inst_count);
  const auto tail = [&](uint32_t& offset, size_t bytes) {
    const auto at = block.begin() + offset;
    offset = static_cast<uint32_t>(out.size());
    out.insert(out.end(), at, at + static_cast<ptrdiff_t>(bytes));
    out.resize((out.size() + 7) / 8 * 8);
  };
  tail(header.operand_offset, header.operand_count * sizeof(uint32_t));
  tail(header.name_offset, header.name_bytes);
  header.version = PGR_IR_VERSION - 1;
  header.header_bytes -= static_cast<uint32_t>(kAdded);
  header.total_bytes = out.size();
  std::memcpy(out.data(), &header, sizeof header - kAdded);
  return out;
}

TEST(MinorIr, TheNextMinorsRecordsAreLonger) {
  const sdk::IrView next = sdk::decode_ir(kernel()), now = sdk::decode_ir(as_of_1_0(kernel()));
  EXPECT_EQ(next.header().inst_stride, now.header().inst_stride + kAdded);
  EXPECT_EQ(next.header().header_bytes, now.header().header_bytes + kAdded);
  EXPECT_EQ(next.header().version, now.header().version + 1);
}

TEST(MinorIr, ABlockOf1_0SaysTheSame) {
  const sdk::IrView ir = sdk::decode_ir(as_of_1_0(kernel()));
  EXPECT_EQ(sdk::print_ir(ir), sdk::print_ir(sdk::decode_ir(kernel())));
}

TEST(MinorIr, WhatABlockOf1_0DoesNotSayIsZero) {
  const sdk::IrView ir = sdk::decode_ir(as_of_1_0(kernel()));
  EXPECT_EQ(ir.header().next_minor_field, 0u);
  for (const pgr_ir_param& param : ir.params()) EXPECT_EQ(param.next_minor_field, 0u);
  for (const pgr_ir_array& array : ir.arrays()) EXPECT_EQ(array.next_minor_field, 0u);
  for (const pgr_ir_inst& inst : ir.insts()) EXPECT_EQ(inst.next_minor_field, 0u);
}

TEST(MinorIr, BlocksThatTodaysHostWroteAreRead) {
  size_t blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KERNEL_BLOCKS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const sdk::IrView ir = sdk::decode_ir(text.data(), text.size());
    EXPECT_EQ(ir.header().version, PGR_IR_VERSION - 1);
    EXPECT_FALSE(ir.insts().empty());
    ++blocks;
  }
  EXPECT_GT(blocks, 10u);
}

}  // namespace
}  // namespace plugrad::abi
