// The text of a calibration file:
//   plugrad calibration 1
//   device CPU x86_64-znver3 cpu-0 AMD EPYC
//   latency 4
//   …
//   checksum 0123456789abcdef
#include "cost/calibration_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "base/hash.h"

namespace plugrad::cost {
namespace {

constexpr std::string_view kTitle = "plugrad calibration 1\n";
constexpr std::string_view kDevice = "device ";
constexpr std::string_view kChecksum = "checksum ";

std::string checksum_line(std::string_view body) {
  return fmt::format("{}{:016x}\n", kChecksum, hash64(std::as_bytes(std::span(body))));
}

// Removes the next line with its line end and returns it without.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Field* find_field(std::string_view name) {
  for (const Field& field : fields())
    if (field.name == name) return &field;
  return nullptr;
}

}  // namespace

std::span<const Field> fields() {
  static const Field all[] = {
      {"multiply_adds", [](Machine& m) -> double& { return m.multiply_adds; }, 0.05, 64},
      {"latency", [](Machine& m) -> double& { return m.latency; }, 0.5, 1000},
      {"loads", [](Machine& m) -> double& { return m.loads; }, 0.05, 64},
      {"stores", [](Machine& m) -> double& { return m.stores; }, 0.01, 64},
      {"cycles_a_second", [](Machine& m) -> double& { return m.cycles_a_second; }, 1e6, 1e11},
      {"wake_cycles", [](Machine& m) -> double& { return m.wake_cycles; }, 10, 1e9},
      {"l1_one", [](Machine& m) -> double& { return m.levels[0].one; }, 0.01, 1e6},
      {"l1_all", [](Machine& m) -> double& { return m.levels[0].all; }, 0.01, 1e9},
      {"l2_one", [](Machine& m) -> double& { return m.levels[1].one; }, 0.01, 1e6},
      {"l2_all", [](Machine& m) -> double& { return m.levels[1].all; }, 0.01, 1e9},
      {"l3_one", [](Machine& m) -> double& { return m.levels[2].one; }, 0.01, 1e6},
      {"l3_all", [](Machine& m) -> double& { return m.levels[2].all; }, 0.01, 1e9},
      {"memory_one", [](Machine& m) -> double& { return m.levels[3].one; }, 0.001, 1e6},
      {"memory_all", [](Machine& m) -> double& { return m.levels[3].all; }, 0.001, 1e9},
  };
  return all;
}

std::string problem_of(const Machine& machine) {
  Machine m = machine;
  for (const Field& field : fields()) {
    const double value = field.of(m);
    if (!(value >= field.least && value <= field.most))
      return fmt::format("{} is {}, not within {} and {}", field.name, value, field.least,
                         field.most);
  }
  return {};
}

std::string to_text(const Machine& machine, std::string_view identity) {
  Machine m = machine;
  std::string body = fmt::format("{}{}{}\n", kTitle, kDevice, identity);
  for (const Field& field : fields()) body += fmt::format("{} {:.6g}\n", field.name, field.of(m));
  return body + checksum_line(body);
}

std::optional<Machine> parse_calibration(std::string_view text, std::string_view identity,
                                         const Machine& table, std::string& problem) {
  problem = "it is damaged";
  const size_t end = text.rfind(kChecksum);
  if (!text.starts_with(kTitle) || end == text.npos ||
      text.substr(end) != checksum_line(text.substr(0, end)))
    return std::nullopt;
  std::string_view body = text.substr(0, end);
  take_line(body);
  const std::string_view device = take_line(body);
  if (!device.starts_with(kDevice)) return std::nullopt;
  if (device.substr(kDevice.size()) != identity) {
    problem = fmt::format("it is of {}", device.substr(kDevice.size()));
    return std::nullopt;
  }
  Machine m = table;
  size_t count = 0;
  while (!body.empty()) {
    const std::string_view line = take_line(body);
    const size_t space = std::min(line.find(' '), line.size());
    const Field* field = find_field(line.substr(0, space));
    const auto value = number_of(line.substr(std::min(space + 1, line.size())));
    if (!field || !value) return std::nullopt;
    field->of(m) = *value;
    ++count;
  }
  if (count != fields().size()) return std::nullopt;
  problem = problem_of(m);
  if (!problem.empty()) return std::nullopt;
  return m;
}

}  // namespace plugrad::cost
