#include "binary.h"

#include "plugrad/sdk/c_plugin.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::cuda {
namespace {

constexpr const char* kMagic = "plugrad cuda 1";

// "f32 *restrict data0, const i32 arg1" gives "bs".
std::string letters_of(std::string_view params) {
  std::string letters;
  while (!params.empty()) {
    const size_t comma = std::min(params.find(','), params.size());
    letters += params.substr(0, comma).find('*') == params.npos ? 's' : 'b';
    params.remove_prefix(std::min(comma + 1, params.size()));
  }
  return letters;
}

// Removes and returns the first line.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

// extern "C" __global__ void __launch_bounds__(256) NAME(f32 *restrict data0, const i32 arg1) {
std::vector<KernelEntry> kernels_of(std::string_view source) {
  constexpr std::string_view kEntry = "__launch_bounds__(";
  std::vector<KernelEntry> kernels;
  while (!source.empty()) {
    std::string_view line = take_line(source);
    const size_t at = line.find(kEntry);
    if (!line.starts_with("extern \"C\" __global__") || at == line.npos) continue;
    line.remove_prefix(std::min(line.find(") ", at) + 2, line.size()));
    const size_t open = line.find('('), close = line.rfind(')');
    if (open == line.npos || close == line.npos || close < open) continue;
    kernels.push_back(
        {std::string(line.substr(0, open)), letters_of(line.substr(open + 1, close - open - 1))});
  }
  return kernels;
}

std::string wrap_binary(const Binary& binary, const std::string& arch) {
  std::string content = binary.is_ptx ? "ptx\n" : "cubin\n";
  for (const KernelEntry& kernel : binary.kernels)
    content += kernel.name + " " + kernel.params + "\n";
  content += "\n" + binary.code;
  std::string sealed(sizeof(pgr_binary_header), '\0');
  sealed += content;
  pgr_seal_binary(sealed.data(), content.size(), kMagic, arch.c_str());
  return sealed;
}

BinaryState unwrap_binary(std::string_view bytes, const std::string& arch, Binary* out) {
  pgr_binary_header header;
  const char* content = pgr_open_binary(&header, bytes.data(), bytes.size(), kMagic);
  if (!content) return BinaryState::Damaged;
  if (header.identity != pgr_hash(arch.data(), arch.size())) return BinaryState::Foreign;
  std::string_view rest(content, header.bytes);
  out->is_ptx = take_line(rest) == "ptx";
  for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) {
    const size_t space = std::min(line.find(' '), line.size());
    out->kernels.push_back({std::string(line.substr(0, space)),
                            std::string(line.substr(std::min(space + 1, line.size())))});
  }
  out->code = rest;
  return BinaryState::Good;
}

Binary require_binary(std::string_view bytes, const std::string& arch) {
  Binary binary;
  const BinaryState state = unwrap_binary(bytes, arch, &binary);
  sdk::require(state != BinaryState::Damaged, PGR_STATUS_BAD_BINARY,
               "a binary of " + std::to_string(bytes.size()) + " bytes is damaged, or not of cuda");
  sdk::require(state != BinaryState::Foreign, PGR_STATUS_BAD_BINARY,
               "the binary was compiled for another GPU than " + arch);
  return binary;
}

}  // namespace plugrad::cuda
