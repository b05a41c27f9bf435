#include "bench/roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace plugrad::bench {
namespace {

// The page in SVG units; the plot is left of the list of points.
constexpr double kLeft = 64, kRight = 640, kTop = 56, kBottom = 536, kListLeft = 672, kWidth = 1000;
constexpr double kLine = 15;  // height of a line of the list

constexpr const char* kStyle = R"(<style>
  svg { --ground: #ffffff; --ink: #1f2328; --faint: #d0d7de; --one: #0969da; --two: #bf3989; --three: #1a7f37; --four: #9a6700; }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --ink: #e6edf3; --faint: #30363d; --one: #58a6ff; --two: #f778ba; --three: #3fb950; --four: #d29922; }
  }
  text { font: 11px system-ui, sans-serif; fill: var(--ink); }
  .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: var(--faint); stroke-width: 1; }
  .roof { stroke: var(--ink); stroke-width: 1.6; fill: none; }
  .point { stroke: var(--ground); stroke-width: 1; }
  .number { font-size: 9px; }
</style>
)";

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

  std::string draw(const std::string& machine) {
    out_ = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">)"
        "\n",
        kWidth, height());
    out_ += kStyle;
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"var(--ground)\"/>\n";
    text(kLeft, 26, "Roofline: " + machine, "title");
    text(kLeft, 44,
         "multiply-adds and reading as fast as this machine does them; each kernel by the bytes it "
         "must move");
    draw_grid();
    for (const Roof& roof : roofs_) draw_roof(roof);
    for (size_t i = 0; i < points_.size(); ++i) draw_point(i + 1, points_[i]);
    return out_ + "</svg>\n";
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
  void text(double x, double y, const std::string& words, const char* style = "",
            const char* anchor = "start") {
    out_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>)"
                        "\n",
                        x, y, style, anchor, words);
  }
  void line(double x0, double y0, double x1, double y1, const char* style) {
    out_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)"
                        "\n",
                        x0, y0, x1, y1, style);
  }

  void draw_grid() {
    for (double i = std::exp2(std::ceil(std::log2(least_))); i <= most_; i *= 2) {
      line(x_of(i), kTop, x_of(i), kBottom, "grid");
      text(x_of(i), kBottom + 16, i < 1 ? fmt::format("1/{:g}", 1 / i) : fmt::format("{:g}", i), "",
           "middle");
    }
    for (double s = std::pow(10, std::ceil(std::log10(lowest_))); s <= highest_; s *= 10) {
      line(kLeft, y_of(s), kRight, y_of(s), "grid");
      text(kLeft - 8, y_of(s) + 4, fmt::format("{:g}", s * 1e-9), "", "end");
    }
    text((kLeft + kRight) / 2, kBottom + 34, "FLOP a byte", "", "middle");
    text(kLeft - 8, kTop - 2, "GFLOP/s", "", "end");
  }

  void draw_roof(const Roof& roof) {
    const double ridge = std::clamp(roof.flops / roof.bandwidth, least_, most_);
    const double start = std::max(least_, lowest_ / roof.bandwidth);
    out_ += fmt::format(R"(<path class="roof" d="M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}"/>)"
                        "\n",
                        x_of(start), y_of(start * roof.bandwidth), x_of(ridge),
                        y_of(std::min(roof.flops, ridge * roof.bandwidth)), x_of(most_),
                        y_of(roof.flops));
    text(kRight - 4, y_of(roof.flops) - 5,
         fmt::format("{} thread{}: {:.0f} GFLOP/s, {:.1f} GB/s", roof.threads,
                     roof.threads == 1 ? "" : "s", roof.flops * 1e-9, roof.bandwidth * 1e-9),
         "", "end");
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

  void draw_point(size_t number, const Point& point) {
    const double x = x_of(point.intensity), y = y_of(point.speed);
    const char* fill = colour(point.name);
    out_ += fmt::format(
        R"(<circle class="point" cx="{:.1f}" cy="{:.1f}" r="4.5" fill="{}"><title>{}</title></circle>)"
        "\n",
        x, y, fill, point.name);
    text(x + 6, y - 4, fmt::format("{}", number), "number");
    const double at = kTop + kLine * static_cast<double>(number);
    out_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"/>)"
                        "\n",
                        kListLeft, at - 4, fill);
    text(kListLeft + 10, at, fmt::format("{}  {}", number, point.name));
    text(kWidth - 16, at, fmt::format("{:.0f}%", point.reached * 100), "", "end");
    if (number == 1) text(kWidth - 16, kTop, "of its roof", "", "end");
  }

  const std::vector<Roof>& roofs_;
  std::vector<Point> points_;
  double least_ = 0.25, most_ = 64, lowest_ = 2e9, highest_ = 1e9;
  std::string out_;
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
