#include "io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "io/foreign_format.h"

namespace plugrad::io {
namespace {

static_assert(std::endian::native == std::endian::little, "data is written as it lies in memory");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxNpyHeaderBytes = 1 << 20;  // bytes; limit for one array's description
constexpr size_t kAlignment = 64;               // bytes; alignment of the data, as in NumPy

struct Code {
  const char* text;  // without the byte order
  DType dtype;
};
constexpr Code kCodes[] = {
    {"b1", DType::Bool}, {"i1", DType::I8},  {"u1", DType::U8},  {"i2", DType::I16},
    {"u2", DType::U16},  {"i4", DType::I32}, {"u4", DType::U32}, {"i8", DType::I64},
    {"u8", DType::U64},  {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64},
    {"V2", DType::BF16},
};

// Parses the Python literal of a header. Errors contain the array's name.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::User, "{}: {}; the file is damaged, or not of this format", name_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  NpyArray parse() {
    NpyArray array;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(has_descr, true))
        read_descr(array);
      else if (key == "fortran_order" && !std::exchange(has_order, true))
        array.fortran = truth();
      else if (key == "shape" && !std::exchange(has_shape, true))
        array.shape = shape();
      else
        refuse("the header has the key \"{}\" twice or for no reason", key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) refuse("text follows the header's end");
    if (!has_descr || !has_order || !has_shape)
      refuse("the header lacks descr, fortran_order or shape");
    return array;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse("'{}' is expected at place {} of the header", c, at_);
  }

  std::string_view quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') refuse("a text is expected at place {} of the header", at_);
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("a text of the header has no end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  bool truth() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += std::strlen(word);
      return value;
    }
    refuse("fortran_order is neither True nor False");
  }

  void read_descr(NpyArray& array) {
    skip_spaces();
    require(at_ < text_.size() && text_[at_] != '[',
            "{}: it holds records of several fields; save each field as an array", name_);
    const std::string_view descr = quoted();
    const bool has_order = descr.find_first_of("<>|=") == 0;
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    const auto* found = std::ranges::find(kCodes, code, &Code::text);
    require(found != std::end(kCodes),
            "{}: its dtype is '{}', which plugrad lacks; in NumPy, convert it with astype to bool, "
            "an integer or a float of at most 64 bits",
            name_, descr);
    array.dtype = found->dtype;
    array.swapped = has_order && descr[0] == '>' && size_of(array.dtype) > 1;
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t size = -1;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0) refuse("the shape has no size at place {}", at_);
      at_ = static_cast<size_t>(end - text_.data());
      accept('L');  // Python 2 appends it to long integers
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view text_, name_;
  size_t at_ = 0;
};

// The size of the array in bytes; nothing if it overflows 64 bits.
std::optional<uint64_t> size_bytes_of(const NpyArray& array) {
  if (std::ranges::find(array.shape, 0) != array.shape.end()) return 0;
  uint64_t size_bytes = size_of(array.dtype);
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(size_bytes, static_cast<uint64_t>(size), &size_bytes))
      return std::nullopt;
  return size_bytes;
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> file, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const HeaderParser any({}, name);
  if (!text.starts_with(kMagic)) {
    const std::string foreign = foreign_format(file, Wanted::Npy);
    require(foreign.empty(), "{}: {}", name, foreign);
    any.refuse("it does not begin with \\x93NUMPY");
  }
  if (text.size() < 10) any.refuse("truncated: {} bytes are too few for a header", text.size());
  const auto version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) any.refuse("format version {} is not 1, 2 or 3", version);
  const size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) any.refuse("truncated: {} bytes are too few for a header", text.size());
  uint32_t size = 0;
  std::memcpy(&size, text.data() + 8, begin - 8);
  if (size > kMaxNpyHeaderBytes) any.refuse("a header of {} bytes is announced", size);
  if (size > text.size() - begin)
    any.refuse("truncated: a header of {} bytes is announced, {} follow", size,
               text.size() - begin);
  NpyArray array = HeaderParser(text.substr(begin, size), name).parse();
  array.bytes = file.subspan(begin + size);
  const auto needed = size_bytes_of(array);
  if (!needed) any.refuse("the shape is larger than any memory");
  if (array.bytes.size() < *needed)
    any.refuse("truncated: {} bytes of data where the shape needs {}", array.bytes.size(), *needed);
  if (array.bytes.size() > *needed)
    any.refuse("{} bytes follow the array", array.bytes.size() - *needed);
  return array;
}

std::string npy_header(DType dtype, std::span<const int64_t> shape) {
  const auto* found = std::ranges::find(kCodes, dtype, &Code::dtype);
  require(found != std::end(kCodes) && dtype != DType::BF16, "[save_npy] NumPy has no dtype {}",
          name_of(dtype));
  const char order = size_of(dtype) == 1 ? '|' : '<';
  std::string sizes = fmt::format("{}", fmt::join(shape, ", "));
  if (shape.size() == 1) sizes += ',';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 order, found->text, sizes);
  // Pads with spaces and a newline, so that the data is aligned. Shapes have few axes, so the
  // 16-bit size of version 1 is enough.
  const size_t begin = kMagic.size() + 4;
  text.resize((begin + text.size() + kAlignment) / kAlignment * kAlignment - begin - 1, ' ');
  text += '\n';
  const auto size = static_cast<uint16_t>(text.size());
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
  return header + text;
}

}  // namespace plugrad::io
