#include "dialects/kernels.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "plugrad/sdk/interpreter.h"
#include "unit/cpu_clang/random_kernel.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;
using Value = IrBuilder::Value;

constexpr uint32_t kRandomKernels = 10;
constexpr uint32_t kRead = PGR_PARAM_READ | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kWrite = PGR_PARAM_READ | PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;

// Everything that dialect c renders, except ATOMIC_ADD.
pgr_device_caps all_claims(bool has_f16) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (const sdk::OpInfo& op : sdk::all_ops()) caps.op_dtypes[op.number] = ~0u;
  for (uint32_t op : {PGR_OP_EXP2, PGR_OP_LOG2, PGR_OP_SIN}) caps.op_dtypes[op] = 0;
  caps.storage_dtypes = has_f16 ? ~0u : ~(1u << PGR_DTYPE_F16);
  return caps;
}

KernelCase random_case(uint32_t seed, uint32_t most_lanes, bool has_f16) {
  RandomKernel kernel(seed, all_claims(has_f16), most_lanes);
  KernelCase made{"random kernel " + std::to_string(seed), kernel.block(), 2, {}, {}, {}};
  made.contents = kernel.contents();
  for (size_t i = 0; i < made.contents.size(); ++i)
    made.dtypes.push_back(kernel.stored_dtype(RandomKernel::dtype_of_param(i)));
  return made;
}

// Writes one kernel and its buffers.
class CaseWriter {
 public:
  explicit CaseWriter(const std::string& name, uint64_t groups = 1) : ir("k") {
    made_.name = name;
    made_.groups = groups;
    ir.set_groups(groups);
  }
  // Small numbers: -8.5 to 8; unsigned integers start at 250.
  Value input(uint32_t dtype, uint64_t count) {
    std::vector<std::byte> bytes(count * sdk::dtype_size(dtype));
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t whole = static_cast<int64_t>(i * 7 % 17) - 8;
      const uint64_t bits = sdk::dtype_info(dtype)->is_float
                                ? sdk::encode_float(dtype, static_cast<double>(whole) - 0.5)
                                : static_cast<uint64_t>(whole);
      std::memcpy(&bytes[i * sdk::dtype_size(dtype)], &bits, sdk::dtype_size(dtype));
    }
    return input_of(dtype, count, std::move(bytes));
  }
  Value input_of(uint32_t dtype, uint64_t count, std::vector<std::byte> bytes) {
    return add(dtype, count, kRead, std::move(bytes));
  }
  Value output(uint32_t dtype, uint64_t count) {
    return add(dtype, count, kWrite,
               std::vector<std::byte>(count * sdk::dtype_size(dtype), std::byte{0}));
  }
  Value scalar(uint32_t dtype, int64_t value, int64_t most) {
    made_.scalars.push_back(static_cast<uint64_t>(value));
    return ir.scalar(dtype, 0, most);
  }
  Value index(int64_t value) { return ir.constant_int(PGR_DTYPE_I32, value); }
  Value scaled(Value value, int64_t factor) { return ir.alu(PGR_OP_MUL, {value, index(factor)}); }
  Value sum(Value a, Value b) { return ir.alu(PGR_OP_ADD, {a, b}); }
  KernelCase finish() {
    made_.block = ir.finish();
    return std::move(made_);
  }
  IrBuilder ir;

 private:
  Value add(uint32_t dtype, uint64_t count, uint32_t flags, std::vector<std::byte> bytes) {
    made_.dtypes.push_back(dtype);
    made_.contents.push_back(std::move(bytes));
    return ir.buffer(dtype, count, flags);
  }
  KernelCase made_;
};

// C = A * B of 16 x 24 and 24 x 32, one row per group, `lanes` columns at a time.
KernelCase matmul(uint32_t lanes) {
  constexpr int64_t kInner = 24, kColumns = 32;
  CaseWriter w("matmul", 16);
  const Value c = w.output(PGR_DTYPE_F32, 16 * kColumns);
  const Value a = w.input(PGR_DTYPE_F32, 16 * kInner),
              b = w.input(PGR_DTYPE_F32, kInner * kColumns);
  const Value row = w.ir.group_id(0);
  const Value column = w.ir.loop(w.index(0), w.index(kColumns / lanes));
  const Value first = w.scaled(column, lanes);
  const Value acc = w.ir.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, lanes, lanes);
  w.ir.store(acc, w.index(0), w.ir.splat(w.ir.constant_float(PGR_DTYPE_F32, 0), lanes));
  const Value k = w.ir.loop(w.index(0), w.index(kInner));
  const Value x = w.ir.load(a, w.sum(w.scaled(row, kInner), k));
  const Value y = w.ir.load(b, w.sum(w.scaled(k, kColumns), first), lanes);
  const Value product = w.ir.emit(PGR_OP_MUL, PGR_DTYPE_F32, lanes, {x, y});
  w.ir.store(acc, w.index(0), w.ir.alu(PGR_OP_ADD, {w.ir.load(acc, w.index(0), lanes), product}));
  w.ir.end_loop(k);
  w.ir.store(c, w.sum(w.scaled(row, kColumns), first), w.ir.load(acc, w.index(0), lanes));
  w.ir.end_loop(column);
  return w.finish();
}

// out = half(float(a) * b) for a half type, through f32.
KernelCase half_product(uint32_t dtype, uint32_t lanes) {
  CaseWriter w("half product", 4);
  const Value out = w.output(dtype, 64), a = w.input(dtype, 64), b = w.input(PGR_DTYPE_F32, 64);
  const Value i = w.ir.loop(w.index(0), w.index(16 / lanes));
  const Value at = w.sum(w.scaled(w.ir.group_id(0), 16), w.scaled(i, lanes));
  const Value wide = w.ir.cast(w.ir.load(a, at, lanes), PGR_DTYPE_F32);
  const Value product = w.ir.alu(PGR_OP_MUL, {wide, w.ir.load(b, at, lanes)});
  w.ir.store(out, at, w.ir.cast(product, dtype));
  w.ir.end_loop(i);
  return w.finish();
}

// Signed bytes, compared and widened, and u64 beyond 32 bits.
KernelCase integers(uint32_t lanes) {
  CaseWriter w("integers", 2);
  const Value out = w.output(PGR_DTYPE_I64, 64), words = w.output(PGR_DTYPE_U64, 64);
  const Value a = w.input(PGR_DTYPE_I8, 64), b = w.input(PGR_DTYPE_U64, 64);
  const Value n = w.scalar(PGR_DTYPE_I32, 32, 32);
  const Value base = w.ir.alu(PGR_OP_MUL, {w.ir.group_id(0), n});
  const Value i = w.ir.loop(w.index(0), w.index(32 / lanes));
  const Value at = w.sum(base, w.scaled(i, lanes));
  const Value x = w.ir.load(a, at, lanes), y = w.ir.load(b, at, lanes);
  const Value zero = w.ir.constant_int(PGR_DTYPE_I8, 0), one = w.ir.constant_int(PGR_DTYPE_I64, 1);
  const Value wide = w.ir.cast(x, PGR_DTYPE_I64);
  const Value is_less = w.ir.emit(PGR_OP_CMPLT, PGR_DTYPE_BOOL, lanes, {x, zero});
  const Value bit = w.ir.emit(PGR_OP_SHL, PGR_DTYPE_I64, lanes,
                              {one, w.ir.emit(PGR_OP_ADD, PGR_DTYPE_I64, lanes,
                                              {wide, w.ir.constant_int(PGR_DTYPE_I64, 40)})});
  w.ir.store(out, at, w.ir.emit(PGR_OP_WHERE, PGR_DTYPE_I64, lanes, {is_less, wide, bit}));
  const Value factor = w.ir.constant_int(PGR_DTYPE_U64, int64_t{1} << 33);
  w.ir.store(
      words, at,
      w.ir.emit(PGR_OP_IDIV, PGR_DTYPE_U64, lanes, {y, w.ir.constant_int(PGR_DTYPE_U64, 10)}));
  w.ir.store(words, at,
             w.ir.emit(PGR_OP_XOR, PGR_DTYPE_U64, lanes, {w.ir.load(words, at, lanes), factor}));
  w.ir.end_loop(i);
  return w.finish();
}

// The last vector extends beyond the buffers: those lanes are gated off.
KernelCase predicated(uint32_t dtype, uint32_t lanes) {
  CaseWriter w("predicated loads", 1);
  const Value out = w.output(dtype, 61), in = w.input(dtype, 61);
  const Value numbers = w.input(PGR_DTYPE_I32, 64);
  const Value i = w.ir.loop(w.index(0), w.index(64 / lanes));
  const Value at = w.scaled(i, lanes);
  const Value positive =
      w.ir.emit(PGR_OP_CMPLT, PGR_DTYPE_BOOL, lanes, {w.index(-3), w.ir.load(numbers, at, lanes)});
  std::vector<Value> inside;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    inside.push_back(w.ir.alu(PGR_OP_CMPLT, {w.sum(at, w.index(lane)), w.index(61)}));
  const Value is_inside =
      lanes == 1 ? inside[0] : w.ir.emit(PGR_OP_VECTOR, PGR_DTYPE_BOOL, lanes, inside);
  const Value gate = w.ir.alu(PGR_OP_AND, {positive, is_inside});
  const Value other = w.ir.constant_int(dtype, 0);
  w.ir.store_gated(out, at, w.ir.load_gated(in, at, gate, other, lanes), is_inside);
  w.ir.end_loop(i);
  return w.finish();
}

// x / x, which compilers may turn into a comparison with 0: GCC 12 then gives -1 in vectors that it
// builds from lanes.
KernelCase divided_by_itself() {
  CaseWriter w("integers divided by themselves");
  const Value out = w.output(PGR_DTYPE_U64, 16), in = w.input(PGR_DTYPE_U64, 16);
  const Value i = w.ir.loop(w.index(0), w.index(8));
  const Value at = w.scaled(i, 2), x = w.ir.load(in, at, 2);
  w.ir.store(out, at, w.ir.alu(PGR_OP_IDIV, {x, x}));
  w.ir.end_loop(i);
  return w.finish();
}

// The bits of the last of two lanes, as an integer and through a cast to its own dtype.
KernelCase bits_of_lanes(uint32_t from, uint32_t to) {
  CaseWriter w("bits of a lane");
  const Value out = w.output(to, 16), in = w.input(from, 16);
  const Value x = w.ir.load(in, w.index(2), 2), y = w.ir.load(in, w.index(6), 2);
  w.ir.store(out, w.index(0), w.ir.bitcast(w.ir.lane(x, 1), to));
  w.ir.store(out, w.index(1), w.ir.bitcast(w.ir.cast(w.ir.lane(y, 1), from), to));
  return w.finish();
}

// Integers above 53 bits, just above and below the midpoint of two f32 values, in pairs and single:
// converting through f64 would round twice.
KernelCase large_integers(uint32_t dtype, uint32_t lanes) {
  CaseWriter w("large integers as f32");
  std::vector<uint64_t> values;
  for (int bit = 53; bit < 63; ++bit)
    for (uint64_t mantissa : {uint64_t{0x800000}, uint64_t{0x800001}, uint64_t{0xc00003}})
      for (int off : {-1, 0, 1}) {
        const uint64_t middle = (mantissa << (bit - 23)) + (uint64_t{1} << (bit - 24));
        const uint64_t value = middle + static_cast<uint64_t>(off);
        values.push_back(dtype == PGR_DTYPE_I64 && mantissa % 2 == 1 ? ~value + 1 : value);
      }
  values.resize(96);
  const auto bytes = std::as_bytes(std::span(values));
  const Value out = w.output(PGR_DTYPE_F32, 96);
  const Value in = w.input_of(dtype, 96, {bytes.begin(), bytes.end()});
  const Value i = w.ir.loop(w.index(0), w.index(96 / lanes));
  const Value at = w.scaled(i, lanes);
  w.ir.store(out, at, w.ir.cast(w.ir.load(in, at, lanes), PGR_DTYPE_F32));
  w.ir.end_loop(i);
  return w.finish();
}

// x * x + z, where single and double rounding differ, and the kernel would allow single rounding:
// the compile option must forbid it.
KernelCase contracted() {
  CaseWriter w("contraction that is allowed by the kernel and not by the option");
  w.ir.set_contract(true);
  const Value out = w.output(PGR_DTYPE_F32, 1);
  const float numbers[] = {1 + 0x1p-12f, -(1 + 0x1p-11f)};
  const auto bytes = std::as_bytes(std::span(numbers));
  const Value in = w.input_of(PGR_DTYPE_F32, 2, {bytes.begin(), bytes.end()});
  const Value x = w.ir.load(in, w.index(0)), z = w.ir.load(in, w.index(1));
  w.ir.store(out, w.index(0), w.sum(w.ir.alu(PGR_OP_MUL, {x, x}), z));
  return w.finish();
}

}  // namespace

std::vector<KernelCase> make_kernels(uint32_t most_lanes, bool has_f16) {
  const uint32_t lanes = std::min(most_lanes, 8u), many = std::min(most_lanes, 16u);
  std::vector<KernelCase> kernels = {matmul(lanes),
                                     half_product(PGR_DTYPE_BF16, lanes),
                                     integers(many),
                                     predicated(PGR_DTYPE_I32, lanes),
                                     predicated(PGR_DTYPE_I8, many),
                                     contracted(),
                                     large_integers(PGR_DTYPE_I64, 1),
                                     large_integers(PGR_DTYPE_U64, 1),
                                     large_integers(PGR_DTYPE_I64, std::min(most_lanes, 2u)),
                                     large_integers(PGR_DTYPE_U64, std::min(most_lanes, 4u))};
  if (most_lanes > 1)
    for (KernelCase& kernel :
         std::vector{divided_by_itself(), bits_of_lanes(PGR_DTYPE_F32, PGR_DTYPE_I32),
                     bits_of_lanes(PGR_DTYPE_I64, PGR_DTYPE_F64)})
      kernels.push_back(std::move(kernel));
  if (has_f16) kernels.push_back(half_product(PGR_DTYPE_F16, lanes));
  for (uint32_t seed = 1; seed <= kRandomKernels; ++seed)
    kernels.push_back(random_case(seed, most_lanes, has_f16));
  return kernels;
}

Contents interpret(const KernelCase& kernel) {
  Contents contents = kernel.contents;
  std::vector<sdk::InterpreterBuffer> buffers;
  for (auto& bytes : contents) buffers.push_back({bytes.data(), bytes.size()});
  sdk::InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.scalars = kernel.scalars;
  launch.group_count = {kernel.groups, 1, 1};
  sdk::Interpreter(sdk::decode_ir(kernel.block)).run(launch);
  return contents;
}

std::string difference(uint32_t dtype, const std::vector<std::byte>& want, const char* got) {
  const uint32_t size = sdk::dtype_size(dtype);
  for (size_t i = 0; i < want.size() / size; ++i) {
    if (std::memcmp(&want[i * size], got + i * size, size) == 0) continue;
    uint64_t one = 0, other = 0;
    std::memcpy(&one, &want[i * size], size);
    std::memcpy(&other, got + i * size, size);
    const bool are_nan = sdk::dtype_info(dtype)->is_float &&
                         std::isnan(sdk::decode_float(dtype, one)) &&
                         std::isnan(sdk::decode_float(dtype, other));
    if (!are_nan)
      return std::string(sdk::dtype_name(dtype)) + " element " + std::to_string(i) + " is " +
             std::to_string(other) + ", not " + std::to_string(one) + " (bits)";
  }
  return {};
}

}  // namespace plugrad::testing
