#include "base/escaping/sanitise_text.h"

#include <cstddef>
#include <cstdint>

namespace plugrad {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bytes of the UTF-8 character at the start of `text`; 0 if it is invalid: a stray or missing
// continuation, an overlong form, a surrogate, beyond U+10FFFF.
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

// ASCII controls and C2 80 to C2 9F (U+0080 to U+009F), which some terminals obey.
bool is_control(std::string_view character) {
  const unsigned c = byte_at(character, 0);
  if (character.size() == 2) return c == 0xc2 && byte_at(character, 1) < 0xa0;
  return character.size() == 1 && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f);
}

}  // namespace

std::string sanitise_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::size_t taken = size == 0 ? 1 : size;
    if (size == 0 || is_control(text.substr(0, size)))
      out.append(taken, '?');
    else
      out.append(text, 0, size);
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace plugrad
