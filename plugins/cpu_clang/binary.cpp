#include "binary.h"

#include <cstring>

namespace plugrad::cpu_clang {
namespace {

struct BinaryHeader {
  char magic[8];
  uint64_t object_bytes;
  uint64_t object_hash;
  uint64_t machine_hash;
};
static_assert(sizeof(BinaryHeader) == 32);
constexpr char kMagic[8] = {'P', 'G', 'R', 'C', 'P', 'U', '0', '9'};

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

}  // namespace

std::string wrap_object(std::string_view object, std::string_view machine) {
  BinaryHeader header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.object_bytes = object.size();
  header.object_hash = hash_bytes(object);
  header.machine_hash = hash_bytes(machine);
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += object;
  return out;
}

BinaryState unwrap_object(std::string_view binary, std::string_view machine,
                          std::string_view* out_object) {
  BinaryHeader header;
  if (binary.size() < sizeof header) return BinaryState::Damaged;
  std::memcpy(&header, binary.data(), sizeof header);
  const std::string_view object = binary.substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return BinaryState::Damaged;
  if (header.object_bytes != object.size() || header.object_hash != hash_bytes(object))
    return BinaryState::Damaged;
  if (header.machine_hash != hash_bytes(machine)) return BinaryState::Foreign;
  *out_object = object;
  return BinaryState::Good;
}

}  // namespace plugrad::cpu_clang
