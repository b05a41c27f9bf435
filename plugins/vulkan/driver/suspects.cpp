#include "suspects.h"

#include "plugin.h"

namespace plugrad::vulkan {
namespace {

// clang-format off
constexpr Suspect kSuspects[] = {
    // llvmpipe of Mesa 22.3 treats f64 values of 2^24 and more as integral if the processor has no
    // rounding instruction for its vector width.
    {PGR_OP_TRUNC, PGR_DTYPE_F64, "trunc(x)", 0x432fffffffffffff, 0, 0x432ffffffffffffe},  // 2^52 - 0.5
    {PGR_OP_TRUNC, PGR_DTYPE_F64, "trunc(x)", 0xc170000008000000, 0, 0xc170000000000000},  // -(2^24 + 0.5)
    {PGR_OP_TRUNC, PGR_DTYPE_F64, "trunc(x)", 0xbfe0000000000000, 0, 0x8000000000000000},  // -0.5
    {PGR_OP_TRUNC, PGR_DTYPE_F32, "trunc(x)", 0x4affffff, 0, 0x4afffffe},                  // 2^23 - 0.5
    {PGR_OP_TRUNC, PGR_DTYPE_F32, "trunc(x)", 0xbf000000, 0, 0x80000000},                  // -0.5
    {PGR_OP_TRUNC, PGR_DTYPE_F16, "float16_t(trunc(float(x)))", 0x63ff, 0, 0x63fe},        // 1023.5
    // Only some drivers round f64 square roots correctly.
    {PGR_OP_SQRT, PGR_DTYPE_F64, "sqrt(x)", 0x4000000000000000, 0, 0x3ff6a09e667f3bcd},    // 2
    {PGR_OP_SQRT, PGR_DTYPE_F64, "sqrt(x)", 0x3fefffffffffffff, 0, 0x3fefffffffffffff},    // 1 - 2^-53
    // llvmpipe does not report that it preserves denormals; it is assumed to.
    {PGR_OP_ADD, PGR_DTYPE_F64, "x + y", 1, 1, 2},
    {PGR_OP_SUB, PGR_DTYPE_F64, "x - y", 0x0010000000000001, 0x0010000000000000, 1},
    {PGR_OP_MUL, PGR_DTYPE_F64, "x * y", 0x0010000000000000, 0x3fe0000000000000, 0x0008000000000000},
    {PGR_OP_FDIV, PGR_DTYPE_F64, "x / y", 0x0010000000000000, 0x4000000000000000, 0x0008000000000000},
    {PGR_OP_ADD, PGR_DTYPE_F16, "x + y", 1, 1, 2},
    {PGR_OP_SUB, PGR_DTYPE_F16, "x - y", 0x0401, 0x0400, 1},
    {PGR_OP_MUL, PGR_DTYPE_F16, "x * y", 0x0400, 0x3800, 0x0200},
    {PGR_OP_FDIV, PGR_DTYPE_F16, "x / y", 0x0400, 0x4000, 0x0200},
};
// clang-format on
constexpr size_t kRows = std::size(kSuspects);

struct FloatText {
  const char *type, *from_word, *to_word;
};
FloatText text_of(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return {"float16_t", "uint16BitsToFloat16(uint16_t", "float16BitsToUint16"};
    case PGR_DTYPE_F32:
      return {"float", "uintBitsToFloat(uint", "floatBitsToUint"};
    default:
      return {"double", "uint64BitsToDouble(uint64_t", "doubleBitsToUint64"};
  }
}

bool claims(const pgr_device_caps& caps, const Suspect& one) {
  return caps.op_dtypes[one.op] >> one.dtype & 1;
}

std::string word(size_t index) {
  return "Word(slots[0] + " + std::to_string(8 * index) + "ul).v";
}

// A shader of one work-item. Row i reads words 3 i and 3 i + 1 and writes word 3 i + 2; the
// operands are loaded, so that compilers cannot fold them.
// The subgroup size follows the rows: Mesa 22.3 would otherwise reuse the machine code of another
// vector width from its disk cache for an identical shader.
std::string make_source(const pgr_device_caps& caps) {
  std::string source =
      "#version 460\n"
      "#extension GL_EXT_buffer_reference : require\n"
      "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
      "#pragma kernel(suspects, 1, 0, 0, 0)\n"
      "layout(local_size_x = 1) in;\n"
      "layout(buffer_reference, std430, buffer_reference_align = 8) buffer Word { uint64_t v; };\n"
      "layout(push_constant) uniform Params { uint64_t slots[16]; };\n"
      "void main() {\n";
  for (size_t i = 0; i < kRows; ++i) {
    const Suspect& one = kSuspects[i];
    if (!claims(caps, one)) continue;
    const FloatText text = text_of(one.dtype);
    const std::string type = text.type, from = text.from_word;
    source += "  { const " + type + " x = " + from + "(" + word(3 * i) + ")), y = " + from + "(" +
              word(3 * i + 1) + ")), r = " + one.expression + "; " + word(3 * i + 2) +
              " = uint64_t(" + text.to_word + "(r)); }\n";
  }
  return source + "  " + word(kRows * 3) + " = " + std::to_string(caps.subgroup_size) + "ul;\n}\n";
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

class Probe {
 public:
  explicit Probe(pgr_device& device)
      : device_(device),
        range_(take_memory(device, device.facts.host_memory, (3 * kRows + 1) * sizeof(uint64_t),
                           kBufferAlign)) {}
  ~Probe() {
    if (pipeline_) device_.api.vkDestroyPipeline(device_.api.handle, pipeline_, nullptr);
    sdk::guard(nullptr, [&] { retire(device_, range_); });
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void run(const std::string& binary) {
    for (size_t i = 0; i < kRows; ++i) {
      words()[3 * i] = kSuspects[i].x;
      words()[3 * i + 1] = kSuspects[i].y;
      words()[3 * i + 2] = ~kSuspects[i].expected;
    }
    pipeline_ = make_pipeline(device_, require_module(&device_, binary.data(), binary.size()));
    const uint64_t slots[kSlots] = {range_.address()};
    Stream& stream = *device_.streams.front();
    stream.dispatch({pipeline_, slots, {1, 1, 1}});
    stream.finish();
  }
  uint64_t result(size_t row) const { return words()[3 * row + 2]; }

 private:
  uint64_t* words() const { return reinterpret_cast<uint64_t*>(range_.mapped()); }
  pgr_device& device_;
  MemoryRange range_;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

void tell(pgr_device& device, const Suspect& one, uint64_t result) {
  char text[160];
  std::snprintf(text, sizeof text,
                ": %s of %s gives 0x%llx of 0x%llx, expected is 0x%llx; the host computes it of "
                "other operations",
                one.expression, text_of(one.dtype).type, static_cast<unsigned long long>(result),
                static_cast<unsigned long long>(one.x),
                static_cast<unsigned long long>(one.expected));
  const std::string message = device.facts.name + text;
  const pgr_string told = sdk::to_pgr(message);
  const pgr_host_api& host = *device.plugin->host;
  host.log(host.host, PGR_LOG_INFO, &told);
}

// The rows that the device computes wrongly.
std::vector<bool> probe(pgr_device& device) {
  std::vector<bool> is_wrong(kRows, false);
  Probe run(device);
  run.run(compile_cached(device, make_source(device.caps)));
  for (size_t i = 0; i < kRows; ++i) {
    if (!claims(device.caps, kSuspects[i])) continue;
    is_wrong[i] = run.result(i) != kSuspects[i].expected;
    if (is_wrong[i]) tell(device, kSuspects[i], run.result(i));
  }
  return is_wrong;
}

}  // namespace

std::span<const Suspect> suspects() {
  return kSuspects;
}

void withdraw_broken_claims(pgr_device& device) {
  pgr_plugin& plugin = *device.plugin;
  const std::lock_guard lock(plugin.broken_mutex);
  const auto [known, is_new] = plugin.broken_claims.try_emplace(device.facts.uuid);
  if (is_new) try {
      known->second = probe(device);
    } catch (...) {
      plugin.broken_claims.erase(known);
      throw;
    }
  for (size_t i = 0; i < kRows; ++i)
    if (known->second[i]) device.caps.op_dtypes[kSuspects[i].op] &= ~(1u << kSuspects[i].dtype);
}

}  // namespace plugrad::vulkan
