// The errors of functions on CPU are below the bounds of docs/accuracy.md. By default for a part of
// the numbers; a campaign covers every f32 and 10 million f64 of each function:
//   PLUGRAD_TEST_ACCURACY_STATE=FILE [PLUGRAD_TEST_SHARD=i/n]   the numbers not yet in FILE
//   PLUGRAD_TEST_ACCURACY_PARTS=k     of f32 only the first k of 256 parts, each an even sample
//   UPDATE_ACCURACY=1 with FILE       writes the table (tools/update-accuracy)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "accuracy/campaign.h"

namespace plugrad::accuracy {
namespace {

constexpr DType kBoth[] = {DType::F32, DType::F64};
constexpr Extent kThinned = {1999, 200'000};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_every_float(const Function& function, DType dtype) {
  return dtype == DType::F32 && !function.has_two_operands;
}

uint32_t parts_wanted(const Function& function, DType dtype) {
  const std::string parts = variable("PLUGRAD_TEST_ACCURACY_PARTS");
  if (parts.empty() || !is_every_float(function, dtype)) return kParts;
  return std::min(kParts, static_cast<uint32_t>(std::stoul(parts)));
}

/// The state of this very program: another one computes other values.
std::string state_path() {
  const std::string path = variable("PLUGRAD_TEST_ACCURACY_STATE");
  if (path.empty()) return path;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (std::istreambuf_iterator<char> at(program), end; at != end; ++at)
    hash = (hash ^ static_cast<uint8_t>(*at)) * 0x100000001b3;
  return fmt::format("{}-{:016x}", path, hash);
}

struct Shard {
  uint32_t number = 0, count = 1;
};
Shard shard() {
  Shard shard;
  if (std::sscanf(variable("PLUGRAD_TEST_SHARD").c_str(), "%u/%u", &shard.number, &shard.count) < 2)
    return {};
  return shard;
}

class Accuracy : public testing::TestWithParam<size_t> {
 protected:
  const Function& function = functions()[GetParam()];
};

TEST_P(Accuracy, within_the_bound) {
  static const std::string path = state_path();
  const Extent extent = path.empty() ? kThinned : Extent{};
  const Shard mine = shard();
  for (DType dtype : kBoth) {
    if (dtype == DType::F64 && std::numeric_limits<long double>::digits < 64)
      GTEST_SKIP() << "long double is no wider than double";
    State state(path);
    for (uint32_t part = mine.number; part < parts_wanted(function, dtype); part += mine.count)
      if (!state.has(function, dtype, extent, part))
        state.add(function, dtype, extent, part, measure(function, dtype, extent, part));
    const Worst worst = state.total(function, dtype, extent).first;
    EXPECT_LE(worst.ulp, function.bound(dtype))
        << function.name << " of " << fmt::format("{:.17g}, {:.17g}", worst.x, worst.y);
    RecordProperty(dtype == DType::F32 ? "worst_f32" : "worst_f64",
                   fmt::format("{:.3f} at {:.9g}, {:.9g}", worst.ulp, worst.x, worst.y));
  }
}
INSTANTIATE_TEST_SUITE_P(functions, Accuracy, testing::Range<size_t>(0, functions().size()),
                         [](const auto& row) { return std::string(functions()[row.param].name); });

constexpr std::string_view kBegin = "<!-- errors of functions -->\n",
                           kEnd = "<!-- end of the errors -->\n";

std::string cell(const State& state, const Function& function, DType dtype) {
  const auto [worst, parts] = state.total(function, dtype, Extent{});
  const uint64_t all =
      is_every_float(function, dtype) ? uint64_t{1} << 32 : uint64_t{Extent{}.count};
  const std::string y = function.has_two_operands ? fmt::format(", {:.9g}", worst.y) : "",
                    part = parts == kParts ? "" : fmt::format(", of {}", all / kParts * parts);
  return fmt::format("{:.2f} at {:.9g}{}{}", worst.ulp, worst.x, y, part);
}

std::string table(const State& state) {
  std::string text = fmt::format(
      "Measured: every f32 (pow: {0} pairs), {0} of f64; fewer, evenly spread, where a row says "
      "so.\n\n",
      Extent{}.count);
  text += "| function | f32: bound | worst | f64: bound | worst |\n|---|---|---|---|---|\n";
  for (const Function& f : functions())
    text += fmt::format("| {} | {} | {} | {} | {} |\n", f.name, f.bound_f32,
                        cell(state, f, DType::F32), f.bound_f64, cell(state, f, DType::F64));
  return text;
}

/// Without what was measured: the names and bounds.
std::string promises(const std::string& rows) {
  std::istringstream lines(rows);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) continue;
    std::istringstream cells(line);
    std::string word;
    for (int column = 0; std::getline(cells, word, '|'); ++column)
      if (column != 3 && column != 5) text += word + "|";
    text += "\n";
  }
  return text;
}

TEST(Document, HasTheBoundOfEveryFunction) {
  const std::string path = PLUGRAD_SOURCE_DIR "/docs/accuracy.md";
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  const std::string text = file.str();
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << "no marks in " << path;
  const size_t first = begin + kBegin.size();
  const State state(state_path());
  if (!variable("UPDATE_ACCURACY").empty())
    std::ofstream(path) << text.substr(0, first) << table(state) << text.substr(end);
  else
    EXPECT_EQ(promises(text.substr(first, end - first)), promises(table(state)))
        << "run tools/update-accuracy";
}

}  // namespace
}  // namespace plugrad::accuracy
