#include "io/zip.h"

#include <zip.h>

#include <algorithm>

#include "base/check.h"
#include "base/host_memory.h"

namespace plugrad::io {
namespace {

constexpr size_t kLeastBytes = 22;        // of an archive without files, its end record
constexpr uint64_t kMaxExpansion = 1040;  // deflate packs 1032 bytes in one at best
constexpr size_t kStepBytes = 16 << 20;   // an archive may announce more than it holds
constexpr uint16_t kFirstDosDate = 0x21;  // 1 January 1980: equal contents make equal archives

struct ZipError {
  zip_error_t error{};
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  std::string text() { return zip_error_strerror(&error); }
};

std::string text_of(zip_t* archive) {
  return zip_error_strerror(zip_get_error(archive));
}

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

std::vector<std::byte> empty_archive() {
  std::vector<std::byte> end(kLeastBytes);  // libzip writes no archive without files
  for (size_t i = 0; const char c : {'P', 'K', '\5', '\6'}) end[i++] = static_cast<std::byte>(c);
  return end;
}

std::vector<std::byte> contents_of(zip_source_t* source) {
  zip_stat_t stat;
  ensure(zip_source_stat(source, &stat) == 0 && zip_source_open(source) == 0,
         "libzip: the archive that was made cannot be read");
  std::vector<std::byte> bytes(stat.size);
  const zip_int64_t count = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  ensure(count == static_cast<zip_int64_t>(bytes.size()), "libzip: {} of {} bytes were read", count,
         bytes.size());
  return bytes;
}

}  // namespace

void ZipReader::Close::operator()(zip* archive) const {
  zip_discard(archive);
}

void ZipReader::refuse(std::string_view what) const {
  fail(ErrorKind::User, "{}: {}; the file is damaged or is no zip archive", name_, what);
}

ZipReader::ZipReader(std::span<const std::byte> archive, std::string name)
    : name_(std::move(name)) {
  if (archive.size() < kLeastBytes) refuse(fmt::format("{} bytes are too few", archive.size()));
  ZipError error;
  zip_source_t* const source =
      zip_source_buffer_create(archive.data(), archive.size(), 0, &error.error);
  ensure(source, "libzip: {}", error.text());
  zip_.reset(zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error.error));
  if (!zip_) {
    zip_source_free(source);
    refuse(error.text());
  }
  uint64_t packed_bytes = 0;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip_.get(), 0); ++i) {
    add_entry(static_cast<uint64_t>(i));
    const uint64_t packed = entries_.back().packed_bytes;
    if (packed > archive.size() - packed_bytes) refuse("its files overlap");
    packed_bytes += packed;
  }
}

void ZipReader::add_entry(uint64_t index) {
  zip_stat_t stat;
  if (zip_stat_index(zip_.get(), index, 0, &stat) != 0) refuse(text_of(zip_.get()));
  const ZipEntry entry{stat.name, index, stat.size, stat.comp_size};
  if (stat.encryption_method != ZIP_EM_NONE) refuse(fmt::format("\"{}\" is encrypted", entry.name));
  const bool is_deflated = stat.comp_method == ZIP_CM_DEFLATE;
  if (!is_deflated && stat.comp_method != ZIP_CM_STORE)
    refuse(fmt::format("\"{}\" is packed by method {}, not stored or deflated", entry.name,
                       stat.comp_method));
  const bool is_possible = is_deflated ? entry.size_bytes / kMaxExpansion <= entry.packed_bytes + 1
                                       : entry.size_bytes == entry.packed_bytes;
  if (!is_possible)
    refuse(fmt::format("\"{}\" announces {} bytes, which {} packed ones cannot hold", entry.name,
                       entry.size_bytes, entry.packed_bytes));
  entries_.push_back(entry);
}

std::vector<std::byte> ZipReader::unpack(const ZipEntry& entry) const {
  require(entry.size_bytes <= host_memory_bytes(),
          "{}: \"{}\" has {} bytes, which the host's memory of {} does not hold", name_, entry.name,
          entry.size_bytes, host_memory_bytes());
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(zip_.get(), entry.index, 0));
  if (!file) refuse(fmt::format("\"{}\": {}", entry.name, text_of(zip_.get())));
  std::vector<std::byte> bytes;
  for (zip_int64_t count = 1; count > 0;) {
    const size_t done = bytes.size();
    bytes.resize(done + std::min<uint64_t>(kStepBytes, entry.size_bytes - done + 1));
    count = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0)
      refuse(fmt::format("\"{}\": {}", entry.name,
                         zip_error_strerror(zip_file_get_error(file.get()))));
    bytes.resize(done + static_cast<size_t>(count));
    if (bytes.size() > entry.size_bytes) break;
  }
  if (bytes.size() != entry.size_bytes)
    refuse(fmt::format("\"{}\" holds other than the {} bytes that it announces", entry.name,
                       entry.size_bytes));
  return bytes;
}

void ZipWriter::add(std::string name, std::vector<std::byte> bytes, bool deflate) {
  files_.push_back({std::move(name), std::move(bytes), deflate});
}

std::vector<std::byte> ZipWriter::finish() const {
  if (files_.empty()) return empty_archive();
  ZipError error;
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, &error.error);
  ensure(target, "libzip: {}", error.text());
  zip_source_keep(target);
  zip_t* const archive = zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error.error);
  ensure(archive, "libzip: {}", error.text());
  for (const File& file : files_) {
    zip_source_t* const source =
        zip_source_buffer(archive, file.bytes.data(), file.bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, file.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    ensure(index >= 0, "libzip: {}", text_of(archive));
    const auto number = static_cast<zip_uint64_t>(index);
    zip_set_file_compression(archive, number, file.deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    zip_file_set_dostime(archive, number, 0, kFirstDosDate, 0);
  }
  ensure(zip_close(archive) == 0, "libzip: {}", text_of(archive));
  std::vector<std::byte> bytes = contents_of(target);
  zip_source_free(target);
  return bytes;
}

}  // namespace plugrad::io
