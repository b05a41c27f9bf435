#include "cost/calibration_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"

namespace plugrad::cost {
namespace {

constexpr std::string_view kWho = "CPU x86_64-znver3 cpu-0 EPYC";

// Recomputes the checksum, so that the figure itself is checked.
std::string with_figure(std::string_view name, std::string_view value) {
  std::string text = to_text(Machine(), kWho);
  text.resize(text.rfind("checksum "));
  const size_t begin = text.find(fmt::format("\n{} ", name)) + 1, end = text.find('\n', begin);
  text.replace(begin, end - begin, fmt::format("{} {}", name, value));
  return text + fmt::format("checksum {:016x}\n", hash64(std::as_bytes(std::span(text))));
}

std::string refusal(std::string_view text, std::string_view who = kWho) {
  std::string problem;
  return parse_calibration(text, who, Machine(), problem) ? "" : problem;
}

TEST(CalibrationText, gives_back_what_was_measured) {
  Machine measured;
  measured.multiply_adds = 1.875;
  measured.levels[3] = {0, 5.25, 7.5};
  std::string problem;
  const auto read = parse_calibration(to_text(measured, kWho), kWho, Machine(), problem);
  ASSERT_TRUE(read) << problem;
  EXPECT_EQ(*read, measured);
}

TEST(CalibrationText, keeps_what_is_not_measured_of_the_table) {
  Machine table;
  table.registers = 32;
  table.levels[0].bytes = 49'152;
  std::string problem;
  const auto read = parse_calibration(to_text(Machine(), kWho), kWho, table, problem);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->registers, 32);
  EXPECT_EQ(read->levels[0].bytes, 49'152);
}

TEST(CalibrationText, refuses_nonsense) {
  EXPECT_EQ(refusal(with_figure("latency", "5")), "");
  EXPECT_EQ(refusal(with_figure("latency", "-4")), "latency is -4, not within 0.5 and 1000");
  EXPECT_EQ(refusal(with_figure("loads", "0")), "loads is 0, not within 0.05 and 64");
  EXPECT_EQ(refusal(with_figure("memory_all", "1e30")),
            "memory_all is 1e+30, not within 0.001 and 1000000000");
  EXPECT_EQ(refusal(with_figure("stores", "nan")), "stores is nan, not within 0.01 and 64");
  EXPECT_EQ(refusal(with_figure("stores", "inf")), "stores is inf, not within 0.01 and 64");
  for (std::string_view junk : {"", "x", "1x", "1 2", "1e999"})
    EXPECT_EQ(refusal(with_figure("stores", junk)), "it is damaged") << junk;
}

TEST(CalibrationText, refuses_what_is_damaged) {
  const std::string text = to_text(Machine(), kWho);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_EQ(refusal(std::string_view(text).substr(0, length)), "it is damaged") << length;
  for (size_t place = 0; place < text.size(); ++place) {
    std::string other = text;
    other[place] = static_cast<char>(other[place] ^ 1);
    EXPECT_EQ(refusal(other), "it is damaged") << place;
  }
}

TEST(CalibrationText, refuses_that_of_another_machine) {
  EXPECT_EQ(refusal(to_text(Machine(), kWho), "CPU aarch64"),
            "it is of CPU x86_64-znver3 cpu-0 EPYC");
}

}  // namespace
}  // namespace plugrad::cost
