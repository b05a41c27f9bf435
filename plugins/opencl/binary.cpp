#include "binary.h"

#include <cstring>

namespace plugrad::opencl {
namespace {

struct Header {
  char magic[8];
  uint64_t identity_hash, payload_hash, payload_bytes, kernel_count;
};
static_assert(sizeof(Header) == 40);
constexpr char kMagic[8] = {'P', 'G', 'R', 'O', 'C', 'L', '0', '2'};

// FNV-1a over words: detects damage, not tampering.
uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash ^ bytes.size();
}

void put_text(std::string& out, std::string_view text) {
  const uint64_t size = text.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += text;
}

// Returns false and an empty text if the bytes are truncated.
bool take_text(std::string_view& from, std::string_view& text) {
  uint64_t size = 0;
  if (from.size() < sizeof size) return false;
  std::memcpy(&size, from.data(), sizeof size);
  from.remove_prefix(sizeof size);
  if (size > from.size()) return false;
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

bool read_kernels(std::string_view payload, uint64_t count, Binary& out) {
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view name, params;
    if (!take_text(payload, name) || !take_text(payload, params)) return false;
    out.kernels.push_back({std::string(name), {params.begin(), params.end()}});
  }
  std::string_view code, options;
  if (!take_text(payload, code) || !take_text(payload, options)) return false;
  out.code = code;
  out.build_options = options;
  return true;
}

}  // namespace

std::string wrap_binary(const Binary& binary, std::string_view identity) {
  std::string payload;
  for (const KernelShape& kernel : binary.kernels) {
    put_text(payload, kernel.name);
    put_text(payload,
             {reinterpret_cast<const char*>(kernel.param_bytes.data()), kernel.param_bytes.size()});
  }
  put_text(payload, binary.code);
  put_text(payload, binary.build_options);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.identity_hash = hash_bytes(identity);
  header.payload_hash = hash_bytes(payload);
  header.payload_bytes = payload.size();
  header.kernel_count = binary.kernels.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

BinaryState unwrap_binary(std::string_view bytes, std::string_view identity, Binary* out) {
  Header header;
  if (bytes.size() < sizeof header) return BinaryState::Damaged;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::string_view payload = bytes.substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.payload_bytes != payload.size() || header.payload_hash != hash_bytes(payload))
    return BinaryState::Damaged;
  if (header.identity_hash != hash_bytes(identity)) return BinaryState::Foreign;
  Binary read;
  if (!read_kernels(payload, header.kernel_count, read)) return BinaryState::Damaged;
  if (out) *out = std::move(read);
  return BinaryState::Good;
}

}  // namespace plugrad::opencl
