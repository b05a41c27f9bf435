#include "nn/data/cifar.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "nn/data/idx.h"

namespace plugrad::nn {
namespace {

namespace fs = std::filesystem;
using FileBytes = std::vector<uint8_t>;

constexpr size_t kPixels = 3 * 32 * 32, kRecordBytes = 1 + kPixels;
constexpr size_t kBlock = 512;  // bytes of a block in a tar archive
constexpr std::array<std::string_view, 6> kNames = {"data_batch_1.bin", "data_batch_2.bin",
                                                    "data_batch_3.bin", "data_batch_4.bin",
                                                    "data_batch_5.bin", "test_batch.bin"};

template <class... Args>
[[noreturn]] void refuse_cifar(const fs::path& path, fmt::format_string<Args...> format,
                               Args&&... args) {
  fail(ErrorKind::User,
       "[cifar-10] {}: {}; delete it so that it is fetched again, or put a sound one there",
       path.string(), fmt::format(format, std::forward<Args>(args)...));
}

// Reads a gzipped tar archive as a stream.
class TarReader {
 public:
  explicit TarReader(const fs::path& path) : path_(path), file_(nullptr, gzclose) {
    FileDescriptor open = open_regular_file(path.string());
    if (!open) refuse_cifar(path, "cannot be opened: {}", file_error_text(errno));
    file_.reset(gzdopen(open.get(), "rb"));
    if (!file_) refuse_cifar(path, "cannot be unpacked (zlib has no memory)");
    open.release();  // gzclose closes it
  }

  // Reads the name and size of the next file; false at the end.
  bool next(std::string& name, size_t& size) {
    char header[kBlock];
    if (!read(header, kBlock, true) ||
        std::all_of(header, header + kBlock, [](char c) { return c == 0; }))
      return false;
    if (std::memcmp(header + 257, "ustar", 5) != 0) refuse_cifar(path_, "it is no tar archive");
    name.assign(header, strnlen(header, 100));
    const char* digits = header + 124;
    while (digits < header + 136 && *digits == ' ') ++digits;
    if (std::from_chars(digits, header + 136, size, 8).ec != std::errc{})
      refuse_cifar(path_, "the size of {} cannot be read", name);
    return true;
  }
  void take(FileBytes& bytes) {
    read(bytes.data(), bytes.size(), false);
    skip((kBlock - bytes.size() % kBlock) % kBlock);
  }
  void skip_file(size_t size) { skip((size + kBlock - 1) / kBlock * kBlock); }

 private:
  bool read(void* out, size_t size, bool may_end) {
    size_t done = 0;
    while (done < size) {
      const auto want = static_cast<unsigned>(std::min<size_t>(size - done, 1u << 24));
      const int got = gzread(file_.get(), static_cast<char*>(out) + done, want);
      if (got == 0 && done == 0 && may_end) return false;
      if (got <= 0) refuse_cifar(path_, "truncated, or cannot be unpacked");
      done += static_cast<size_t>(got);
    }
    return true;
  }
  void skip(size_t size) {
    char block[kBlock];
    for (; size > 0; size -= std::min(size, kBlock)) read(block, std::min(size, kBlock), false);
  }

  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::map<std::string, FileBytes, std::less<>> read_archive(const fs::path& path,
                                                           const CifarExpectation& expected) {
  if (!expected.sha256.empty()) {
    const MappedFile file(path.string(), "cifar-10");
    if (file.bytes().size() > kMostFileBytes)
      refuse_cifar(path, "it has {} bytes, more than the archive", file.bytes().size());
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.bytes().data());
    const std::string found = sha256_hex({bytes, file.bytes().size()});
    if (found != expected.sha256)
      refuse_cifar(path, "the SHA-256 checksum is {}, not {}", found, expected.sha256);
  }
  std::map<std::string, FileBytes, std::less<>> files;
  TarReader archive(path);
  std::string name;
  for (size_t size = 0; archive.next(name, size);) {
    name = fs::path(name).filename().string();
    if (std::ranges::find(kNames, name) == kNames.end()) {
      archive.skip_file(size);
      continue;
    }
    if (size != expected.records_a_file * kRecordBytes)
      refuse_cifar(path, "{} has {} bytes, not {}", name, size,
                   expected.records_a_file * kRecordBytes);
    files[name].resize(size);
    archive.take(files[name]);
  }
  return files;
}

std::map<std::string, FileBytes, std::less<>> read_cifar_folder(const fs::path& folder,
                                                                size_t wanted) {
  std::map<std::string, FileBytes, std::less<>> files;
  for (std::string_view name : kNames) {
    const auto bytes = read_file((folder / name).string(), wanted);
    if (!bytes && errno == EFBIG) refuse_cifar(folder / name, "has more than {} bytes", wanted);
    if (!bytes) refuse_cifar(folder / name, "cannot be read: {}", file_error_text(errno));
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes->data());
    files[std::string(name)].assign(begin, begin + bytes->size());
  }
  return files;
}

void append(const FileBytes& file, const fs::path& path, CifarImages& out) {
  for (size_t at = 0; at < file.size(); at += kRecordBytes) {
    if (file[at] > 9) refuse_cifar(path, "a label is {}, not 0 to 9", file[at]);
    out.labels.push_back(file[at]);
    const auto pixels = file.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    out.images.insert(out.images.end(), pixels, pixels + kPixels);
  }
}

}  // namespace

Cifar read_cifar(const fs::path& path, const CifarExpectation& expected) {
  const size_t wanted = expected.records_a_file * kRecordBytes;
  const auto files =
      fs::is_directory(path) ? read_cifar_folder(path, wanted) : read_archive(path, expected);
  Cifar cifar;
  for (std::string_view name : kNames) {
    const auto found = files.find(name);
    if (found == files.end()) refuse_cifar(path, "it lacks {}", name);
    if (found->second.size() != wanted)
      refuse_cifar(path / name, "has {} bytes, not {}", found->second.size(), wanted);
    append(found->second, path, name == kNames.back() ? cifar.test : cifar.train);
  }
  return cifar;
}

}  // namespace plugrad::nn
