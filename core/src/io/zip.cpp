#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <concepts>
#include <cstring>

#include "base/check.h"
#include "base/host_memory.h"

namespace plugrad::io {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocatorBytes = 20;
constexpr uint16_t kWideSizes = 1;        // the extra field with 64-bit sizes
constexpr uint64_t kMaxExpansion = 1040;  // deflate packs 1032 bytes in one at best
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr size_t kFirstBytes = 1 << 20;  // room for what is unpacked, which grows

// Little-endian numbers of an archive; reading outside it is an error that names it.
class Reader {
 public:
  Reader(Bytes archive, std::string_view name) : archive_(archive), name_(name) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::User, "{}: {}; the file is damaged or is no zip archive", name_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  template <class T>
  T number(uint64_t at) const {
    T value;
    std::memcpy(&value, part(at, sizeof value).data(), sizeof value);
    return value;
  }
  Bytes part(uint64_t at, uint64_t size) const {
    if (at > archive_.size() || size > archive_.size() - at)
      refuse("truncated: bytes {} to {} of {} are needed", at, at + size, archive_.size());
    return archive_.subspan(at, size);
  }
  uint64_t size() const { return archive_.size(); }
  std::string_view name() const { return name_; }

 private:
  Bytes archive_;
  std::string_view name_;
};

struct Directory {
  uint64_t count, offset;
};

// The end record is the last thing in the file but for a comment of at most 65535 bytes.
Directory find_directory(const Reader& reader) {
  if (reader.size() < kEndBytes) reader.refuse("{} bytes are too few", reader.size());
  const uint64_t last = reader.size() - kEndBytes, first = last > 0xffff ? last - 0xffff : 0;
  uint64_t end = last;
  const auto is_end = [&](uint64_t at) {
    return reader.number<uint32_t>(at) == kEnd &&
           at + kEndBytes + reader.number<uint16_t>(at + 20) == reader.size();
  };
  while (!is_end(end)) {
    if (end == first) reader.refuse("it has no directory");
    --end;
  }
  if (end >= kLocatorBytes && reader.number<uint32_t>(end - kLocatorBytes) == kEnd64Locator) {
    const auto wide = reader.number<uint64_t>(end - kLocatorBytes + 8);
    if (reader.part(wide, 56).size() < 56 || reader.number<uint32_t>(wide) != kEnd64)
      reader.refuse("its 64-bit directory is not where it should be");
    return {reader.number<uint64_t>(wide + 32), reader.number<uint64_t>(wide + 48)};
  }
  return {reader.number<uint16_t>(end + 10), reader.number<uint32_t>(end + 16)};
}

// 64-bit numbers for those fields that are all ones, in this order.
void read_wide_sizes(const Reader& reader, uint64_t at, uint64_t size,
                     std::initializer_list<uint64_t*> fields) {
  const uint64_t end = at + size;
  while (at + 4 <= end) {
    const auto tag = reader.number<uint16_t>(at), length = reader.number<uint16_t>(at + 2);
    at += 4;
    if (tag == kWideSizes) {
      uint64_t next = at;
      for (uint64_t* field : fields)
        if (*field == UINT32_MAX && next + 8 <= at + length) {
          *field = reader.number<uint64_t>(next);
          next += 8;
        }
    }
    at += length;
  }
}

// Reads the directory's entry at `at`, which is moved behind it.
ZipEntry read_entry(const Reader& reader, uint64_t& at) {
  if (reader.number<uint32_t>(at) != kCentral) reader.refuse("its directory is broken at {}", at);
  const auto flags = reader.number<uint16_t>(at + 8), method = reader.number<uint16_t>(at + 10);
  ZipEntry entry;
  entry.crc = reader.number<uint32_t>(at + 16);
  uint64_t packed = reader.number<uint32_t>(at + 20), offset = reader.number<uint32_t>(at + 42);
  entry.size_bytes = reader.number<uint32_t>(at + 24);
  const auto name_size = reader.number<uint16_t>(at + 28);
  const auto extra_size = reader.number<uint16_t>(at + 30);
  const auto comment_size = reader.number<uint16_t>(at + 32);
  const Bytes name = reader.part(at + kCentralBytes, name_size);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const uint64_t extra = at + kCentralBytes + name_size;
  reader.part(extra, extra_size);
  read_wide_sizes(reader, extra, extra_size, {&entry.size_bytes, &packed, &offset});
  if (flags & 1) reader.refuse("\"{}\" is encrypted", entry.name);
  if (method != kStored && method != kDeflated)
    reader.refuse("\"{}\" is packed by method {}, not stored or deflated", entry.name, method);
  entry.deflated = method == kDeflated;
  if (reader.number<uint32_t>(offset) != kLocal)
    reader.refuse("\"{}\" is not where the directory says", entry.name);
  const uint64_t data = offset + kLocalBytes + reader.number<uint16_t>(offset + 26) +
                        reader.number<uint16_t>(offset + 28);
  entry.packed = reader.part(data, packed);
  const bool possible =
      entry.deflated ? entry.size_bytes / kMaxExpansion <= packed + 1 : entry.size_bytes == packed;
  if (!possible)
    reader.refuse("\"{}\" announces {} bytes, which {} packed ones cannot hold", entry.name,
                  entry.size_bytes, packed);
  at = extra + extra_size + comment_size;
  return entry;
}

template <std::unsigned_integral T>
void put(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

uint32_t checksum(Bytes bytes) {
  uLong crc = 0;
  for (size_t at = 0; at < bytes.size(); at += 1u << 30) {
    const Bytes part = bytes.subspan(at, std::min<size_t>(bytes.size() - at, 1u << 30));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  }
  return static_cast<uint32_t>(crc);
}

Bytef* input(Bytes bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

std::vector<std::byte> deflated(Bytes bytes) {
  z_stream stream{};
  ensure(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib cannot start");
  std::vector<std::byte> out(deflateBound(&stream, bytes.size()));
  stream.next_in = input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  ensure(code == Z_STREAM_END, "zlib packed {} bytes with code {}", bytes.size(), code);
  return out;
}

// Whether exactly `size_bytes` came out of all of `packed`. `out` grows with what comes: an archive
// may announce more than it holds.
bool inflate_into(Bytes packed, uint64_t size_bytes, std::vector<std::byte>& out) {
  z_stream stream{};
  ensure(inflateInit2(&stream, -15) == Z_OK, "zlib cannot start");
  size_t in_done = 0, out_done = 0;
  std::byte nothing;
  int code = Z_OK;
  while (code == Z_OK) {
    const size_t in = std::min<size_t>(packed.size() - in_done, 1u << 30);
    if (out_done == out.size())
      out.resize(std::min<uint64_t>(size_bytes, 2 * out_done + kFirstBytes));
    const size_t space = std::min<size_t>(out.size() - out_done, 1u << 30);
    stream.next_in = input(packed.subspan(in_done, in));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(space > 0 ? out.data() + out_done : &nothing);
    stream.avail_out = static_cast<uInt>(space);
    code = inflate(&stream, Z_NO_FLUSH);
    in_done += in - stream.avail_in;
    out_done += space - stream.avail_out;
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END && out_done == size_bytes;
}

}  // namespace

std::vector<ZipEntry> read_zip(Bytes archive, std::string_view name) {
  const Reader reader(archive, name);
  const Directory directory = find_directory(reader);
  if (directory.count > archive.size() / kCentralBytes)
    reader.refuse("{} files are announced in {} bytes", directory.count, archive.size());
  std::vector<ZipEntry> entries;
  uint64_t at = directory.offset, packed_bytes = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    entries.push_back(read_entry(reader, at));
    packed_bytes += entries.back().packed.size();
  }
  if (packed_bytes > archive.size()) reader.refuse("its files overlap");
  return entries;
}

std::vector<std::byte> unpack(const ZipEntry& entry, std::string_view name) {
  const auto refuse = [&](std::string_view what) {
    fail(ErrorKind::User, "{}: \"{}\" {}; the file is damaged", name, entry.name, what);
  };
  require(entry.size_bytes <= host_memory_bytes(),
          "{}: \"{}\" has {} bytes, which the host's memory of {} does not hold", name, entry.name,
          entry.size_bytes, host_memory_bytes());
  std::vector<std::byte> bytes;
  if (!entry.deflated)
    bytes.assign(entry.packed.begin(), entry.packed.end());
  else if (!inflate_into(entry.packed, entry.size_bytes, bytes))
    refuse("cannot be unpacked");
  if (checksum(bytes) != entry.crc) refuse("has another checksum");
  return bytes;
}

void ZipWriter::add(const std::string& name, Bytes bytes, bool deflate) {
  constexpr uint64_t kLimit = UINT32_MAX;
  require(bytes.size() < kLimit &&
              archive_.size() + bytes.size() + directory_.size() < kLimit - 0x10000 &&
              name.size() <= UINT16_MAX && count_ < UINT16_MAX,
          "[save_npz] \"{}\" would make the archive 4 GiB or more; save it as safetensors", name);
  const std::vector<std::byte> smaller = deflate ? deflated(bytes) : std::vector<std::byte>();
  const Bytes packed = deflate ? Bytes(smaller) : bytes;
  std::vector<std::byte> common;  // what both headers have
  put(common, uint16_t{20});      // needs version 2.0
  put(common, uint16_t{0x800});   // the name is UTF-8
  put(common, deflate ? kDeflated : kStored);
  put(common, uint32_t{0x00210000});  // the first day that the format knows
  put(common, checksum(bytes));
  put(common, static_cast<uint32_t>(packed.size()));
  put(common, static_cast<uint32_t>(bytes.size()));
  put(common, static_cast<uint16_t>(name.size()));
  put(common, uint16_t{0});
  const auto offset = static_cast<uint32_t>(archive_.size());
  const Bytes name_bytes = std::as_bytes(std::span(name));
  put(archive_, kLocal);
  put(archive_, Bytes(common));
  put(archive_, name_bytes);
  put(archive_, packed);
  put(directory_, kCentral);
  put(directory_, uint16_t{20});
  put(directory_, Bytes(common));
  put(directory_, uint64_t{0});  // no comment, first disk, no attributes: 2 + 2 + 2 bytes and …
  put(directory_, uint16_t{0});  // … 4 of external attributes
  put(directory_, offset);
  put(directory_, name_bytes);
  ++count_;
}

std::vector<std::byte> ZipWriter::finish() {
  const auto offset = static_cast<uint32_t>(archive_.size());
  put(archive_, Bytes(directory_));
  put(archive_, kEnd);
  put(archive_, uint32_t{0});  // disks
  put(archive_, count_);
  put(archive_, count_);
  put(archive_, static_cast<uint32_t>(directory_.size()));
  put(archive_, offset);
  put(archive_, uint16_t{0});  // no comment
  return std::move(archive_);
}

}  // namespace plugrad::io
