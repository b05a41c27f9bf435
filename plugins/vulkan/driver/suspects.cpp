#include "suspects.h"

#include <cstdlib>
#include <cstring>

#include "exact_floats.h"
#include "plugin.h"

namespace plugrad::vulkan {
namespace {

using Format = const FloatFormat&;
using Bits = uint64_t;

struct Type {
  uint32_t dtype;
  FloatFormat format;
  const char *name, *word, *from_word, *to_word;  // GLSL
};

constexpr uint32_t mask(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kF16Mask = mask(PGR_DTYPE_F16), kF32Mask = mask(PGR_DTYPE_F32),
                   kF64Mask = mask(PGR_DTYPE_F64), kAllMask = kF16Mask | kF32Mask | kF64Mask;

Bits trunc_of(Format f, Bits x, Bits) {
  return truncate(f, x);
}
Bits sqrt_of(Format f, Bits x, Bits) {
  return square_root(f, x);
}
Bits neg_of(Format f, Bits x, Bits) {
  return x ^ f.sign();
}
Bits recip_of(Format f, Bits x, Bits) {
  return divide(f, f.one(), x);
}
Bits through_f16(Format f, Bits x, Bits) {
  return convert(kF16, f, convert(f, kF16, x));
}
Bits through_f32(Format f, Bits x, Bits) {
  return convert(kF32, f, convert(f, kF32, x));
}
Bits sub_of(Format f, Bits x, Bits y) {
  return f.is_nan(y) ? y : add(f, x, y ^ f.sign());
}
Bits max_of(Format f, Bits x, Bits y) {
  return less(f, y, x) || f.is_nan(x) ? x : y;
}
Bits less_of(Format f, Bits x, Bits y) {
  return less(f, x, y) ? f.one() : 0;
}
Bits equal_of(Format f, Bits x, Bits y) {
  return equal(f, x, y) ? f.one() : 0;
}
Bits unequal_of(Format f, Bits x, Bits y) {
  return equal(f, x, y) ? 0 : f.one();
}

// An op as the dialect renders it for x and y of type T.
struct Suspect {
  uint32_t op;
  uint32_t inputs;  // mask of dtypes of x and y
  uint32_t claim;   // mask of the dtype to withdraw; 0: that of x and y
  int operands;
  const char* expression;
  Bits (*expected)(Format, Bits x, Bits y);
};
// clang-format off
constexpr Type kTypes[] = {
    {PGR_DTYPE_F16, kF16, "float16_t", "uint16_t", "uint16BitsToFloat16", "float16BitsToUint16"},
    {PGR_DTYPE_F32, kF32, "float", "uint", "uintBitsToFloat", "floatBitsToUint"},
    {PGR_DTYPE_F64, kF64, "double", "uint64_t", "uint64BitsToDouble", "doubleBitsToUint64"},
};
constexpr Suspect kSuspects[] = {
    {PGR_OP_TRUNC, kF32Mask | kF64Mask, 0, 1, "trunc(x)", trunc_of},
    {PGR_OP_TRUNC, kF16Mask, 0, 1, "float16_t(trunc(float(x)))", trunc_of},
    {PGR_OP_SQRT, kF64Mask, 0, 1, "sqrt(x)", sqrt_of},  // the dialect has the others in integers
    {PGR_OP_NEG, kAllMask, 0, 1, "-x", neg_of},
    {PGR_OP_RECIP, kAllMask, 0, 1, "T(1) / x", recip_of},
    {PGR_OP_CAST, kF16Mask | kF64Mask, 0, 1, "T(float(x))", through_f32},
    {PGR_OP_CAST, kF32Mask, kF16Mask, 1, "float(float16_t(x))", through_f16},
    {PGR_OP_ADD, kAllMask, 0, 2, "x + y", add},
    {PGR_OP_SUB, kAllMask, 0, 2, "x - y", sub_of},
    {PGR_OP_MUL, kAllMask, 0, 2, "x * y", multiply},
    {PGR_OP_FDIV, kAllMask, 0, 2, "x / y", divide},
    {PGR_OP_MAX, kAllMask, 0, 2, "x > y || x != x ? x : y", max_of},
    {PGR_OP_CMPLT, kAllMask, 0, 2, "T(x < y)", less_of},
    {PGR_OP_CMPEQ, kAllMask, 0, 2, "T(x == y)", equal_of},
    {PGR_OP_CMPNE, kAllMask, 0, 2, "T(x != y)", unequal_of},
};
// clang-format on

// Work-items of a group: Vulkan requires a device to have as many, and they fill several vectors of
// any driver in software.
constexpr size_t kGroup = 128;

// Magnitudes: zero, infinity, NaN, denormals, and for each power of two its neighbours and the
// values 0.5 away.
std::vector<Bits> edges(Format f, const std::vector<int>& exponents) {
  const Bits half = f.one() - f.smallest_normal();
  std::vector<Bits> found = {0, 1, f.smallest_normal() / 2 + 1, f.infinity(), f.nan()};
  for (const int exponent : exponents) {
    const Bits power = static_cast<Bits>(exponent + f.bias()) << f.fraction_bits;
    found.insert(found.end(), {power - 1, power, power + 1, add(f, power, half),
                               f.magnitude(add(f, power, half | f.sign()))});
  }
  return found;
}

std::vector<Bits> with_both_signs(Format f, std::vector<Bits> values) {
  for (size_t i = 0, count = values.size(); i < count; ++i) values.push_back(values[i] | f.sign());
  return values;
}

// Of f16 all values; of other formats the edges of every exponent where fractions or integers end,
// and of some beyond.
std::vector<Bits> unary_operands(Format f) {
  std::vector<Bits> all;
  if (f.bits() == 16) {
    for (Bits x = 0; x < 1 << 16; ++x) all.push_back(x);
    return all;
  }
  std::vector<int> exponents;
  for (int e = 1 - f.bias(); e <= f.bias(); ++e)
    if (std::abs(e) <= 70 || e % 16 == 0) exponents.push_back(e);
  return with_both_signs(f, edges(f, exponents));
}

// Operands of the work-items: first all pairs of edges, then those of unary ops, then zeros.
struct Operands {
  explicit Operands(Format f)
      : ends(with_both_signs(f, edges(f, {1 - f.bias(), -1, 0, 1, f.fraction_bits, f.bias()}))),
        single(unary_operands(f)),
        pairs(ends.size() * ends.size()),
        count((pairs + single.size() + kGroup - 1) / kGroup * kGroup) {}
  Bits x(size_t i) const {
    if (i < pairs) return ends[i / ends.size()];
    return i - pairs < single.size() ? single[i - pairs] : 0;
  }
  Bits y(size_t i) const { return i < pairs ? ends[i % ends.size()] : 0; }

  std::vector<Bits> ends, single;
  size_t pairs, count;
};

std::vector<Suspect> claimed_suspects(const pgr_device_caps& caps, uint32_t dtype) {
  std::vector<Suspect> found;
  for (Suspect one : kSuspects) {
    if (one.claim == 0) one.claim = mask(dtype);
    if ((one.inputs & mask(dtype)) && (caps.op_dtypes[one.op] & one.claim)) found.push_back(one);
  }
  return found;
}

constexpr const char* kShader = R"(
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#pragma kernel(suspects, 1, 0, 0, 0)
#define ELEMENT(array) Word(slots[0] + (uint64_t(array) * COUNT + i) * BYTES).v
layout(local_size_x = GROUP) in;
layout(buffer_reference, std430, buffer_reference_align = BYTES) buffer Word { WORD v; };
layout(push_constant) uniform Params { uint64_t slots[16]; };
void main() {
  const uint64_t i = uint64_t(gl_GlobalInvocationID.x);
  const T x = FROM_WORD(ELEMENT(0)), y = FROM_WORD(ELEMENT(1));
)";

// Work-item i reads element i of two arrays, and writes element i of one array for each suspect.
// The operands are loaded, so that compilers cannot fold them.
std::string make_source(const Type& type, const std::vector<Suspect>& suspects, size_t count) {
  std::string source = "#version 460\n";
  const auto define = [&](const std::string& name, const std::string& value) {
    source += "#define " + name + " " + value + "\n";
  };
  define("T", type.name);
  define("WORD", type.word);
  define("FROM_WORD", type.from_word);
  define("BYTES", std::to_string(type.format.bits() / 8));
  define("COUNT", std::to_string(count));
  define("GROUP", std::to_string(kGroup));
  source += kShader;
  for (size_t i = 0; i < suspects.size(); ++i)
    source += "  ELEMENT(" + std::to_string(i + 2) + ") = " + type.to_word + "(" +
              suspects[i].expression + ");\n";
  return source + "}\n";
}

// Words of constant sizes: copies of any size would take half of the host's time.
template <typename Word>
Bits load_word(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
Bits load_bits(const char* at, size_t bytes) {
  if (bytes == 2) return load_word<uint16_t>(at);
  return bytes == 4 ? load_word<uint32_t>(at) : load_word<uint64_t>(at);
}
void store_bits(char* at, size_t bytes, Bits bits) {
  if (bytes == 2) std::memcpy(at, &bits, 2);
  if (bytes == 4) std::memcpy(at, &bits, 4);
  if (bytes == 8) std::memcpy(at, &bits, 8);
}

// The host caches the module, as it caches those of kernels: compiling costs more than running it.
std::string compile_cached(pgr_device& device, const std::string& source) {
  const pgr_host_api& host = *device.plugin->host;
  const std::string key = "vulkan suspects\n" + target_of(&device) + "\n" + source;
  const pgr_string key_text = sdk::to_pgr(key);
  pgr_blob found;
  PGR_INIT(found, BLOB);
  if (host.cache_get(host.host, &key_text, &found, nullptr) == PGR_STATUS_OK) {
    const std::string binary(static_cast<const char*>(found.data), found.size);
    if (found.release) found.release(&found);
    return binary;
  }
  std::string log;
  const std::string binary = compile_source(&device, source, "suspects", log);
  host.cache_put(host.host, &key_text, binary.data(), binary.size(), nullptr);
  return binary;
}

// The claimed ops of one dtype on the device.
class Probe {
 public:
  Probe(pgr_device& device, const Type& type)
      : device_(device),
        type_(type),
        suspects_(claimed_suspects(device.caps, type.dtype)),
        operands_(type.format) {}
  ~Probe() {
    if (pipeline_) device_.api.vkDestroyPipeline(device_.api.handle, pipeline_, nullptr);
    sdk::guard(nullptr, [&] { retire(device_, range_); });
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void run() {
    if (suspects_.empty()) return;
    range_ = take_memory(device_, device_.facts.host_memory,
                         (2 + suspects_.size()) * count() * bytes(), kBufferAlign);
    std::memset(range_.mapped(), 0xa5, range_.size);
    for (size_t i = 0; i < count(); ++i) {
      store_bits(element(0, i), bytes(), operands_.x(i));
      store_bits(element(1, i), bytes(), operands_.y(i));
    }
    const std::string binary = compile_cached(device_, make_source(type_, suspects_, count()));
    pipeline_ = make_pipeline(device_, require_module(&device_, binary.data(), binary.size()));
    const uint64_t slots[kSlots] = {range_.address()};
    Stream& stream = *device_.streams.front();
    stream.dispatch({pipeline_, slots, {static_cast<uint32_t>(count() / kGroup), 1, 1}});
    stream.finish();
  }

  // Adds the claims with a wrong result.
  void judge(std::vector<BrokenClaim>& broken) const {
    for (size_t row = 0; row < suspects_.size(); ++row) {
      const Suspect& one = suspects_[row];
      const size_t tested = one.operands == 1 ? count() : operands_.pairs;
      size_t wrong = 0, first = 0;
      for (size_t i = 0; i < tested; ++i) {
        if (is_right(one, i, result(row, i))) continue;
        if (wrong++ == 0) first = i;
      }
      if (wrong == 0) continue;
      broken.push_back({one.op, one.claim});
      report(one, first, result(row, first), wrong, tested);
    }
  }

 private:
  size_t count() const { return operands_.count; }
  size_t bytes() const { return static_cast<size_t>(type_.format.bits()) / 8; }
  char* element(size_t array, size_t i) const {
    return range_.mapped() + (array * count() + i) * bytes();
  }
  Bits result(size_t row, size_t i) const { return load_bits(element(row + 2, i), bytes()); }
  Bits expected(const Suspect& one, size_t i) const {
    return one.expected(type_.format, operands_.x(i), operands_.y(i));
  }

  bool may_flush(Bits x) const {
    return type_.dtype == PGR_DTYPE_F32 && device_.caps.denormals != PGR_DENORMALS_PRESERVE &&
           type_.format.magnitude(x) - 1 < type_.format.smallest_normal();
  }
  // Any NaN is as good as another. Where the device may flush denormals, results at or below the
  // smallest normal value are not judged.
  bool is_right(const Suspect& one, size_t i, Bits got) const {
    const FloatFormat& f = type_.format;
    const Bits wanted = expected(one, i);
    if (got == wanted || (f.is_nan(got) && f.is_nan(wanted))) return true;
    if (may_flush(operands_.x(i)) || may_flush(wanted)) return true;
    if (one.operands == 2 && may_flush(operands_.y(i))) return true;
    const bool is_quotient = one.op == PGR_OP_FDIV || one.op == PGR_OP_RECIP;
    const Bits off = got > wanted ? got - wanted : wanted - got;
    return is_quotient && !f.is_nan(got) && !f.is_nan(wanted) && off <= device_.caps.division;
  }

  void report(const Suspect& one, size_t i, Bits got, size_t wrong, size_t tested) const {
    char text[200];
    const bool is_binary = one.operands == 2;
    std::snprintf(text, sizeof text,
                  ": %s of %s gives 0x%llx for 0x%llx%s%.0llx, expected is 0x%llx; %zu of %zu "
                  "results are wrong, and the claim is withdrawn",
                  one.expression, type_.name, static_cast<unsigned long long>(got),
                  static_cast<unsigned long long>(operands_.x(i)), is_binary ? ", 0x" : "",
                  is_binary ? static_cast<unsigned long long>(operands_.y(i)) : 0,
                  static_cast<unsigned long long>(expected(one, i)), wrong, tested);
    const std::string message = device_.facts.name + text;
    const pgr_string told = sdk::to_pgr(message);
    const pgr_host_api& host = *device_.plugin->host;
    host.log(host.host, PGR_LOG_INFO, &told);
  }

  pgr_device& device_;
  const Type& type_;
  std::vector<Suspect> suspects_;
  Operands operands_;
  MemoryRange range_;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

std::vector<BrokenClaim> probe(pgr_device& device) {
  std::vector<BrokenClaim> broken;
  for (const Type& type : kTypes) {
    Probe one(device, type);
    one.run();
    one.judge(broken);
  }
  return broken;
}

}  // namespace

void withdraw_broken_claims(pgr_device& device) {
  pgr_plugin& plugin = *device.plugin;
  const std::lock_guard lock(plugin.broken_mutex);
  auto known = plugin.broken_claims.find(device.facts.uuid);
  if (known == plugin.broken_claims.end())
    known = plugin.broken_claims.emplace(device.facts.uuid, probe(device)).first;
  for (const BrokenClaim& one : known->second) device.caps.op_dtypes[one.op] &= ~one.dtypes;
}

}  // namespace plugrad::vulkan
