// Every op on every dtype, on devices without some claims: kernels use only claimed features, and
// results equal the evaluator's. One row per device; PLUGRAD_TEST_FULL=1 uses all values of the
// small dtypes instead of the edges.
#include "dtypes/claims.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>

#include "codegen/codegen.h"
#include "codegen/lowering/lowering.h"
#include "dtypes/values.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "oracle/alu.h"
#include "oracle/array.h"
#include "plugrad/error.h"
#include "plugrad/sdk/interpreter.h"

namespace plugrad::dtypes {
namespace {

struct Device {
  std::string without;
  std::string refused = "";  // dtypes on which some ops cannot be decomposed
  DType only = DType::Void;  // Void: all dtypes are tested, else only this one
};

void PrintTo(const Device& device, std::ostream* out) {
  *out << "a device without " << device.without;
}

const Device kDevices[] = {
    {""},
    {"i8"},
    {"u8"},
    {"i16"},
    {"u16"},
    {"u32"},
    {"u32,store:u32"},
    {"u32,exp2,log2,sin,sqrt"},
    {"u32,f16"},
    {"i64"},
    {"u64"},
    {"i64,u64"},
    {"f16"},
    {"bf16"},
    {"f8e4m3"},
    {"f8e5m2"},
    {"bool"},
    {"f64", "f64"},
    {"i8,u8", "i8 u8"},
    {"i64,u64,store:i64,store:u64"},
    {"store:i8"},
    {"store:u16"},
    {"store:bool"},
    {"store:f16,f16"},
    {"store:bf16,bf16"},
    {"store:f8e4m3,f8e4m3"},
    {"store:f8e5m2,f8e5m2"},
    {"exp2"},
    {"log2"},
    {"sin"},
    {"trunc"},
    {"recip"},
    {"fdiv"},
    {"recip,fdiv"},
    {"sqrt"},
    {"idiv"},
    {"mod"},
    {"idiv,mod"},
    {"fma", "f64"},
    {"where"},
    {"max"},
    {"neg"},
    {"sub"},
    {"cmpeq"},
    {"cmpne"},
    {"i64,u64,idiv,mod"},
    {"exp2,log2,sin,trunc,fdiv,recip,sqrt,i64,u64", "f64"},
    {"i64,u64,f64,f16,bf16,i16,i8,store:i64,store:u64", "f64"},
    {"lanes"},
};

constexpr DType kDTypes[] = {DType::Bool, DType::I8,  DType::U8,  DType::I16,    DType::U16,
                             DType::I32,  DType::U32, DType::I64, DType::U64,    DType::F16,
                             DType::BF16, DType::F32, DType::F64, DType::F8E4M3, DType::F8E5M2};
constexpr Op kUnary[] = {Op::Neg, Op::Recip, Op::Sqrt, Op::Trunc, Op::Exp2, Op::Log2,
                         Op::Sin, Op::Exp,   Op::Log,  Op::Cos,   Op::Tan};
constexpr Op kBinary[] = {Op::Add,      Op::Sub,      Op::Mul,   Op::FDiv,  Op::IDiv, Op::Mod,
                          Op::FloorDiv, Op::FloorMod, Op::Max,   Op::And,   Op::Or,   Op::Xor,
                          Op::Shl,      Op::Shr,      Op::CmpLt, Op::CmpEq, Op::CmpNe};

// The claims that every device has: docs/kernel-ir.md.
bool is_mandatory(Op op, DType dtype) {
  constexpr Op kOptional[] = {Op::Sub, Op::FDiv, Op::Fma, Op::Trunc, Op::Exp2, Op::Log2, Op::Sin};
  const bool core = dtype == DType::Bool || dtype == DType::I32 || dtype == DType::F32;
  return core && std::ranges::find(kOptional, op) == std::end(kOptional);
}

// One device per pair of an op and a dtype, without that claim.
std::vector<Device> devices_without_a_pair() {
  std::vector<Device> devices;
  for (const sdk::OpInfo& info : sdk::all_ops()) {
    const Op op = static_cast<Op>(info.number);
    if (info.op_class != PGR_OP_CLASS_ALU || op == Op::Bitcast) continue;
    for (DType dtype : kDTypes) {
      if (!is_kernel_op(op, dtype) || is_mandatory(op, dtype)) continue;
      std::string name(info.name);
      std::ranges::transform(name, name.begin(),
                             [](char c) { return static_cast<char>(c | 0x20); });
      // No wider dtype could emulate f64 arithmetic.
      const bool widest = dtype == DType::F64 || op == Op::Fma;
      devices.push_back({fmt::format("{}:{}", name, name_of(dtype)),
                         widest ? std::string(name_of(dtype)) : "", dtype});
    }
  }
  return devices;
}

bool is_full() {
  static const bool full = std::getenv("PLUGRAD_TEST_FULL") != nullptr;
  return full;
}

// 8-bit floats are computed in f32 and accept the same ops.
bool takes(Op op, DType dtype) {
  if (op == Op::FloorDiv || op == Op::FloorMod) return is_integer(dtype);
  if (is_transcendental(op)) return is_float(dtype);
  return is_kernel_op(op, is_float(dtype) ? DType::F32 : dtype);
}

struct Case {
  std::string name;
  Graph graph;
  Id sink = kNoId;
  std::vector<oracle::Array> inputs;
  oracle::Array expected;
  double ulps = 0;              // allowed error
  std::vector<bool> undefined;  // elements with unspecified values
};

class Claims : public testing::TestWithParam<Device> {
 protected:
  void check(Case& c, std::initializer_list<DType> dtypes) {
    const DType only = GetParam().only;
    if (only != DType::Void && std::ranges::find(dtypes, only) == dtypes.end()) return;
    std::string refused = GetParam().refused;
    bool may_refuse = false;
    for (DType d : dtypes)
      may_refuse |=
          (" " + refused + " ").find(fmt::format(" {} ", name_of(d))) != std::string::npos;
    codegen::KernelCode code;
    try {
      code = codegen::generate(c.graph, c.sink, caps_, {.contract = false});
    } catch (const Error& e) {
      EXPECT_TRUE(may_refuse && e.kind() == ErrorKind::Unsupported) << c.name << ": " << e.what();
      EXPECT_NE(std::string_view(e.what()).find("cast to"), std::string_view::npos) << e.what();
      return;
    }
    const sdk::IrView ir = sdk::decode_ir(code.ir);
    ASSERT_EQ(first_unclaimed(ir, caps_), "") << c.name;
    // Most kernels are equal on most devices: each distinct one runs once.
    static std::map<std::string, std::vector<std::vector<std::byte>>> done;
    auto& seen = done[fmt::format("{} of {}", c.name, c.inputs[0].size())];
    if (std::ranges::find(seen, code.ir) != seen.end()) return;
    seen.push_back(code.ir);
    compare(c, run(c, code, ir));
  }

  static oracle::Array run(const Case& c, const codegen::KernelCode& code, sdk::IrView ir) {
    std::vector<std::vector<std::byte>> memory = {
        std::vector<std::byte>(c.expected.size() * size_of(c.expected.dtype))};
    for (const oracle::Array& in : c.inputs) memory.push_back(oracle::to_bytes(in));
    std::vector<sdk::InterpreterBuffer> buffers;
    for (auto& bytes : memory) buffers.push_back({bytes.data(), bytes.size()});
    sdk::InterpreterLaunch launch;
    launch.buffers = buffers;
    std::copy_n(code.group_count, 3, launch.group_count.begin());
    std::copy_n(code.local_size, 3, launch.local_size.begin());
    sdk::Interpreter(std::move(ir)).run(launch);
    return oracle::from_bytes(c.expected.dtype, c.expected.shape, memory[0]);
  }

  static double ulp_of(double value, DType dtype) {
    if (value == 0 || std::isnan(value)) return 0x1p-1074;
    const int bits = dtype == DType::F64    ? 53
                     : dtype == DType::F32  ? 24
                     : dtype == DType::F16  ? 11
                     : dtype == DType::BF16 ? 8
                                            : 3;
    const int lowest = dtype == DType::F64   ? -1074
                       : dtype == DType::F16 ? -24
                       : dtype == DType::F32 ? -149
                                             : -133;
    return std::ldexp(1.0, std::max(std::ilogb(value) + 1 - bits, lowest));
  }

  static void compare(const Case& c, const oracle::Array& got) {
    for (size_t i = 0; i < got.size(); ++i) {
      if (!c.undefined.empty() && c.undefined[i]) continue;
      if (!is_float(got.dtype)) {
        ASSERT_EQ(got.bits[i], c.expected.bits[i])
            << c.name << ", element " << i << inputs_at(c, i);
        continue;
      }
      const double want = c.expected.real(i), have = got.real(i);
      if (std::isnan(want) && std::isnan(have)) continue;
      const bool zeros = want == 0 && have == 0;
      const bool either_zero = c.name.starts_with("Max") && zeros;
      if (want == have && (std::signbit(want) == std::signbit(have) || either_zero)) continue;
      ASSERT_TRUE(c.ulps > 0 && std::fabs(want - have) <= c.ulps * ulp_of(want, got.dtype))
          << c.name << ", element " << i << inputs_at(c, i) << ": expected " << want << ", found "
          << have;
    }
  }

  static std::string inputs_at(const Case& c, size_t i) {
    std::string text = " of";
    for (const oracle::Array& in : c.inputs)
      if (i < in.size()) text += fmt::format(" {:#x} ({})", in.bits[i], in.real(i));
    return text;
  }

  const pgr_device_caps caps_ = device_without(GetParam().without);
};

oracle::Array array_of(DType dtype, Bits bits) {
  const auto n = static_cast<int64_t>(bits.size());
  return {dtype, {n}, std::move(bits)};
}

// out[i] = op(inputs[i]…); the evaluator gives the expected values.
Case elementwise(Op op, DType result, std::vector<oracle::Array> inputs) {
  Case c;
  const DType source = inputs[op == Op::Where ? 1 : 0].dtype;
  c.name = fmt::format("{} {} -> {}", op_info(op).name, name_of(source), name_of(result));
  c.inputs = std::move(inputs);
  const size_t n = c.inputs[0].size();
  c.expected = {result, {static_cast<int64_t>(n)}, Bits(n)};
  for (size_t i = 0; i < n; ++i) {
    Bits args;
    for (const oracle::Array& in : c.inputs) args.push_back(in.bits[i]);
    c.expected.bits[i] = oracle::apply(op, result, source, args);
  }
  Graph& g = c.graph;
  const Id at = make_range(g, static_cast<int64_t>(n), 0, AxisKind::Loop);
  std::vector<Id> sources;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Id param =
        make_param(g, c.inputs[i].dtype,
                   {static_cast<uint32_t>(i + 1), static_cast<int64_t>(n), PGR_PARAM_READ});
    sources.push_back(g.add(Op::Load, c.inputs[i].dtype, {param, at}));
  }
  const Id out = make_param(g, result, {0, static_cast<int64_t>(n), PGR_PARAM_WRITE});
  const Id value = g.add(op, result, sources);
  c.sink = g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {out, at, value})});
  return c;
}

Bits values_of(DType dtype) {
  Bits values = is_full() && size_of(dtype) <= 2 ? every_value(dtype) : edges(dtype);
  if (values.size() % 2 == 0) values.push_back(values[0]);  // leaves a remainder for vectors
  return values;
}

std::vector<oracle::Array> pairs_of(DType dtype) {
  const Bits values = is_full() && size_of(dtype) == 1 ? every_value(dtype) : edges(dtype);
  Bits a, b;
  for (uint64_t x : values)
    for (uint64_t y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  return {array_of(dtype, a), array_of(dtype, b)};
}

double allowed_ulps(Op op, DType dtype) {
  if (!is_transcendental(op)) return 0;
  return dtype == DType::F32 || dtype == DType::F64 ? 3 : 1;
}

TEST_P(Claims, unary_ops) {
  for (Op op : kUnary)
    for (DType dtype : kDTypes) {
      if (!takes(op, dtype)) continue;
      Case c = elementwise(op, dtype, {array_of(dtype, values_of(dtype))});
      c.ulps = allowed_ulps(op, dtype);
      // cos is 1 - 2 sin²(x / 2) without 64-bit integers, which cancels near its zeros.
      const bool has_words = codegen::Lowering(caps_).has(Op::Add, DType::I64);
      if (!has_words && dtype == DType::F64 && (op == Op::Cos || op == Op::Tan)) c.ulps = 100;
      check(c, {dtype});
    }
}

TEST_P(Claims, binary_ops) {
  for (DType dtype : kDTypes) {
    const std::vector<oracle::Array> pairs = pairs_of(dtype);
    for (Op op : kBinary) {
      if (!takes(op, dtype)) continue;
      Case c = elementwise(op, is_compare(op) ? DType::Bool : dtype, pairs);
      check(c, {dtype});
    }
  }
}

TEST_P(Claims, ternary_ops) {
  for (DType dtype : kDTypes) {
    std::vector<oracle::Array> arrays = pairs_of(dtype);
    const size_t n = arrays[0].size();
    Bits third(n), chosen(n);
    for (size_t i = 0; i < n; ++i) {
      third[i] = arrays[0].bits[(i * 7 + 3) % n];
      chosen[i] = i % 3 == 1;
    }
    Case where =
        elementwise(Op::Where, dtype, {array_of(DType::Bool, chosen), arrays[0], arrays[1]});
    check(where, {dtype});
    if (dtype != DType::F32 && dtype != DType::F64 && !is_integer(dtype))
      continue;  // the evaluator rounds twice
    arrays.push_back(array_of(dtype, third));
    Case fma = elementwise(Op::Fma, dtype, arrays);
    check(fma, {dtype});
  }
}

TEST_P(Claims, casts_between_all_dtypes) {
  for (DType from : kDTypes)
    for (DType to : kDTypes) {
      if (from == to) continue;
      const oracle::Array values = array_of(from, values_of(from));
      Case c = elementwise(Op::Cast, to, {values});
      for (uint64_t v : values.bits) c.undefined.push_back(!cast_is_defined(v, from, to));
      check(c, {from, to});
    }
}

// out[r] = op over c of in[r, c]
Case reduction(Op op, DType dtype, const Bits& values, int64_t columns) {
  Case c;
  c.name = fmt::format("{} reduction of {}", op_info(op).name, name_of(dtype));
  const auto rows = static_cast<int64_t>(values.size()) / columns;
  c.inputs = {array_of(dtype, Bits(values.begin(), values.begin() + rows * columns))};
  c.expected = {dtype, {rows}, Bits(static_cast<size_t>(rows))};
  for (int64_t r = 0; r < rows; ++r) {
    uint64_t sum = c.inputs[0].bits[static_cast<size_t>(r * columns)];
    for (int64_t k = 1; k < columns; ++k) {
      const uint64_t args[] = {sum, c.inputs[0].bits[static_cast<size_t>(r * columns + k)]};
      sum = oracle::apply(op, dtype, dtype, args);
    }
    c.expected.bits[static_cast<size_t>(r)] = sum;
  }
  Graph& g = c.graph;
  const Id row = make_range(g, rows, 0, AxisKind::Loop),
           column = make_range(g, columns, 1, AxisKind::Reduce);
  const Id index = g.binary(Op::Add, g.binary(Op::Mul, row, g.index(columns)), column);
  const Id in = make_param(g, dtype, {1, rows * columns, PGR_PARAM_READ}),
           out = make_param(g, dtype, {0, rows, PGR_PARAM_WRITE});
  const Id value = g.add(Op::Reduce, dtype, {g.add(Op::Load, dtype, {in, index}), column},
                         g.list({static_cast<int64_t>(op)}));
  c.sink = g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {out, row, value})});
  return c;
}

TEST_P(Claims, reductions) {
  for (DType dtype : kDTypes)
    for (Op op : {Op::Add, Op::Mul, Op::Max}) {
      const bool exact = !is_float(dtype) || op == Op::Max;
      if (is_float(dtype) && size_of(dtype) < 4 && op != Op::Max)
        continue;  // accumulated in f32 before codegen
      if (dtype == DType::Bool && op != Op::Max) continue;
      Bits values = exact ? edges(dtype) : Bits{};
      if (!exact)
        for (int i = 0; i < 100; ++i)
          values.push_back(bits_of(i % 7 == 3 ? 1.5 : i % 2 == 0 ? 1.0 : -2.0, dtype));
      for (int64_t columns : {1, 5, 16})
        if (static_cast<int64_t>(values.size()) >= columns) {
          Case c = reduction(op, dtype, values, columns);
          check(c, {dtype});
        }
    }
}

// out[r, c] = in[c, r] with a border of ones, on every dtype: no arithmetic, so that no device
// rejects it.
TEST_P(Claims, moves_with_borders) {
  for (DType dtype : kDTypes) {
    const Bits values = edges(dtype);
    const auto n = static_cast<int64_t>(values.size() / 2);
    if (n == 0) continue;
    Case c;
    c.name = fmt::format("padded transpose of {}", name_of(dtype));
    c.inputs = {array_of(dtype, Bits(values.begin(), values.begin() + 2 * n))};
    const uint64_t one = is_float(dtype) ? bits_of(1.0, dtype) : bits_of(int64_t{1}, dtype);
    c.expected = {dtype, {n, 4}, Bits(static_cast<size_t>(4 * n), one)};
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < 2; ++k)
        c.expected.bits[static_cast<size_t>(4 * r + k + 1)] =
            c.inputs[0].bits[static_cast<size_t>(k * n + r)];
    Graph& g = c.graph;
    const Id row = make_range(g, n, 0, AxisKind::Loop),
             column = make_range(g, 4, 1, AxisKind::Loop);
    const Id inside = g.binary(Op::And, g.binary(Op::CmpLt, g.index(0), column),
                               g.binary(Op::CmpLt, column, g.index(3)));
    const Id from = g.binary(
        Op::Add, g.binary(Op::Mul, g.binary(Op::Add, column, g.index(-1)), g.index(n)), row);
    const Id in = make_param(g, dtype, {1, 2 * n, PGR_PARAM_READ}),
             out = make_param(g, dtype, {0, 4 * n, PGR_PARAM_WRITE});
    const Id other = is_float(dtype) ? g.constant(dtype, 1.0) : g.constant(dtype, int64_t{1});
    const Id value = g.add(Op::Load, dtype, {in, from, inside, other});
    const Id to = g.binary(Op::Add, g.binary(Op::Mul, row, g.index(4)), column);
    c.sink = g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {out, to, value})});
    check(c, {});
  }
}

std::string name_of_row(const testing::TestParamInfo<Device>& row) {
  std::string name = row.param.without;
  for (char& ch : name)
    if (ch == ',' || ch == ':') ch = '_';
  return name.empty() ? "nothing" : name;
}
INSTANTIATE_TEST_SUITE_P(without, Claims, testing::ValuesIn(kDevices), name_of_row);
INSTANTIATE_TEST_SUITE_P(without_pair, Claims, testing::ValuesIn(devices_without_a_pair()),
                         name_of_row);

}  // namespace
}  // namespace plugrad::dtypes
