#include "base/escaping/sanitise_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

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

// The number of a valid character.
std::uint32_t code_point(std::string_view character) {
  const unsigned first = byte_at(character, 0);
  std::uint32_t code = character.size() == 1 ? first : first & (0x7f >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i)
    code = (code << 6) | (byte_at(character, i) & 0x3f);
  return code;
}

// ASCII controls, U+0080 to U+009F, which some terminals obey, and characters without width, which
// hide in names or turn the direction of a line (Unicode 16, general categories Cf, Zl and Zp).
bool is_control(std::uint32_t code) {
  struct Span {
    std::uint32_t first, last;
  };
  constexpr Span kHidden[] = {{0x00, 0x08},     {0x0b, 0x1f},     {0x7f, 0x9f},
                              {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},
                              {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                              {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  return std::ranges::any_of(kHidden, [&](Span s) { return code >= s.first && code <= s.last; });
}

// The first bytes of `line`, of the last ones, and how many are between.
std::string bound_line(std::string_view line) {
  constexpr std::size_t kMost = 8192, kEnd = 256;  // bytes
  if (line.size() <= kMost) return std::string(line);
  return fmt::format("{} … ({} bytes left out) … {}", line.substr(0, kMost - kEnd),
                     line.size() - kMost, line.substr(line.size() - kEnd));
}

}  // namespace

std::string sanitise_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::size_t taken = size == 0 ? 1 : size;
    if (size == 0 || is_control(code_point(text.substr(0, size))))
      out.append(taken, '?');
    else
      out.append(text, 0, size);
    text.remove_prefix(taken);
  }
  return out;
}

std::string escape_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::uint32_t code = size == 0 ? 0 : code_point(text.substr(0, size));
    if (size == 0)
      fmt::format_to(std::back_inserter(out), "<0x{:02X}>", byte_at(text, 0));
    else if (code < 0x20 || code > 0x7e)
      fmt::format_to(std::back_inserter(out), "<U+{:04X}>", code);
    else
      out += text[0];
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return escape_text(text);
  return fmt::format("{}... ({} bytes)", escape_text(text.substr(0, most)), text.size());
}

std::string bound_text(std::string_view text) {
  constexpr std::size_t kMost = 400, kEnd = 20;  // lines
  if (text.size() < kMost) return std::string(text);
  std::vector<std::string_view> lines;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find('\n');
    lines.push_back(rest.substr(0, end));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    out += bound_line(lines[i]);
    if (i + 1 != kMost - kEnd || lines.size() <= kMost) continue;
    out += fmt::format("\n… ({} lines left out)", lines.size() - kMost);
    i = lines.size() - kEnd - 1;
  }
  return out;
}

}  // namespace plugrad
