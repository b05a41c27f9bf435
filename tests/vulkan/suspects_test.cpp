// Float ops that some driver computes wrongly: VULKAN claims exactly those that the present driver
// computes correctly, and tensor values are correct in both cases. ctest runs this with the
// processor as it is, with each vector width of Mesa's lavapipe, and with GALLIUM_OVERRIDE_CPU_CAPS,
// which makes Mesa assume an older processor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/settings.h"
#include "plugrad/plugrad.h"
#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/runtime.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace plugrad::runtime;
using sdk::IrBuilder;
using Value = IrBuilder::Value;
using Bits = std::vector<std::uint64_t>;

namespace {

constexpr std::uint32_t kGroup = 128;  // work-items
constexpr std::uint32_t kFloats[] = {PGR_DTYPE_F16, PGR_DTYPE_F32, PGR_DTYPE_F64};

struct Op {
  std::uint32_t op;
  int operands;
  bool is_quotient;
  Value (*apply)(IrBuilder& b, Value x, Value y, std::uint32_t dtype);
  double (*expected)(double x, double y);              // exact, or rounded at most to double
  Tensor (*on_tensors)(const Tensor&, const Tensor&);  // nullptr: not tested
};

template <std::uint32_t op>
Value unary(IrBuilder& b, Value x, Value, std::uint32_t) {
  return b.alu(op, {x});
}
template <std::uint32_t op>
Value binary(IrBuilder& b, Value x, Value y, std::uint32_t) {
  return b.alu(op, {x, y});
}
template <std::uint32_t op>
Value compare(IrBuilder& b, Value x, Value y, std::uint32_t dtype) {
  const Value one = b.constant_float(dtype, 1), zero = b.constant_float(dtype, 0);
  return b.alu(PGR_OP_WHERE, {b.alu(op, {x, y}), one, zero});
}
Value through_f32(IrBuilder& b, Value x, Value, std::uint32_t dtype) {
  return b.cast(b.cast(x, PGR_DTYPE_F32), dtype);
}

// clang-format off
constexpr Op kOps[] = {
    {PGR_OP_TRUNC, 1, false, unary<PGR_OP_TRUNC>, [](double x, double) { return std::trunc(x); }, [](const Tensor& x, const Tensor&) { return x.trunc(); }},
    {PGR_OP_SQRT, 1, false, unary<PGR_OP_SQRT>, [](double x, double) { return std::sqrt(x); }, [](const Tensor& x, const Tensor&) { return x.sqrt(); }},
    {PGR_OP_NEG, 1, false, unary<PGR_OP_NEG>, [](double x, double) { return -x; }, [](const Tensor& x, const Tensor&) { return -x; }},
    {PGR_OP_RECIP, 1, true, unary<PGR_OP_RECIP>, [](double x, double) { return 1 / x; }, nullptr},
    {PGR_OP_CAST, 1, false, through_f32, [](double x, double) { return double{static_cast<float>(x)}; }, [](const Tensor& x, const Tensor&) { return x.cast(DType::F32).cast(x.dtype()); }},
    {PGR_OP_ADD, 2, false, binary<PGR_OP_ADD>, [](double x, double y) { return x + y; }, [](const Tensor& x, const Tensor& y) { return x + y; }},
    {PGR_OP_SUB, 2, false, binary<PGR_OP_SUB>, [](double x, double y) { return x - y; }, [](const Tensor& x, const Tensor& y) { return x - y; }},
    {PGR_OP_MUL, 2, false, binary<PGR_OP_MUL>, [](double x, double y) { return x * y; }, [](const Tensor& x, const Tensor& y) { return x * y; }},
    {PGR_OP_FDIV, 2, true, binary<PGR_OP_FDIV>, [](double x, double y) { return x / y; }, nullptr},
    {PGR_OP_MAX, 2, false, binary<PGR_OP_MAX>, [](double x, double y) { return x > y || std::isnan(x) ? x : y; }, nullptr},
    {PGR_OP_CMPLT, 2, false, compare<PGR_OP_CMPLT>, [](double x, double y) { return double(x < y); }, nullptr},
    {PGR_OP_CMPEQ, 2, false, compare<PGR_OP_CMPEQ>, [](double x, double y) { return double(x == y); }, nullptr},
    {PGR_OP_CMPNE, 2, false, compare<PGR_OP_CMPNE>, [](double x, double y) { return double(x != y); }, nullptr},
};
// clang-format on

struct Format {
  std::uint32_t dtype;
  int fraction_bits, bits;
  std::uint64_t sign() const { return std::uint64_t{1} << (bits - 1); }
  std::uint64_t magnitude(std::uint64_t x) const { return x & ~sign(); }
  std::uint64_t smallest_normal() const { return std::uint64_t{1} << fraction_bits; }
  std::size_t bytes() const { return static_cast<std::size_t>(bits) / 8; }
};
Format format_of(std::uint32_t dtype) {
  if (dtype == PGR_DTYPE_F16) return {dtype, 10, 16};
  return dtype == PGR_DTYPE_F32 ? Format{dtype, 23, 32} : Format{dtype, 52, 64};
}

// Zeros, denormals, infinities, NaN, and both sides of powers of two, with and without a fraction.
Bits edges(const Format& f, int from, int to) {
  Bits found;
  for (double special : {0.0, double(INFINITY), double(NAN)})
    found.push_back(sdk::encode_float(f.dtype, special));
  found.insert(found.end(), {1, f.smallest_normal() - 1, f.smallest_normal()});
  for (int exponent = from; exponent <= to; ++exponent)
    for (double offset : {-0.5, 0.0, 0.25, 0.5}) {
      const std::uint64_t near = sdk::encode_float(f.dtype, std::ldexp(1.0, exponent) + offset);
      found.insert(found.end(), {f.magnitude(near), f.magnitude(near) + 1});
    }
  for (std::size_t i = 0, count = found.size(); i < count; ++i)
    found.push_back(found[i] | f.sign());
  return found;
}

struct Inputs {
  Bits x, y;
};
Inputs inputs_of(const Op& op, const Format& f) {
  Inputs all;
  if (op.operands == 2) {
    const Bits some = edges(f, -1, 2);
    for (std::uint64_t x : some)
      for (std::uint64_t y : some) {
        all.x.push_back(x);
        all.y.push_back(y);
      }
  } else if (f.bits == 16) {
    for (std::uint64_t x = 0; x < 1 << 16; ++x) all.x.push_back(x);
  } else {
    all.x = edges(f, -3, 70);
  }
  all.x.resize((all.x.size() + kGroup - 1) / kGroup * kGroup);
  all.y.resize(all.x.size());
  return all;
}

std::vector<std::byte> pack(const Bits& values, const Format& f) {
  std::vector<std::byte> bytes(values.size() * f.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&bytes[i * f.bytes()], &values[i], f.bytes());
  return bytes;
}
Bits unpack(const std::vector<std::byte>& bytes, const Format& f) {
  Bits values(bytes.size() / f.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], &bytes[i * f.bytes()], f.bytes());
  return values;
}

template <typename Word>
Bits read_words(const Tensor& tensor, DType dtype) {
  const std::vector<Word> words = tensor.bitcast(dtype).to_vector<Word>();
  return {words.begin(), words.end()};
}
Bits read_bits(const Tensor& tensor, const Format& f) {
  if (f.bits == 16) return read_words<std::uint16_t>(tensor, DType::U16);
  if (f.bits == 32) return read_words<std::uint32_t>(tensor, DType::U32);
  return read_words<std::uint64_t>(tensor, DType::U64);
}

class VulkanSuspects : public testing::Test {
 protected:
  bool has_dtype(std::uint32_t dtype) const { return device.caps().storage_dtypes >> dtype & 1; }

  // The op by the driver, regardless of the device's claims.
  Bits computed(const Op& op, const Format& f, const Inputs& inputs) {
    const std::uint64_t count = inputs.x.size(), bytes = count * f.bytes();
    IrBuilder b("suspect");
    b.set_groups(count / kGroup);
    b.set_local(kGroup);
    const Value x = b.buffer(f.dtype, count), y = b.buffer(f.dtype, count),
                out = b.buffer(f.dtype, count);
    const Value first = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, kGroup)});
    const Value i = b.alu(PGR_OP_ADD, {first, b.local_id(0)});
    b.store(out, i, op.apply(b, b.load(x, i), b.load(y, i), f.dtype));
    auto kernel = device.compile(b.finish(), "suspect");
    auto xs = device.allocate(bytes), ys = device.allocate(bytes), results = device.allocate(bytes);
    xs->copy_in(pack(inputs.x, f).data(), bytes);
    ys->copy_in(pack(inputs.y, f).data(), bytes);
    Buffer* buffers[] = {xs.get(), ys.get(), results.get()};
    device.launch(*kernel, {.buffers = buffers,
                            .scalars = {},
                            .group_count = {count / kGroup, 1, 1},
                            .local_size = {kGroup, 1, 1}});
    std::vector<std::byte> got(bytes);
    results->copy_out(got.data(), bytes);
    return unpack(got, f);
  }

  // Where the device may flush denormals, values up to the smallest normal one are not compared.
  bool may_flush(const Format& f, std::uint64_t bits) const {
    return f.dtype == PGR_DTYPE_F32 && device.caps().denormals != PGR_DENORMALS_PRESERVE &&
           f.magnitude(bits) != 0 && f.magnitude(bits) <= f.smallest_normal();
  }

  std::size_t count_wrong(const Op& op, const Format& f, const Inputs& inputs, const Bits& got) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double expected = op.expected(sdk::decode_float(f.dtype, inputs.x[i]),
                                          sdk::decode_float(f.dtype, inputs.y[i]));
      const std::uint64_t wanted = sdk::encode_float(f.dtype, expected);
      if (may_flush(f, inputs.x[i]) || may_flush(f, wanted)) continue;
      if (op.operands == 2 && may_flush(f, inputs.y[i])) continue;
      const bool is_nan = std::isnan(sdk::decode_float(f.dtype, got[i]));
      const std::uint64_t off = got[i] > wanted ? got[i] - wanted : wanted - got[i];
      const std::uint64_t allowed = op.is_quotient ? device.caps().division : 0;
      wrong += is_nan != std::isnan(expected) || (!is_nan && off > allowed);
    }
    return wrong;
  }

  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  Registry registry{options_from_settings()};
  runtime::Device& device = registry.find_device("VULKAN");
};

}  // namespace

TEST_F(VulkanSuspects, AnOp_IsClaimedWhereTheDriverComputesIt) {
  for (std::uint32_t dtype : kFloats)
    for (const Op& op : kOps) {
      if (!has_dtype(dtype)) continue;
      const Format f = format_of(dtype);
      const Inputs inputs = inputs_of(op, f);
      const bool is_claimed = device.caps().op_dtypes[op.op] >> dtype & 1;
      const std::size_t wrong = count_wrong(op, f, inputs, computed(op, f, inputs));
      EXPECT_EQ(is_claimed, wrong == 0)
          << "op " << op.op << ", dtype " << dtype << ": " << wrong << " wrong results";
    }
}

TEST_F(VulkanSuspects, AnOpOfTensors_IsRight) {
  for (std::uint32_t dtype : kFloats)
    for (const Op& op : kOps) {
      if (!has_dtype(dtype) || !op.on_tensors) continue;
      const Format f = format_of(dtype);
      const Inputs inputs = inputs_of(op, f);
      const auto tensor_of = [&](const Bits& values) {
        const Shape shape{static_cast<std::int64_t>(values.size())};
        return Tensor::from_bytes(pack(values, f), shape, static_cast<DType>(dtype), "VULKAN");
      };
      const Tensor result = op.on_tensors(tensor_of(inputs.x), tensor_of(inputs.y));
      EXPECT_EQ(count_wrong(op, f, inputs, read_bits(result, f)), 0u)
          << "op " << op.op << ", dtype " << dtype;
    }
}
