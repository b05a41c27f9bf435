#include "trace/lines.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace plugrad::tools::trace {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // see inflateInit2

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

struct LineReader::Inflater {
  explicit Inflater(std::span<const std::byte> file) : rest(file) {
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends the next block to `text`. Nothing if there may be more.
  std::optional<Ending> read(std::string& text) {
    if (!in_member && rest.empty()) return Ending::Whole;
    if (!in_member && !is_gzip(rest)) return rest.size() < 2 ? Ending::CutOff : Ending::Damaged;
    in_member = true;
    const size_t before = text.size();
    text.resize(before + kBlockBytes);
    const size_t given = std::min(rest.size(), kBlockBytes);  // avail_in has 32 bits
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = static_cast<uInt>(kBlockBytes);
    const int status = inflate(&stream, Z_NO_FLUSH);
    rest = rest.subspan(given - stream.avail_in);
    text.resize(before + kBlockBytes - stream.avail_out);
    if (status == Z_STREAM_END) {
      in_member = false;
      inflateReset(&stream);
      return {};
    }
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_BUF_ERROR || (status == Z_OK && rest.empty() && stream.avail_out > 0))
      return Ending::CutOff;
    return status == Z_OK ? std::nullopt : std::optional(Ending::Damaged);
  }

  std::span<const std::byte> rest;
  z_stream stream{};
  bool in_member = false;
};

LineReader::LineReader(std::span<const std::byte> file, const Limits& limits)
    : limits_(limits), inflater_(std::make_unique<Inflater>(file)) {}

LineReader::~LineReader() = default;

// Reads one more block; false at the end.
bool LineReader::fill() {
  if (at_end_) return false;
  text_.erase(0, line_);
  searched_ -= line_;
  line_ = 0;
  const size_t before = text_.size();
  const std::optional<Ending> end = inflater_->read(text_);
  total_ += text_.size() - before;
  at_end_ = end.has_value();
  if (end) ending_ = *end;
  if (total_ > limits_.text_bytes) {
    at_end_ = true;
    ending_ = Ending::TooLarge;
    return false;
  }
  return true;
}

std::optional<std::string_view> LineReader::next() {
  do {
    const size_t end = text_.find('\n', searched_);
    const size_t size = std::min(end, text_.size()) - line_;
    if (size > limits_.line_bytes) {
      at_end_ = true;
      ending_ = Ending::TooLarge;
      return {};
    }
    if (end != std::string::npos) {
      const size_t begin = line_;
      line_ = searched_ = end + 1;
      return std::string_view(text_).substr(begin, size);
    }
    searched_ = text_.size();
  } while (fill());
  if (line_ < text_.size() && ending_ == Ending::Whole) ending_ = Ending::CutOff;
  return {};
}

bool fits(std::string_view line, const Limits& limits) {
  uint64_t values = 1;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.depth) return false;
      ++values;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
  }
  return values <= limits.line_values;
}

}  // namespace plugrad::tools::trace
