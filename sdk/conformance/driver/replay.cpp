#include "conformance/driver/replay.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "conformance/files.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kLongestArgument = 16 << 10;
constexpr uint64_t kMostTokenBytes = 64 << 20;
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

uint64_t fnv1a(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

std::string to_base64url(std::string_view bytes) {
  std::string text;
  uint32_t bits = 0, count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count) text += kDigits[bits << (6 - count) & 63];
  return text;
}

std::string from_base64url(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0, count = 0;
  for (const char digit : text) {
    const size_t value = kDigits.find(digit);
    if (value == kDigits.npos) throw std::runtime_error("the replay token is damaged");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

std::string read_token_file(const std::string& path) {
  const std::string text = read_whole_file(path, kMostTokenBytes);
  const std::string token = text.substr(0, text.find_first_of(" \t\r\n"));
  if (token.empty()) throw std::runtime_error("the replay token's file " + path + " is empty");
  return token;
}

// Accessible to this user only: in a shared folder, other users could place a link at the next file
// name.
std::string token_folder() {
  const auto name = fmt::format("plugrad-replay-{}", geteuid());
  const std::string folder = (std::filesystem::temp_directory_path() / name).string();
  struct stat facts{};
  const bool is_made = mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
  if (!is_made || lstat(folder.c_str(), &facts) != 0)
    throw std::runtime_error(folder + " cannot be made: " + std::strerror(errno));
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 022) != 0)
    throw std::runtime_error(folder +
                             " is not a folder that only you can write: remove it, or set TMPDIR");
  return folder;
}

std::string write_token_file(const std::string& token) {
  const std::string path =
      fmt::format("{}/{:016x}", token_folder(), fnv1a(0xcbf29ce484222325, token));
  write_whole_file(path, token + '\n');
  return path;
}

}  // namespace

uint64_t seed_of_test(uint64_t run_seed, std::string_view id) {
  return fnv1a(fnv1a(0xcbf29ce484222325, fmt::format("{:016x}/", run_seed)), id);
}

// "ID SEED-IN-HEX CHECKSUM\n" and the payload.
std::string encode_replay(const Replay& replay) {
  const std::string_view payload(reinterpret_cast<const char*>(replay.payload.data()),
                                 replay.payload.size());
  const std::string head = fmt::format("{} {:x}", replay.id, replay.seed);
  const uint32_t checksum = static_cast<uint32_t>(fnv1a(fnv1a(0, head), payload));
  std::string token = to_base64url(fmt::format("{} {:x}\n{}", head, checksum, payload));
  return token.size() <= kLongestArgument ? token : write_token_file(token);
}

Replay decode_replay(const std::string& given) {
  const std::string token = given.starts_with('/') ? read_token_file(given) : given;
  const std::string bytes = from_base64url(token);
  // A superfluous character adds no byte.
  if (to_base64url(bytes) != token) throw std::runtime_error("the replay token is damaged");
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view head(bytes.data(), end);
  const size_t first = head.find(' '), second = head.rfind(' ');
  if (end == bytes.size() || first == head.npos || first == second)
    throw std::runtime_error("the replay token is damaged");
  Replay replay;
  replay.id = head.substr(0, first);
  uint32_t checksum = 0;
  std::from_chars(head.data() + first + 1, head.data() + second, replay.seed, 16);
  std::from_chars(head.data() + second + 1, head.data() + end, checksum, 16);
  const std::string_view payload(bytes.data() + end + 1, bytes.size() - end - 1);
  if (static_cast<uint32_t>(fnv1a(fnv1a(0, head.substr(0, second)), payload)) != checksum)
    throw std::runtime_error("the replay token is damaged");
  const auto* begin = reinterpret_cast<const std::byte*>(payload.data());
  replay.payload.assign(begin, begin + payload.size());
  return replay;
}

}  // namespace plugrad::conformance
