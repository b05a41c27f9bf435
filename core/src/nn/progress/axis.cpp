#include "nn/progress/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plugrad {
namespace {

constexpr double kLeastSpan = 1e-290;        // a tick interval stays a normal number
constexpr double kLeastRelativeSpan = 1e-9;  // below it, labels could not tell ticks apart

// The least of 1, 2 and 5 times a power of ten that is not below `interval`.
double round_interval(double interval) {
  const double power = std::pow(10.0, std::floor(std::log10(interval)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (interval <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

double Axis::position(double value) const {
  if (is_log) return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  return (value - low) / (high - low);
}

Axis linear_axis(double low, double high, int intervals) {
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (high - low < std::max(magnitude * kLeastRelativeSpan, kLeastSpan)) {
    const double margin = magnitude < kLeastSpan ? 1 : magnitude / 10;
    low -= margin;
    high += margin;
  }
  const double interval = round_interval((high - low) / intervals);
  const double first = std::floor(low / interval + 1e-9), last = std::ceil(high / interval - 1e-9);
  Axis axis{.low = first * interval, .high = last * interval};
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * interval);
  return axis;
}

Axis log_axis(double low, double high) {
  constexpr int kMostTicks = 6;
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
  Axis axis{.low = std::pow(10.0, first), .high = std::pow(10.0, last), .is_log = true};
  const int each = (last - first + kMostTicks - 1) / kMostTicks;
  for (int power = first; power <= last; power += each) axis.ticks.push_back(std::pow(10.0, power));
  return axis;
}

Axis step_axis(double last) {
  Axis axis{.low = 0, .high = std::max(last, 1.0)};
  const double interval = std::max(1.0, round_interval(axis.high / 5));
  for (double tick = 0; tick <= axis.high; tick += interval) axis.ticks.push_back(tick);
  return axis;
}

std::string number_text(double value) {
  constexpr const char* kPrefixes[] = {"k", "M", "G", "T"};
  const double magnitude = std::abs(value);
  if (magnitude < 1e4 || magnitude >= 1e15 || !std::isfinite(value))
    return fmt::format("{:.4g}", value == 0 ? 0 : value);
  const int thousands = std::clamp(static_cast<int>(std::log10(magnitude * 1.0005) / 3), 1, 4);
  return fmt::format("{:.4g}{}", value / std::pow(1000.0, thousands), kPrefixes[thousands - 1]);
}

std::string elapsed_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  const long long minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

}  // namespace plugrad
