#include "spirv.h"

#include <cstddef>

namespace plugrad::vulkan {
namespace {

constexpr size_t kHeaderWords = 5;

// Opcodes and enumerants of the SPIR-V specification.
constexpr uint32_t kOpExtension = 10, kOpExtInstImport = 11, kOpMemoryModel = 14,
                   kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17, kOpTypeFloat = 22,
                   kOpFunction = 54, kOpDecorate = 71, kOpMemberDecorate = 72;
constexpr uint32_t kModeLocalSize = 17, kModeDenormPreserve = 4459,
                   kModeSignedZeroInfNanPreserve = 4461, kModeRoundingModeRTE = 4462;
constexpr uint32_t kCapabilityDenormPreserve = 4464, kCapabilitySignedZeroInfNanPreserve = 4466,
                   kCapabilityRoundingModeRTE = 4467;
constexpr uint32_t kNoContraction = 42;

struct Instruction {
  size_t at;
  uint32_t op, words;
};

// Empty unless the words are a sequence of instructions.
std::vector<Instruction> instructions_of(const std::vector<uint32_t>& words) {
  std::vector<Instruction> found;
  for (size_t at = kHeaderWords; at < words.size();) {
    const uint32_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at) return {};
    found.push_back({at, words[at] & 0xffff, count});
    at += count;
  }
  return found;
}

// OpFNegate, and the float ops between OpFAdd and OpFMod.
bool is_float_math(uint32_t op) {
  switch (op) {
    case 127:
    case 129:
    case 131:
    case 133:
    case 136:
    case 140:
    case 141:
      return true;
    default:
      return false;
  }
}

class Writer {
 public:
  void add(uint32_t op, std::initializer_list<uint32_t> operands) {
    words.push_back((static_cast<uint32_t>(operands.size()) + 1) << 16 | op);
    words.insert(words.end(), operands);
  }
  void add_text(uint32_t op, const char* text) {
    const size_t begin = words.size();
    words.push_back(0);
    uint32_t word = 0, filled = 0;
    for (bool is_end = false; !is_end; ++text) {
      is_end = *text == 0;
      word |= static_cast<uint32_t>(static_cast<unsigned char>(*text)) << (8 * filled);
      if (++filled < 4 && !is_end) continue;
      words.push_back(word);
      word = filled = 0;
    }
    words[begin] = static_cast<uint32_t>(words.size() - begin) << 16 | op;
  }
  std::vector<uint32_t> words;
};

struct Module {
  uint32_t entry = 0;
  bool has_width[3] = {};
  std::vector<uint32_t> math;  // ids of results of float arithmetic
};

Module scan(const std::vector<uint32_t>& words, const std::vector<Instruction>& all) {
  Module module;
  for (const Instruction& one : all) {
    if (one.op == kOpEntryPoint && one.words > 2) module.entry = words[one.at + 2];
    if (one.op == kOpTypeFloat && one.words > 2)
      for (int i = 0; i < 3; ++i) module.has_width[i] |= words[one.at + 2] == (16u << i);
    if (is_float_math(one.op) && one.words > 2) module.math.push_back(words[one.at + 2]);
  }
  return module;
}

bool any(const bool (&wanted)[3], const Module& module) {
  for (int i = 0; i < 3; ++i)
    if (wanted[i] && module.has_width[i]) return true;
  return false;
}

void add_modes(const bool (&wanted)[3], const Module& module, uint32_t mode, Writer& out) {
  for (int i = 0; i < 3; ++i)
    if (wanted[i] && module.has_width[i]) out.add(kOpExecutionMode, {module.entry, mode, 16u << i});
}

}  // namespace

std::vector<uint32_t> with_float_modes(const std::vector<uint32_t>& words,
                                       const FloatModes& modes) {
  const std::vector<Instruction> all = instructions_of(words);
  if (all.empty()) return words;
  const Module module = scan(words, all);
  Writer out;
  out.words.assign(words.begin(), words.begin() + kHeaderWords);
  bool has_capabilities = false, has_extension = false, has_modes = false, has_decorations = false;
  for (const Instruction& one : all) {
    if (!has_capabilities && one.op != kOpCapability) {
      has_capabilities = true;
      if (any(modes.keep_special, module))
        out.add(kOpCapability, {kCapabilitySignedZeroInfNanPreserve});
      if (any(modes.round_to_even, module)) out.add(kOpCapability, {kCapabilityRoundingModeRTE});
      if (any(modes.keep_denormals, module)) out.add(kOpCapability, {kCapabilityDenormPreserve});
    }
    if (!has_extension && one.op != kOpCapability && one.op != kOpExtension) {
      has_extension = true;
      if (any(modes.keep_special, module) || any(modes.round_to_even, module) ||
          any(modes.keep_denormals, module))
        out.add_text(kOpExtension, "SPV_KHR_float_controls");
    }
    const bool is_head = one.op == kOpCapability || one.op == kOpExtension ||
                         one.op == kOpExtInstImport || one.op == kOpMemoryModel ||
                         one.op == kOpEntryPoint || one.op == kOpExecutionMode;
    if (!has_modes && !is_head) {
      has_modes = true;
      add_modes(modes.keep_special, module, kModeSignedZeroInfNanPreserve, out);
      add_modes(modes.round_to_even, module, kModeRoundingModeRTE, out);
      add_modes(modes.keep_denormals, module, kModeDenormPreserve, out);
    }
    // Decorations precede the types: inserted before the first decoration or the first type.
    const bool is_after_names = one.op == kOpDecorate || one.op == kOpMemberDecorate ||
                                (one.op >= 19 && one.op <= kOpFunction);
    if (!has_decorations && has_modes && is_after_names) {
      has_decorations = true;
      for (uint32_t id : module.math) out.add(kOpDecorate, {id, kNoContraction});
    }
    const auto begin = words.begin() + static_cast<ptrdiff_t>(one.at);
    out.words.insert(out.words.end(), begin, begin + one.words);
  }
  return out.words;
}

bool read_local_size(const std::vector<uint32_t>& words, uint32_t out[3]) {
  for (const Instruction& one : instructions_of(words)) {
    if (one.op != kOpExecutionMode || one.words < 6 || words[one.at + 2] != kModeLocalSize)
      continue;
    for (int i = 0; i < 3; ++i) out[i] = words[one.at + 3 + static_cast<size_t>(i)];
    return true;
  }
  return false;
}

}  // namespace plugrad::vulkan
