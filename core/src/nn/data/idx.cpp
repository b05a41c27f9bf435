#include "nn/data/idx.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "base/file.h"

namespace plugrad::nn {
namespace {

constexpr uint64_t kMostPackedBytes = 64 << 20;  // bytes; more than twice the largest set

constexpr char kAdvice[] =
    "delete it so that it is fetched again, or point --data or PLUGRAD_DATA to sound files";

template <class... Args>
[[noreturn]] void refuse_idx(const std::filesystem::path& path, fmt::format_string<Args...> format,
                             Args&&... args) {
  fail(ErrorKind::User, "[data] {}: {}; {}", path.string(),
       fmt::format(format, std::forward<Args>(args)...), kAdvice);
}

// The file's bytes, unpacked; zlib passes plain files through. Reads at most `limit` + 1 bytes,
// which is enough to detect a file that unpacks to more.
std::vector<uint8_t> unpack(const std::filesystem::path& path, size_t limit) {
  FileDescriptor open = open_regular_file(path.string());
  if (!open) refuse_idx(path, "cannot be opened: {}", file_error_text(errno));
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzdopen(open.get(), "rb"), gzclose);
  if (!file) refuse_idx(path, "cannot be unpacked (zlib has no memory)");
  open.release();  // gzclose closes it
  std::vector<uint8_t> bytes(limit + 1);
  size_t filled = 0;
  while (filled < bytes.size()) {
    auto want = static_cast<unsigned>(std::min<size_t>(bytes.size() - filled, 1u << 24));
    int got = gzread(file.get(), bytes.data() + filled, want);
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  int code = Z_OK;
  const char* message = gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR)
    refuse_idx(path, "truncated: the packed data ends after {} unpacked bytes", filled);
  if (code != Z_OK && code != Z_STREAM_END) refuse_idx(path, "cannot be unpacked ({})", message);
  bytes.resize(filled);
  return bytes;
}

}  // namespace

std::string sha256_hex(std::span<const uint8_t> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ensure(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1,
         "SHA-256 failed on {} bytes", bytes.size());
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

namespace {

uint32_t big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

// Compares magic number and extents; returns the size of the header in bytes.
size_t check_header(const std::filesystem::path& path, const std::vector<uint8_t>& bytes,
                    const std::vector<int64_t>& shape) {
  size_t header_bytes = 4 + 4 * shape.size();
  if (bytes.size() < header_bytes)
    refuse_idx(path, "truncated: {} bytes, the header alone has {}", bytes.size(), header_bytes);
  uint32_t magic = big_endian(bytes.data()),
           expected = 0x0800 + static_cast<uint32_t>(shape.size());
  if (magic != expected)
    refuse_idx(path,
               "the magic number is 0x{:08x}, not 0x{:08x}: no idx file of bytes with {} axes",
               magic, expected, shape.size());
  std::vector<int64_t> found;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    found.push_back(big_endian(&bytes[4 + 4 * axis]));
  if (found != shape)
    refuse_idx(path, "holds ({}) values where ({}) are expected", fmt::join(found, ", "),
               fmt::join(shape, ", "));
  return header_bytes;
}

// Compares the checksum of a gzipped file; accepts a plain one.
void check_packed(const std::filesystem::path& path, const std::string& expected) {
  const auto file = read_file(path.string(), kMostPackedBytes);
  if (!file) refuse_idx(path, "cannot be read: {}", file_error_text(errno));
  const auto* bytes = reinterpret_cast<const uint8_t*>(file->data());
  if (file->size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return;
  const std::string found = sha256_hex({bytes, file->size()});
  if (found != expected) refuse_idx(path, "the SHA-256 checksum is {}, not {}", found, expected);
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, const IdxExpectation& expected) {
  auto count = static_cast<size_t>(std::accumulate(expected.shape.begin(), expected.shape.end(),
                                                   int64_t{1}, std::multiplies<>()));
  size_t whole = 4 + 4 * expected.shape.size() + count;
  std::vector<uint8_t> bytes = unpack(path, whole);
  size_t header_bytes = check_header(path, bytes, expected.shape);
  if (bytes.size() < whole) refuse_idx(path, "truncated: {} of {} bytes", bytes.size(), whole);
  if (bytes.size() > whole)
    refuse_idx(path, "more than the {} bytes that its header announces", whole);
  IdxArray array{.shape = expected.shape, .values = {}, .sha256 = sha256_hex(bytes)};
  if (!expected.sha256.empty() && array.sha256 != expected.sha256)
    refuse_idx(path, "the SHA-256 checksum is {}, not {}", array.sha256, expected.sha256);
  if (!expected.packed_sha256.empty()) check_packed(path, expected.packed_sha256);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  array.values = std::move(bytes);
  return array;
}

}  // namespace plugrad::nn
