// Turns source into a binary: glslang compiles the GLSL into a module, and execution modes that
// GLSL cannot express are added.
#include <charconv>

#include "binary.h"
#include "plugin.h"
#include "shader/glsl.h"
#include "shader/spirv.h"

namespace plugrad::vulkan {
namespace {

// Increment when the plugin transforms the same source differently.
constexpr const char* kRevision = "2";

FloatModes modes_of(const Facts& facts) {
  const VkPhysicalDeviceFloatControlsProperties& floats = facts.floats;
  FloatModes modes;
  modes.keep_special[0] = floats.shaderSignedZeroInfNanPreserveFloat16;
  modes.keep_special[1] = floats.shaderSignedZeroInfNanPreserveFloat32;
  modes.keep_special[2] = floats.shaderSignedZeroInfNanPreserveFloat64;
  modes.round_to_even[0] = floats.shaderRoundingModeRTEFloat16;
  modes.round_to_even[1] = floats.shaderRoundingModeRTEFloat32;
  modes.round_to_even[2] = floats.shaderRoundingModeRTEFloat64;
  modes.keep_denormals[0] = floats.shaderDenormPreserveFloat16;
  modes.keep_denormals[1] = floats.shaderDenormPreserveFloat32;
  modes.keep_denormals[2] = floats.shaderDenormPreserveFloat64;
  // If the widths cannot have different modes, all must have the same mode or none.
  const auto agree = [](VkShaderFloatControlsIndependence independence, bool(&wanted)[3]) {
    if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) return;
    const bool all = wanted[0] && wanted[1] && wanted[2];
    const bool is_free = independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
    wanted[0] = wanted[2] = is_free ? wanted[0] && wanted[2] : all;
    if (!is_free) wanted[1] = all;
  };
  agree(floats.denormBehaviorIndependence, modes.keep_denormals);
  agree(floats.roundingModeIndependence, modes.round_to_even);
  return modes;
}

[[noreturn]] void refuse_source(const std::string& name) {
  throw sdk::StatusError(
      PGR_STATUS_COMPILE_FAILED,
      "the source of kernel " + name +
          " has no line \"#pragma kernel(name, buffers, scalars, local bytes, checks)\"");
}

// Parses the renderer's "#pragma kernel(name, buffers, scalars, local bytes, checks)".
KernelNote read_note(std::string_view source, const std::string& name) {
  constexpr std::string_view kPragma = "#pragma kernel(";
  const size_t begin = source.find(kPragma);
  if (begin == source.npos) refuse_source(name);
  std::string_view rest = source.substr(begin + kPragma.size());
  rest = rest.substr(0, rest.find(')'));
  KernelNote note;
  const size_t comma = rest.find(',');
  note.name = rest.substr(0, comma);
  rest.remove_prefix(std::min(comma, rest.size()));
  uint64_t numbers[4] = {};
  for (uint64_t& number : numbers) {
    if (!rest.starts_with(", ")) refuse_source(name);
    rest.remove_prefix(2);
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (failure != std::errc()) refuse_source(name);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  note.buffers = static_cast<uint32_t>(numbers[0]);
  note.scalars = static_cast<uint32_t>(numbers[1]);
  note.local_bytes = numbers[2];
  note.checks_loops = static_cast<uint32_t>(numbers[3]);
  return note;
}

pgr_status compile(pgr_device* device, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    sdk::require(own.input != nullptr && out_binary != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "compile: input or out_binary is NULL");
    const std::string_view source(static_cast<const char*>(own.input), own.input_bytes);
    const std::string name(sdk::to_view(own.name));
    std::string log;
    try {
      sdk::give_blob(out_binary, compile_source(device, source, name, log));
    } catch (...) {
      sdk::give_blob(out_log, log);
      throw;
    }
    sdk::give_blob(out_log, log);
  });
}

pgr_status cache_identity(pgr_device* device, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::give_blob(out, target_of(device)); });
}

pgr_status validate(pgr_device* device, const void* binary, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    KernelNote note;
    std::vector<uint32_t> words;
    const BinaryState state =
        unwrap_module({static_cast<const char*>(binary), size}, target_of(device), &note, &words);
    *out = state == BinaryState::Good      ? PGR_BINARY_GOOD
           : state == BinaryState::Foreign ? PGR_BINARY_FOREIGN
                                           : PGR_BINARY_RECOMPILE;
  });
}

pgr_status disassemble(pgr_device* device, const void* binary, uint64_t size, pgr_blob* out_text,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::give_blob(out_text, disassemble_module(require_module(device, binary, size).words));
  });
}

}  // namespace

std::string target_of(const pgr_device* device) {
  return "vulkan " + std::string(kRevision) + " " + compiler_text() +
         (device ? " " + target_text(device->facts) : "");
}

std::string compile_source(const pgr_device* device, std::string_view source,
                           const std::string& name, std::string& log) {
  std::vector<uint32_t> words = compile_glsl(source, name, log);
  KernelNote note = read_note(source, name);
  words = with_float_modes(words, device ? modes_of(device->facts) : FloatModes());
  sdk::require(read_local_size(words, note.local_size), PGR_STATUS_COMPILE_FAILED,
               "the source of kernel " + name + " names no local size");
  return wrap_module(note, words, target_of(device));
}

LoadedModule require_module(const pgr_device* device, const void* binary, uint64_t size) {
  LoadedModule module;
  const BinaryState state = unwrap_module({static_cast<const char*>(binary), binary ? size : 0},
                                          target_of(device), &module.note, &module.words);
  sdk::require(state != BinaryState::Damaged, PGR_STATUS_BAD_BINARY,
               "a binary of " + std::to_string(size) + " bytes is damaged, or not of vulkan");
  sdk::require(state != BinaryState::Foreign, PGR_STATUS_BAD_BINARY,
               "the binary was compiled for another device or by another compiler");
  return module;
}

std::string target_text(const Facts& facts) {
  const FloatModes modes = modes_of(facts);
  std::string text = "spirv1.3 modes ";
  for (const auto* group : {&modes.keep_special, &modes.round_to_even, &modes.keep_denormals})
    for (bool is_on : *group) text += is_on ? '1' : '0';
  return text;
}

const pgr_compiler_api* compiler_table() {
  static const pgr_compiler_api table = [] {
    pgr_compiler_api made;
    PGR_INIT(made, COMPILER_API);
    made.compile = compile;
    made.cache_identity = cache_identity;
    made.validate = validate;
    made.disassemble = disassemble;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::vulkan
