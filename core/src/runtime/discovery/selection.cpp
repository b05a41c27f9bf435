// Parses the text of a device list to choices; errors point at the mistake.
#include "runtime/discovery/selection.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "runtime/discovery/path_pattern.h"
#include "runtime/plugin_text.h"

namespace plugrad::runtime {
namespace {

constexpr std::string_view kGrammar =
    "a list such as \"cuda:1\", \"cuda,vulkan,cpu\", \"!vulkan\", \"cuda:name=*A100*\" or "
    "\"uuid=GPU-4f*\"";

char upper(char c) {
  return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
}

struct Place {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

std::string on_one_line(std::string_view text) {
  std::string out = sanitise_text(text);
  std::replace_if(out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, '?');
  return out;
}

// A long value is shown by the line below the message alone.
std::string quoted(std::string_view value) {
  constexpr std::size_t kMost = 64;  // bytes
  return value.size() <= kMost ? fmt::format("\"{}\"", escape_text(value))
                               : fmt::format("a text of {} bytes", value.size());
}

// One parse: the text and the position.
class SelectionParser {
 public:
  SelectionParser(std::string_view text, std::string_view source) {
    out_.text = text;
    out_.source = source;
  }

  Selection parse() {
    std::size_t begin = 0;
    while (true) {
      std::size_t comma = std::min(out_.text.find(',', begin), out_.text.size());
      item(trimmed({begin, comma}));
      if (comma == out_.text.size()) return std::move(out_);
      begin = comma + 1;
    }
  }

 private:
  std::string_view text(Place p) const {
    return std::string_view(out_.text).substr(p.begin, p.size());
  }

  Place trimmed(Place p) const {
    while (p.begin < p.end && out_.text[p.begin] == ' ') ++p.begin;
    while (p.begin < p.end && out_.text[p.end - 1] == ' ') --p.end;
    return p;
  }

  [[noreturn]] void refuse(Place p, std::string_view what) const {
    refuse_selection(out_.text, p.begin, p.size(), fmt::format("{} in {}", what, out_.source),
                     fmt::format("{} takes {}", out_.source, kGrammar));
  }

  void item(Place p) {
    if (p.size() == 0) refuse(p, out_.text.empty() ? "no device is named" : "an empty item");
    bool excluded = out_.text[p.begin] == '!';
    if (excluded) p = trimmed({p.begin + 1, p.end});
    if (p.size() == 0) refuse({p.begin - 1, p.end}, "'!' names nothing");
    DeviceChoice choice;
    where(p, choice);
    (excluded ? out_.exclude : out_.prefer).push_back(std::move(choice));
  }

  void where(Place p, DeviceChoice& out) {
    std::size_t colon = text(p).find(':');
    bool bare_which =
        text(p).find('=') < colon ||
        std::all_of(
            text(p).begin(), text(p).end(), [](unsigned char c) { return std::isdigit(c); });
    out.offset = out.which_offset = p.begin;
    out.length = out.which_length = p.size();
    if (bare_which) return which(p, out);
    Place plugin = p;
    if (colon != std::string_view::npos) plugin.end = p.begin + colon;
    plugin_name(trimmed(plugin), out);
    if (plugin.end != p.end) which(trimmed({plugin.end + 1, p.end}), out);
  }

  void plugin_name(Place p, DeviceChoice& out) {
    auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    std::string_view name = text(p);
    if (name.empty()) refuse(p, "no device name before ':'");
    if (!std::all_of(name.begin(), name.end(), allowed))
      refuse(p, fmt::format("{} cannot be a device's name", quoted(name)));
    out.length = out.which_length = p.size();
    out.plugin = canonical_device_name(name);
  }

  void which(Place p, DeviceChoice& out) {
    out.which_offset = p.begin;
    out.which_length = p.size();
    std::string_view value = text(p);
    if (value.starts_with("name=") && value.size() > 5) {
      out.name_glob = value.substr(5);
    } else if (value.starts_with("uuid=") && value.size() > 5) {
      out.uuid_glob = value.substr(5);
    } else {
      std::uint32_t index = 0;
      auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), index);
      if (value.empty() || code != std::errc() || end != value.data() + value.size())
        refuse(p, fmt::format("{} is neither a number, name=... nor uuid=...", quoted(value)));
      out.index = index;
    }
  }

  Selection out_;
};

}  // namespace

Selection parse_selection(std::string_view text, std::string_view source) {
  return SelectionParser(text, source).parse();
}

void refuse_selection(std::string_view text, std::size_t offset, std::size_t length,
                      std::string_view message, std::string_view advice) {
  constexpr std::string_view kIndent = "       ";  // as wide as the "error: " that tools print
  constexpr std::size_t kAround = 64;              // bytes of the mistake and of each side of it
  const std::size_t begin = offset - std::min(offset, kAround), inside = std::min(length, kAround);
  const std::string before =
      (begin > 0 ? "..." : "") + escape_text(text.substr(begin, offset - begin));
  std::string there = escape_text(text.substr(offset, inside)), after;
  if (inside < length)
    there += "...";
  else
    after = excerpt(text.substr(offset + length), kAround);
  const std::string caret = std::string(before.size(), ' ') + '^' +
                            std::string(std::max<std::size_t>(there.size(), 1) - 1, '~');
  fail(ErrorKind::User, "{}\n{}{}{}{}\n{}{} {}", on_one_line(message), kIndent, before, there,
       after, kIndent, caret, advice);
}

std::string device_numbers(std::size_t count) {
  if (count == 1) return "1 device: 0";
  return count == 0 ? "no device" : fmt::format("{} devices: 0 to {}", count, count - 1);
}

std::string canonical_device_name(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(), upper);
  if (out == "CLANG") return "CPU";
  if (out == "GPU") return "OPENCL";
  return out;
}

bool matches_glob(std::string_view text, std::string_view glob) {
  return matches_stars(text, glob, [](std::string_view pattern, std::size_t& at, char c) {
    const bool is_same = at < pattern.size() && pattern[at] != '*' &&
                         (pattern[at] == '?' || upper(pattern[at]) == upper(c));
    at += is_same;
    return is_same;
  });
}

}  // namespace plugrad::runtime
