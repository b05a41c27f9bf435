#include "binary.h"

#include <cstring>

namespace plugrad::vulkan {
namespace {

struct BinaryHeader {
  char magic[8];
  uint64_t body_bytes, body_hash, target_hash;
  uint64_t local_bytes;
  uint32_t buffers, scalars;
  uint32_t local_size[3];
  uint32_t name_bytes;
  uint32_t checks_loops, reserved;
};
static_assert(sizeof(BinaryHeader) == 72);
constexpr char kMagic[8] = {'P', 'G', 'R', 'V', 'K', '0', '9', '2'};
constexpr uint32_t kSpirvMagic = 0x07230203, kSpirvHeaderWords = 5;

// FNV-1a: detects damage, not tampering.
uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

// The hash also covers the header, except for the hash itself.
uint64_t hash_of(BinaryHeader header, std::string_view body) {
  header.body_hash = 0;
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  return hash_bytes(body) ^ (hash_bytes(head) * 31);
}

}  // namespace

std::string wrap_module(const KernelNote& note, const std::vector<uint32_t>& words,
                        std::string_view target) {
  std::string body(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t));
  body += note.name;
  BinaryHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.body_bytes = body.size();
  header.target_hash = hash_bytes(target);
  header.local_bytes = note.local_bytes;
  header.buffers = note.buffers;
  header.checks_loops = note.checks_loops;
  header.scalars = note.scalars;
  std::memcpy(header.local_size, note.local_size, sizeof header.local_size);
  header.name_bytes = static_cast<uint32_t>(note.name.size());
  header.body_hash = hash_of(header, body);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

BinaryState unwrap_module(std::string_view binary, std::string_view target, KernelNote* note,
                          std::vector<uint32_t>* words) {
  BinaryHeader header;
  if (binary.size() < sizeof header) return BinaryState::Damaged;
  std::memcpy(&header, binary.data(), sizeof header);
  const std::string_view body = binary.substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return BinaryState::Damaged;
  if (header.body_bytes != body.size() || header.body_hash != hash_of(header, body))
    return BinaryState::Damaged;
  if (header.target_hash != hash_bytes(target)) return BinaryState::Foreign;
  const size_t module_bytes = body.size() - std::min<size_t>(body.size(), header.name_bytes);
  words->resize(module_bytes / sizeof(uint32_t));
  std::memcpy(words->data(), body.data(), words->size() * sizeof(uint32_t));
  if (words->size() < kSpirvHeaderWords || words->front() != kSpirvMagic)
    return BinaryState::Damaged;
  note->name = body.substr(module_bytes);
  note->buffers = header.buffers;
  note->checks_loops = header.checks_loops;
  note->scalars = header.scalars;
  note->local_bytes = header.local_bytes;
  std::memcpy(note->local_size, header.local_size, sizeof header.local_size);
  return BinaryState::Good;
}

}  // namespace plugrad::vulkan
