#include "runtime/printable.h"

#include <cstddef>
#include <cstdint>

#include "runtime/status.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kLongestFact = 4096;

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bytes of the UTF-8 character at the start of `text`; 0 where there is none: a stray or missing
// continuation, a longer form than needed, a surrogate, beyond U+10FFFF.
std::size_t character_size(std::string_view text) {
  const unsigned first = byte_at(text, 0), second = byte_at(text, 1);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || size == 0) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return bad ? 0 : size;
}

bool is_control(unsigned char c) {
  return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0 || (size == 1 && is_control(static_cast<unsigned char>(text[0]))))
      out += '?';
    else
      out.append(text, 0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string printable(const pgr_string& text) {
  if (!text.data || text.size > kLongestFact) return "";
  return printable(view(text));
}

}  // namespace plugrad::runtime
