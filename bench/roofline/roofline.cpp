#include "bench/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "markup/fill.h"
#include "roofline_template.h"

namespace plugrad::bench {
namespace {

using markup::Values;

// The page in SVG units; the plot is left of the list of points.
constexpr double kLeft = 64, kRight = 640, kTop = 56, kBottom = 536, kListLeft = 672, kWidth = 1000;
constexpr double kLine = 15;  // height of a line of the list

std::string coordinate(double value) {
  return fmt::format("{:.1f}", value);
}

struct Point {
  std::string name;
  double intensity, speed;  // FLOP a byte, FLOP/s
  double reached;           // fraction of the roof
  int threads;
};

class Plot {
 public:
  Plot(const std::vector<Roof>& roofs, std::vector<Point> points)
      : roofs_(roofs), points_(std::move(points)) {
    for (const Roof& roof : roofs_) highest_ = std::max(highest_, roof.flops * 1.6);
    for (const Point& point : points_) {
      least_ = std::min(least_, point.intensity / 1.5),
      most_ = std::max(most_, point.intensity * 1.5);
      lowest_ = std::min(lowest_, point.speed / 1.5);
    }
  }

  std::string draw(const std::string& machine) const {
    Values roofs = Values::array(), points = Values::array();
    for (const Roof& roof : roofs_) roofs.push_back(values_of(roof));
    for (size_t i = 0; i < points_.size(); ++i) points.push_back(values_of(i + 1, points_[i]));
    return markup::fill(kRooflineSvg, {{"machine", machine},
                                       {"width", fmt::format("{}", kWidth)},
                                       {"height", fmt::format("{}", height())},
                                       {"left", coordinate(kLeft)},
                                       {"middle", coordinate((kLeft + kRight) / 2)},
                                       {"right", coordinate(kRight)},
                                       {"top", coordinate(kTop)},
                                       {"bottom", coordinate(kBottom)},
                                       {"label_x", coordinate(kLeft - 8)},
                                       {"intensity_title_y", coordinate(kBottom + 34)},
                                       {"speed_title_y", coordinate(kTop - 2)},
                                       {"intensities", intensities()},
                                       {"speeds", speeds()},
                                       {"roofs", std::move(roofs)},
                                       {"points", std::move(points)}});
  }

 private:
  double height() const {
    return std::max(580.0, kTop + kLine * static_cast<double>(points_.size() + 2));
  }
  double x_of(double intensity) const {
    return kLeft + (kRight - kLeft) * std::log(intensity / least_) / std::log(most_ / least_);
  }
  double y_of(double speed) const {
    return kBottom - (kBottom - kTop) * std::log(speed / lowest_) / std::log(highest_ / lowest_);
  }

  // Powers of two on the axis of intensities.
  Values intensities() const {
    Values lines = Values::array();
    for (double i = std::exp2(std::ceil(std::log2(least_))); i <= most_; i *= 2)
      lines.push_back({{"x", coordinate(x_of(i))},
                       {"label_y", coordinate(kBottom + 16)},
                       {"label", i < 1 ? fmt::format("1/{:g}", 1 / i) : fmt::format("{:g}", i)}});
    return lines;
  }

  // Powers of ten on the axis of speeds.
  Values speeds() const {
    Values lines = Values::array();
    for (double s = std::pow(10, std::ceil(std::log10(lowest_))); s <= highest_; s *= 10)
      lines.push_back({{"y", coordinate(y_of(s))},
                       {"label_y", coordinate(y_of(s) + 4)},
                       {"label", fmt::format("{:g}", s * 1e-9)}});
    return lines;
  }

  Values values_of(const Roof& roof) const {
    const double ridge = std::clamp(roof.flops / roof.bandwidth, least_, most_);
    const double start = std::max(least_, lowest_ / roof.bandwidth);
    return {{"start_x", coordinate(x_of(start))},
            {"start_y", coordinate(y_of(start * roof.bandwidth))},
            {"ridge_x", coordinate(x_of(ridge))},
            {"ridge_y", coordinate(y_of(std::min(roof.flops, ridge * roof.bandwidth)))},
            {"roof_y", coordinate(y_of(roof.flops))},
            {"label_x", coordinate(kRight - 4)},
            {"label_y", coordinate(y_of(roof.flops) - 5)},
            {"label",
             fmt::format("{} thread{}: {:.0f} GFLOP/s, {:.1f} GB/s", roof.threads,
                         roof.threads == 1 ? "" : "s", roof.flops * 1e-9, roof.bandwidth * 1e-9)}};
  }

  static const char* colour(const std::string& name) {
    constexpr std::pair<std::string_view, const char*> kColours[] = {
        {"sgemm", "var(--one)"},
        {"conv", "var(--two)"},
        {"depthwise", "var(--two)"},
        {"mnist", "var(--four)"},
        {"transformer", "var(--four)"}};
    for (const auto& [part, name_of_colour] : kColours)
      if (name.starts_with(part)) return name_of_colour;
    return "var(--three)";
  }

  Values values_of(size_t number, const Point& point) const {
    const double x = x_of(point.intensity), y = y_of(point.speed);
    const double at = kTop + kLine * static_cast<double>(number);
    return {{"name", point.name},
            {"number", number},
            {"colour", colour(point.name)},
            {"x", coordinate(x)},
            {"y", coordinate(y)},
            {"number_x", coordinate(x + 6)},
            {"number_y", coordinate(y - 4)},
            {"list_x", coordinate(kListLeft)},
            {"list_name_x", coordinate(kListLeft + 10)},
            {"list_end", coordinate(kWidth - 16)},
            {"list_y", coordinate(at)},
            {"list_dot_y", coordinate(at - 4)},
            {"reached", fmt::format("{:.0f}%", point.reached * 100)},
            {"heading", number == 1}};
  }

  const std::vector<Roof>& roofs_;
  std::vector<Point> points_;
  double least_ = 0.25, most_ = 64, lowest_ = 2e9, highest_ = 1e9;
};

}  // namespace

std::string roofline_svg(const std::string& machine, const std::vector<Roof>& roofs,
                         const std::vector<Result>& results) {
  std::vector<Point> points;
  for (const Result& result : results) {
    if (result.flops <= 0 || result.bytes <= 0 || result.seconds <= 0) continue;
    const auto roof = std::find_if(roofs.begin(), roofs.end(),
                                   [&](const Roof& r) { return r.threads == result.threads; });
    if (roof == roofs.end()) continue;
    const double intensity = result.flops / result.bytes, speed = result.flops / result.seconds;
    const double most = std::min(roof->flops, intensity * roof->bandwidth);
    points.push_back({result.name, intensity, speed, speed / most, result.threads});
  }
  return Plot(roofs, std::move(points)).draw(machine);
}

}  // namespace plugrad::bench
