#include "plugrad/sdk/ir_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::sdk {
namespace {

using testing::HasSubstr;

std::string error_of(std::span<const std::byte> block) {
  try {
    decode_ir(block);
  } catch (const StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_INVALID_ARGUMENT);
    return e.what();
  }
  return "no error";
}

// out[g] = in[g] * 2 + 1 for groups g
IrBuilder scale_kernel() {
  IrBuilder b("scale");
  b.set_groups(8);
  auto out = b.buffer(PGR_DTYPE_F32, 8, PGR_PARAM_WRITE);
  auto in = b.buffer(PGR_DTYPE_F32, 8, PGR_PARAM_READ);
  auto g = b.group_id(0);
  auto two = b.constant_float(PGR_DTYPE_F32, 2), one = b.constant_float(PGR_DTYPE_F32, 1);
  auto product = b.alu(PGR_OP_MUL, {b.load(in, g), two});
  b.store(out, g, b.alu(PGR_OP_ADD, {product, one}));
  return b;
}

template <typename Record>
void patch(std::vector<std::byte>& block, size_t offset, Record value) {
  std::memcpy(block.data() + offset, &value, sizeof value);
}

pgr_ir_header header_of(const std::vector<std::byte>& block) {
  pgr_ir_header h;
  std::memcpy(&h, block.data(), sizeof h);
  return h;
}

// A block with one asynchronous copy between memories of these alignments.
std::string error_of_copy(uint32_t space, uint32_t lanes, uint32_t array_align,
                          uint32_t buffer_align, uint32_t flags = PGR_PARAM_READ,
                          uint32_t dtype = PGR_DTYPE_F32) {
  IrBuilder b("k");
  const auto array = b.array(space, PGR_DTYPE_F32, 64, 1, array_align);
  const auto in = b.buffer(dtype, 64, flags, buffer_align);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  b.async_copy(array, zero, in, zero, lanes);
  return error_of(b.finish());
}

TEST(IrView, AsynchronousCopiesAreOfAlignedWords) {
  EXPECT_EQ(error_of_copy(PGR_SPACE_LOCAL, 4, 16, 16), "no error");
  EXPECT_EQ(error_of_copy(PGR_SPACE_LOCAL, 1, 64, 4), "no error");
  EXPECT_THAT(error_of_copy(PGR_SPACE_PRIVATE, 4, 16, 16), HasSubstr("source 0 is no local array"));
  EXPECT_THAT(error_of_copy(PGR_SPACE_LOCAL, 8, 32, 32),
              HasSubstr("copies 32 bytes; allowed are 4, 8 and 16"));
  EXPECT_THAT(error_of_copy(PGR_SPACE_LOCAL, 4, 16, 8),
              HasSubstr("copies 16 bytes where alignment is 8"));
  EXPECT_THAT(error_of_copy(PGR_SPACE_LOCAL, 2, 4, 16),
              HasSubstr("copies 8 bytes where alignment is 4"));
  EXPECT_THAT(error_of_copy(PGR_SPACE_LOCAL, 4, 16, 16, PGR_PARAM_WRITE),
              HasSubstr("lacks the flag"));
  EXPECT_THAT(error_of_copy(PGR_SPACE_LOCAL, 4, 16, 16, PGR_PARAM_READ, PGR_DTYPE_I32),
              HasSubstr("differ in dtype"));
  IrBuilder b("k");
  const auto array = b.array(PGR_SPACE_LOCAL, PGR_DTYPE_F32, 64, 1, 16);
  const auto in = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_READ, 16);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  b.async_copy_gated(array, zero, in, zero, zero, 4);
  EXPECT_THAT(error_of(b.finish()), HasSubstr("the gate must be one bool"));
}

TEST(IrView, AWaitIsForLessThan2To31Groups) {
  IrBuilder b("k");
  b.async_wait((uint64_t{1} << 31) - 1);
  EXPECT_EQ(error_of(b.finish()), "no error");
  b.async_wait(uint64_t{1} << 31);
  EXPECT_THAT(
      error_of(b.finish()),
      HasSubstr(
          "instruction 1 (ASYNC_WAIT): 2147483648 groups of copies; allowed are less than 2^31"));
}

TEST(IrView, BlocksOfLaterMinorsAreRead) {
  std::vector<std::byte> block = scale_kernel().finish();
  patch(block, offsetof(pgr_ir_header, version), PGR_IR_VERSION + 1);
  EXPECT_EQ(error_of(block), "no error");
  patch(block, offsetof(pgr_ir_header, version), PGR_IR_VERSION + 100);
  EXPECT_THAT(error_of(block), HasSubstr("version 200 is of another major than 100"));
  patch(block, offsetof(pgr_ir_header, version), uint32_t{9});
  EXPECT_THAT(error_of(block), HasSubstr("version 9 is of another major"));
}

TEST(IrView, PrintsWhatWasBuilt) {
  EXPECT_EQ(print_ir(decode_ir(scale_kernel().finish())),
            "kernel scale groups 8x1x1 local 1x1x1\n"
            "param 0: buffer f32[8] write\n"
            "param 1: buffer f32[8] read\n"
            "  %0 = PARAM f32 0\n"
            "  %1 = PARAM f32 1\n"
            "  %2 = GROUP_ID i32 0\n"
            "  %3 = CONST f32 2\n"
            "  %4 = CONST f32 1\n"
            "  %5 = LOAD f32 %1, %2\n"
            "  %6 = MUL f32 %5, %3\n"
            "  %7 = ADD f32 %6, %4\n"
            "  STORE %0, %2, %7\n");
}

TEST(IrView, RecordsLongerThanOursAreRead) {
  std::vector<std::byte> block = scale_kernel().finish();
  pgr_ir_header h = header_of(block);
  const uint32_t stride = h.inst_stride + 16;
  std::vector<std::byte> longer = block;
  longer.resize(block.size() + size_t{stride} * h.inst_count, std::byte{0xff});
  for (uint32_t i = 0; i < h.inst_count; ++i)
    std::memcpy(longer.data() + block.size() + size_t{i} * stride,
                block.data() + h.inst_offset + size_t{i} * h.inst_stride, h.inst_stride);
  h.inst_offset = static_cast<uint32_t>(block.size());
  h.inst_stride = stride;
  h.total_bytes = longer.size();
  patch(longer, 0, h);
  EXPECT_EQ(print_ir(decode_ir(longer)), print_ir(decode_ir(block)));
}

TEST(IrView, RecordsShorterThanThoseOf1_0AreRejected) {
  std::vector<std::byte> block = scale_kernel().finish();
  patch(block, offsetof(pgr_ir_header, inst_stride), uint32_t{24});
  EXPECT_THAT(error_of(block), HasSubstr("records of 24 bytes; at least 32 are needed"));
  block = scale_kernel().finish();
  patch(block, offsetof(pgr_ir_header, header_bytes), uint32_t{64});
  EXPECT_THAT(error_of(block), HasSubstr("says it has 64 bytes; at least"));
  patch(block, offsetof(pgr_ir_header, header_bytes), static_cast<uint32_t>(block.size() + 8));
  EXPECT_THAT(error_of(block), HasSubstr("and the block has"));
}

TEST(IrView, SourcesBeyondFourComeFromTheOperandTable) {
  IrBuilder b("k");
  auto c = b.constant_int(PGR_DTYPE_I32, -3), d = b.constant_int(PGR_DTYPE_I32, 4);
  auto v = b.vector({c, d, c, d, c, d, c, d});
  const IrView ir = decode_ir(b.finish());
  EXPECT_THAT(ir.sources(v), testing::ElementsAre(c, d, c, d, c, d, c, d));
  EXPECT_EQ(ir.inst(v).lanes, 8);
}

TEST(IrView, EveryTruncationIsRejected) {
  const std::vector<std::byte> block = scale_kernel().finish();
  for (size_t size = 0; size < block.size(); ++size)
    EXPECT_NE(error_of(std::span(block).first(size)), "no error") << size;
}

TEST(IrView, TableOutsideTheBlockIsRejected) {
  auto block = scale_kernel().finish();
  patch<uint32_t>(block, offsetof(pgr_ir_header, inst_count), 0x7fffffff);
  EXPECT_THAT(error_of(block), HasSubstr("table of instructions (2147483647 records of 32 bytes"));
}

TEST(IrView, UseAfterTheBlockEndedIsRejected) {
  IrBuilder b("k");
  auto out = b.buffer(PGR_DTYPE_I32, 4);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0), four = b.constant_int(PGR_DTYPE_I32, 4);
  auto i = b.loop(zero, four);
  auto twice = b.alu(PGR_OP_ADD, {i, i});
  b.end_loop(i);
  b.store(out, zero, twice);
  EXPECT_EQ(error_of(b.finish()),
            "kernel IR: instruction 6 (STORE): source 2 is %4, whose block has ended");
}

TEST(IrView, LoopCounterEndsWithItsLoop) {
  IrBuilder b("k");
  auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  auto i = b.loop(zero, zero);
  b.end_loop(i);
  b.alu(PGR_OP_ADD, {i, i});
  EXPECT_THAT(error_of(b.finish()), HasSubstr("source 0 is %1, whose block has ended"));
}

TEST(IrView, PartnersJoinOpenersAndClosers) {
  IrBuilder b("k");
  auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  auto outer = b.loop(zero, zero);
  auto condition = b.alu(PGR_OP_CMPLT, {outer, zero});
  auto inner = b.begin_if(condition);
  b.end_if(inner);
  b.end_loop(outer);
  const IrView ir = decode_ir(b.finish());
  EXPECT_EQ(ir.partner(outer), 5u);
  EXPECT_EQ(ir.partner(inner), 4u);
  EXPECT_EQ(ir.partner(5), outer);
}

struct BadCase {
  const char* what;
  void (*build)(IrBuilder&);
};

class BadIr : public testing::TestWithParam<BadCase> {};

TEST_P(BadIr, IsNamedPrecisely) {
  IrBuilder b("k");
  GetParam().build(b);
  EXPECT_THAT(error_of(b.finish()), HasSubstr(GetParam().what));
}

using B = IrBuilder;
constexpr uint32_t I32 = PGR_DTYPE_I32, F32 = PGR_DTYPE_F32;
const BadCase kBadCases[] = {
    {"(op 999): is not an op", [](B& b) { b.emit(999, I32, 1, {}); }},
    {"(ADD): has 1 sources, needs 2",
     [](B& b) { b.emit(PGR_OP_ADD, I32, 1, {b.constant_int(I32, 1)}); }},
    {"source 0 is %0, which is not earlier", [](B& b) { b.emit(PGR_OP_NEG, I32, 1, {0u}); }},
    {"sources are of i32 and f32",
     [](B& b) { b.alu(PGR_OP_ADD, {b.constant_int(I32, 1), b.constant_float(F32, 1)}); }},
    {"(IDIV): does not take f32",
     [](B& b) {
       auto c = b.constant_float(F32, 1);
       b.alu(PGR_OP_IDIV, {c, c});
     }},
    {"(ADD): does not take bool",
     [](B& b) {
       auto c = b.constant_int(PGR_DTYPE_BOOL, 1);
       b.alu(PGR_OP_ADD, {c, c});
     }},
    {"which is a pointer", [](B& b) { b.alu(PGR_OP_NEG, {b.buffer(I32, 4)}); }},
    {"which is not a pointer",
     [](B& b) {
       auto c = b.constant_int(I32, 1);
       b.load(c, c);
     }},
    {"lacks the flag for this access",
     [](B& b) { b.load(b.buffer(I32, 4, PGR_PARAM_WRITE), b.constant_int(I32, 1)); }},
    {"3 lanes; allowed are", [](B& b) { b.load(b.buffer(I32, 4), b.constant_int(I32, 0), 3); }},
    {"arg 256 is not a value of u8", [](B& b) { b.constant_bits(PGR_DTYPE_U8, 256); }},
    {"arg 255 is not a value of i8", [](B& b) { b.constant_bits(PGR_DTYPE_I8, 255); }},
    {"arg 2 is not a value of bool", [](B& b) { b.constant_bits(PGR_DTYPE_BOOL, 2); }},
    {"its block is never closed", [](B& b) { b.begin_if(b.constant_int(PGR_DTYPE_BOOL, 1)); }},
    {"closes %1, but the innermost open block is %2",
     [](B& b) {
       auto c = b.constant_int(PGR_DTYPE_BOOL, 1);
       auto outer = b.begin_if(c);
       b.begin_if(c);
       b.end_if(outer);
     }},
    {"axis 3", [](B& b) { b.group_id(3); }},
    {"cannot read f32 as i64", [](B& b) { b.bitcast(b.constant_float(F32, 1), PGR_DTYPE_I64); }},
    {"2 lanes from lane 3 of 4", [](B& b) { b.lane(b.splat(b.constant_int(I32, 1), 4), 3, 2); }},
    {"in groups of 4",
     [](B& b) { b.load(b.array(PGR_SPACE_PRIVATE, I32, 8, 4), b.constant_int(I32, 0), 2); }},
    {"needs the value of closed lanes",
     [](B& b) {
       auto p = b.buffer(I32, 4);
       b.emit(PGR_OP_LOAD, I32, 1, {p, b.constant_int(I32, 0), b.constant_int(PGR_DTYPE_BOOL, 1)});
     }},
};
INSTANTIATE_TEST_SUITE_P(All, BadIr, testing::ValuesIn(kBadCases));

// With any damaged byte the decoder returns a view or an error.
TEST(IrView, FlippedBytesNeverEscapeTheDecoder) {
  const std::vector<std::byte> good = scale_kernel().finish();
  int accepted = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> block = good;
      block[at] = std::byte(value);
      if (error_of(block) == "no error") {
        ++accepted;
        EXPECT_FALSE(print_ir(decode_ir(block)).empty());
      }
    }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace plugrad::sdk
