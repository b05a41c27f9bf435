// Every ALU op on the edges of its dtypes, one lane and many, against C++.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "plugrad/sdk/op_info.h"
#include "unit/cpu_clang/cpu_device.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;

template <typename T>
constexpr uint32_t kDtype = 0;
template <>
constexpr uint32_t kDtype<int8_t> = PGR_DTYPE_I8;
template <>
constexpr uint32_t kDtype<uint8_t> = PGR_DTYPE_U8;
template <>
constexpr uint32_t kDtype<int16_t> = PGR_DTYPE_I16;
template <>
constexpr uint32_t kDtype<uint16_t> = PGR_DTYPE_U16;
template <>
constexpr uint32_t kDtype<int32_t> = PGR_DTYPE_I32;
template <>
constexpr uint32_t kDtype<uint32_t> = PGR_DTYPE_U32;
template <>
constexpr uint32_t kDtype<int64_t> = PGR_DTYPE_I64;
template <>
constexpr uint32_t kDtype<uint64_t> = PGR_DTYPE_U64;
template <>
constexpr uint32_t kDtype<float> = PGR_DTYPE_F32;
template <>
constexpr uint32_t kDtype<double> = PGR_DTYPE_F64;

template <typename T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return {T(0),
            T(-0.0),
            T(1),
            T(-1),
            T(1.5),
            T(-2.75),
            T(100),
            T(1e10),
            T(-3e9),
            Limits::max(),
            Limits::lowest(),
            Limits::min(),
            Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN()};
  return {T(0),  T(1),   T(2),  T(3),  T(7),  T(8),          T(31),         T(63),
          T(64), T(100), T(-1), T(-2), T(-7), Limits::max(), Limits::min(), T(Limits::max() - 1)};
}

// All pairs of edges, in two columns.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::pair<std::vector<T>, std::vector<T>> out;
  for (T a : edges<T>())
    for (T b : edges<T>()) {
      out.first.push_back(a);
      out.second.push_back(b);
    }
  return out;
}

template <typename T>
bool same(T a, T b) {
  if (a != a && b != b) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

using Make = std::function<IrBuilder::Value(IrBuilder&, IrBuilder::Value, IrBuilder::Value)>;

// out[i] = make(a[i], b[i]), `lanes` elements at a time.
template <typename Out, typename In>
std::vector<Out> run_pairs(CpuDevice& cpu, uint32_t out_dtype, uint32_t in_dtype,
                           const std::vector<In>& a, const std::vector<In>& b, uint32_t lanes,
                           const Make& make) {
  IrBuilder ir("k");
  const auto out = ir.buffer(out_dtype, a.size(), PGR_PARAM_WRITE);
  const auto left = ir.buffer(in_dtype, a.size(), PGR_PARAM_READ);
  const auto right = ir.buffer(in_dtype, a.size(), PGR_PARAM_READ);
  const auto number = [&](uint64_t value) {
    return ir.constant_int(PGR_DTYPE_I64, static_cast<int64_t>(value));
  };
  const auto i = ir.loop(number(0), number(a.size() / lanes));
  const auto at = ir.alu(PGR_OP_MUL, {i, number(lanes)});
  const auto x = ir.load(left, at, lanes), y = ir.load(right, at, lanes);
  ir.store(out, at, make(ir, x, y));
  ir.end_loop(i);
  Buffer<Out> result(cpu, std::vector<Out>(a.size()));
  Buffer<In> left_values(cpu, a), right_values(cpu, b);
  Program(cpu, ir, "k").run({result.handle, left_values.handle, right_values.handle});
  return result.values();
}

template <typename T, typename Out = T>
void expect_op(CpuDevice& cpu, uint32_t op, uint32_t sources,
               const std::type_identity_t<std::function<Out(T, T)>>& want, uint32_t out_dtype = 0) {
  const auto [a, b] = pairs<T>();
  for (uint32_t lanes : {1u, 4u, 16u}) {
    const auto got = run_pairs<Out, T>(cpu, out_dtype ? out_dtype : kDtype<T>, kDtype<T>, a, b,
                                       lanes, [&](IrBuilder& ir, auto x, auto y) {
                                         return sources == 1 ? ir.alu(op, {x}) : ir.alu(op, {x, y});
                                       });
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_TRUE(same(got[i], want(a[i], b[i])))
          << sdk::op_info(op)->name << " " << sdk::dtype_name(kDtype<T>) << "x" << lanes << " of "
          << +a[i] << ", " << +b[i] << " is " << +got[i] << ", not " << +want(a[i], b[i]);
  }
}

template <typename T>
class CpuIntegers : public ::testing::Test {};
using Integers =
    ::testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(CpuIntegers, Integers);

TYPED_TEST(CpuIntegers, Arithmetic_Wraps) {
  using T = TypeParam;
  CpuDevice cpu;
  expect_op<T>(cpu, PGR_OP_ADD, 2, [](T a, T b) { return T(uint64_t(a) + uint64_t(b)); });
  expect_op<T>(cpu, PGR_OP_SUB, 2, [](T a, T b) { return T(uint64_t(a) - uint64_t(b)); });
  expect_op<T>(cpu, PGR_OP_MUL, 2, [](T a, T b) { return T(uint64_t(a) * uint64_t(b)); });
  expect_op<T>(cpu, PGR_OP_NEG, 1, [](T a, T) { return T(0 - uint64_t(a)); });
  expect_op<T>(cpu, PGR_OP_MAX, 2, [](T a, T b) { return std::max(a, b); });
}

TYPED_TEST(CpuIntegers, Division_OfZeroAndOfTheLowest_IsDefined) {
  using T = TypeParam;
  CpuDevice cpu;
  const auto quotient = [](T a, T b) {
    if (b == 0) return T(0);
    if (std::is_signed_v<T> && b == T(-1)) return T(0 - uint64_t(a));
    return T(a / b);
  };
  expect_op<T>(cpu, PGR_OP_IDIV, 2, quotient);
  expect_op<T>(cpu, PGR_OP_MOD, 2,
               [&](T a, T b) { return T(uint64_t(a) - uint64_t(b) * uint64_t(quotient(a, b))); });
}

TYPED_TEST(CpuIntegers, Shifts_BeyondTheWidth_AreDefined) {
  using T = TypeParam;
  CpuDevice cpu;
  const auto is_outside = [](T b) { return b < 0 || uint64_t(b) >= sizeof(T) * 8; };
  expect_op<T>(cpu, PGR_OP_SHL, 2,
               [&](T a, T b) { return is_outside(b) ? T(0) : T(uint64_t(a) << b); });
  expect_op<T>(cpu, PGR_OP_SHR, 2,
               [&](T a, T b) { return is_outside(b) ? T(a < 0 ? -1 : 0) : T(a >> b); });
}

TYPED_TEST(CpuIntegers, BitsAndComparisons) {
  using T = TypeParam;
  CpuDevice cpu;
  expect_op<T>(cpu, PGR_OP_AND, 2, [](T a, T b) { return T(a & b); });
  expect_op<T>(cpu, PGR_OP_OR, 2, [](T a, T b) { return T(a | b); });
  expect_op<T>(cpu, PGR_OP_XOR, 2, [](T a, T b) { return T(a ^ b); });
  expect_op<T, uint8_t>(
      cpu, PGR_OP_CMPLT, 2, [](T a, T b) { return uint8_t(a < b); }, PGR_DTYPE_BOOL);
  expect_op<T, uint8_t>(
      cpu, PGR_OP_CMPEQ, 2, [](T a, T b) { return uint8_t(a == b); }, PGR_DTYPE_BOOL);
}

template <typename T>
class CpuFloats : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuFloats, Floats);

TYPED_TEST(CpuFloats, Arithmetic_RoundsOnce) {
  using T = TypeParam;
  CpuDevice cpu;
  expect_op<T>(cpu, PGR_OP_ADD, 2, [](T a, T b) { return a + b; });
  expect_op<T>(cpu, PGR_OP_SUB, 2, [](T a, T b) { return a - b; });
  expect_op<T>(cpu, PGR_OP_MUL, 2, [](T a, T b) { return a * b; });
  expect_op<T>(cpu, PGR_OP_FDIV, 2, [](T a, T b) { return a / b; });
  expect_op<T>(cpu, PGR_OP_NEG, 1, [](T a, T) { return -a; });
  expect_op<T>(cpu, PGR_OP_RECIP, 1, [](T a, T) { return 1 / a; });
  expect_op<T>(cpu, PGR_OP_SQRT, 1, [](T a, T) { return std::sqrt(a); });
  expect_op<T>(cpu, PGR_OP_TRUNC, 1, [](T a, T) { return std::trunc(a); });
}

TYPED_TEST(CpuFloats, Max_PropagatesNan) {
  using T = TypeParam;
  CpuDevice cpu;
  // The sign of a zero is free: adding +0 hides it.
  const auto [a, b] = pairs<T>();
  for (uint32_t lanes : {1u, 8u}) {
    const auto got =
        run_pairs<T, T>(cpu, kDtype<T>, kDtype<T>, a, b, lanes, [](IrBuilder& ir, auto x, auto y) {
          return ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MAX, {x, y}), ir.constant_float(kDtype<T>, 0)});
        });
    for (size_t i = 0; i < a.size(); ++i) {
      const T want = a[i] != a[i] || b[i] != b[i] ? T(NAN) : std::max(a[i], b[i]) + T(0);
      EXPECT_TRUE(same(got[i], want)) << a[i] << ", " << b[i] << ": " << got[i];
    }
  }
}

TYPED_TEST(CpuFloats, Comparisons_WithNan) {
  using T = TypeParam;
  CpuDevice cpu;
  expect_op<T, uint8_t>(
      cpu, PGR_OP_CMPLT, 2, [](T a, T b) { return uint8_t(a < b); }, PGR_DTYPE_BOOL);
  expect_op<T, uint8_t>(
      cpu, PGR_OP_CMPEQ, 2, [](T a, T b) { return uint8_t(a == b); }, PGR_DTYPE_BOOL);
  expect_op<T, uint8_t>(
      cpu, PGR_OP_CMPNE, 2, [](T a, T b) { return uint8_t(a != b); }, PGR_DTYPE_BOOL);
}

// Saturates, NaN gives 0; the bits of a bool are 0 and 1.
template <typename To, typename From>
To cast_to(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x) return 0;
    if (x >= std::ldexp(From(1), std::numeric_limits<To>::digits))
      return std::numeric_limits<To>::max();
    if (x <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(x);
}

template <typename From, typename To>
void expect_cast(CpuDevice& cpu) {
  std::vector<From> in = edges<From>();
  for (uint32_t lanes : {1u, 2u, 16u}) {
    const auto got =
        run_pairs<To, From>(cpu, kDtype<To>, kDtype<From>, in, in, lanes,
                            [](IrBuilder& ir, auto x, auto) { return ir.cast(x, kDtype<To>); });
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_TRUE(same(got[i], cast_to<To>(in[i])))
          << sdk::dtype_name(kDtype<From>) << " to " << sdk::dtype_name(kDtype<To>) << " x" << lanes
          << " of " << +in[i] << " is " << +got[i] << ", not " << +cast_to<To>(in[i]);
  }
}

template <typename From>
void expect_casts(CpuDevice& cpu) {
  expect_cast<From, int8_t>(cpu);
  expect_cast<From, uint8_t>(cpu);
  expect_cast<From, int16_t>(cpu);
  expect_cast<From, int32_t>(cpu);
  expect_cast<From, uint32_t>(cpu);
  expect_cast<From, int64_t>(cpu);
  expect_cast<From, uint64_t>(cpu);
  expect_cast<From, float>(cpu);
  expect_cast<From, double>(cpu);
}

TEST(CpuCasts, BetweenNumbers_SaturateOnlyFromFloats) {
  CpuDevice cpu;
  expect_casts<float>(cpu);
  expect_casts<double>(cpu);
  expect_casts<int8_t>(cpu);
  expect_casts<uint32_t>(cpu);
  expect_casts<int64_t>(cpu);
}

}  // namespace
}  // namespace plugrad::testing
