// Elementwise kernels and their buffers, for tests of ops.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "conformance/numbers/inputs.h"
#include "conformance/numbers/judge.h"
#include "conformance/test.h"
#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {

using sdk::IrBuilder;
using Value = IrBuilder::Value;
using Bytes = std::vector<std::byte>;

constexpr uint32_t kI32 = PGR_DTYPE_I32, kI64 = PGR_DTYPE_I64;
constexpr uint32_t kInput = PGR_PARAM_READ | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kOutput = PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kBoth = PGR_PARAM_READ | PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;

// Converts between bits and elements in memory.
Bytes pack(uint32_t dtype, std::span<const uint64_t> values);
std::vector<uint64_t> unpack(uint32_t dtype, std::span<const std::byte> bytes);

// Converts between vectors of C++ numbers and bytes.
template <typename T>
Bytes to_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}
template <typename T>
std::vector<T> from_bytes(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// "add", as in test ids.
std::string id_of_op(uint32_t op);
std::string id_of_dtype(uint32_t dtype);

Value index_constant(IrBuilder& ir, int64_t value, uint32_t dtype = PGR_DTYPE_I32);
Value plus(IrBuilder& ir, Value a, Value b);
Value times(IrBuilder& ir, Value a, int64_t b);
// index * size + next
Value nest(IrBuilder& ir, Value index, int64_t size, Value next);

// out[i] = op(in0[i], in1[i], …) in vectors of `lanes`, for `count` elements: a multiple of
// kElementsPerGroup.
constexpr uint64_t kElementsPerGroup = 64;
Bytes elementwise_block(const Operation& operation, uint64_t count, uint32_t lanes = 1);

// Ends the test as unsupported if the device lacks something that the block uses; otherwise runs it
// and returns its output in `buffers`.
void run_block(Context& context, std::span<const std::byte> block, std::span<Bytes> buffers,
               std::span<const uint64_t> scalars = {});

// Runs the block in the interpreter and returns its output in `buffers`.
void interpret(const sdk::IrView& ir, std::span<Bytes> buffers,
               std::span<const uint64_t> scalars = {}, uint64_t iteration_limit = UINT64_MAX);

// Ends the test at the first differing element; all NaNs are equal. `what` names the result.
void expect_equal(uint32_t dtype, std::span<const uint64_t> want, std::span<const uint64_t> got,
                  const std::string& what);

// Adds a test per op and dtype, l2.FAMILY.OP.DTYPE, and per cast, with the target dtype appended.
void add_operation_tests(Tests& tests, std::string_view family, bool casts_are_quick,
                         void (*run)(Context&, const Operation&));

// Vector widths, from 2 on, that the device supports for all these dtypes. Ends the test as
// unsupported if there are none.
std::vector<uint32_t> vector_widths(Context& context, std::initializer_list<uint32_t> dtypes);

// Values of a dtype: edges and random bits, or values near one.
std::vector<uint64_t> mixed_values(uint32_t dtype, size_t count, Random& random);
std::vector<uint64_t> tame_values(uint32_t dtype, size_t count, Random& random);

// Runs the kernel on the cases and checks every result; ends the test if one is wrong.
void run_operation(Context& context, const Operation& operation, Cases cases, uint32_t lanes = 1);

// Checks results and records the number of errors and the worst.
class Verdicts {
 public:
  Verdicts(Context& context, const Judge& judge) : context_(context), judge_(judge) {}
  void add(std::span<const uint64_t> sources, uint64_t got);
  void finish() const;  // ends the test if a result was wrong

 private:
  Context& context_;
  const Judge& judge_;
  size_t count_ = 0, wrong_ = 0;
  double worst_ = -1;
  std::vector<uint64_t> worst_sources_;
  uint64_t worst_got_ = 0;
  std::string first_wrong_;
};

}  // namespace plugrad::conformance
