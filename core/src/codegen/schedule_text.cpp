// The text of kernel schedules: "vectorize(1, 16) upcast(0, 6)".
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/check.h"
#include "codegen/codegen.h"

namespace plugrad::codegen {
namespace {

constexpr std::array<std::string_view, 13> kNames = {
    "upcast",      "unroll", "vectorize",  "local", "group", "thread", "swap",
    "tensor_core", "block",  "accumulate", "stage", "keep",  "ahead"};

// Reads one number after blanks and an optional comma.
template <class Number>
bool read_number(std::string_view& text, Number& out) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (code != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string to_string(const KernelSchedule& schedule) {
  std::string out;
  for (const ScheduleStep& o : schedule) {
    if (!out.empty()) out += ' ';
    out += fmt::format("{}({}, {})", kNames[static_cast<size_t>(o.kind)], o.axis, o.amount);
  }
  return out;
}

KernelSchedule parse_schedule(std::string_view text) {
  const std::string_view whole = text;
  KernelSchedule out;
  for (;;) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) return out;
    const size_t open = text.find('(');
    require(open != text.npos, "[optimisations] expected name(axis, amount) at \"{}\" in \"{}\"",
            text, whole);
    const auto name = std::ranges::find(kNames, text.substr(0, open));
    require(name != kNames.end(), "[optimisations] unknown optimisation \"{}\"; there are {}",
            text.substr(0, open), fmt::join(kNames, ", "));
    ScheduleStep o{static_cast<ScheduleStep::Kind>(name - kNames.begin())};
    text.remove_prefix(open + 1);
    require(read_number(text, o.axis) && read_number(text, o.amount) && text.starts_with(')'),
            "[optimisations] expected (axis, amount) at \"{}\" in \"{}\"", text, whole);
    text.remove_prefix(1);
    out.push_back(o);
  }
}

}  // namespace plugrad::codegen
