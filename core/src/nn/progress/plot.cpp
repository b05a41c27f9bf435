#include "nn/progress/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "base/escaping/markup.h"
#include "nn/progress/axis.h"
#include "training_templates.h"

namespace plugrad {
namespace {

// The area of the curves in a panel of 480 x 270, as in panel.svg.
constexpr double kLeft = 64, kRight = 452, kTop = 40, kBottom = 212;
constexpr int kPanelHeight = 270, kHeadingHeight = 60;
constexpr size_t kTableRows = 64;
// A loss that falls by more than this factor is drawn on a logarithmic axis.
constexpr double kLeastOfLog = 1e-290;  // powers of ten below it are no normal numbers

enum class Scale { FromZero, Linear, LogIfWide };

struct Panel {
  const char* id;
  std::string title;
  Scale scale;
  const Series* line;
  const Series* dots = nullptr;  // of another measurement, e.g. on the test set
  const char* dots_name = "";
};

struct PlotAxes {
  Axis x, y;
  double column(double step) const { return kLeft + (kRight - kLeft) * x.position(step); }
  double row(double value) const { return kBottom - (kBottom - kTop) * y.position(value); }
};

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

bool is_log_better(const Bucket& range) {
  return range.lowest > kLeastOfLog && range.highest / kLogFactor > range.lowest;
}

// All values of the panel in one bucket.
Bucket range_of(const Panel& panel) {
  Bucket range;
  for (const Series* series : {panel.line, panel.dots})
    if (series && !series->empty()) range.append(series->total());
  return range;
}

PlotAxes axes_of(const Panel& panel, const TrainingRun& run) {
  PlotAxes axes{.x = step_axis(static_cast<double>(run.steps)), .y = {}};
  const Bucket range = range_of(panel);
  if (!range.has_value()) return axes;
  const bool is_log = panel.scale == Scale::LogIfWide && is_log_better(range);
  const double low = panel.scale == Scale::FromZero ? 0 : range.lowest;
  axes.y = is_log ? log_axis(low, range.highest) : linear_axis(low, range.highest);
  return axes;
}

// Interpolates between the steps whose time is known.
double seconds_at(const TrainingRun& run, double step) {
  double before_step = 0, before_seconds = 0;
  for (const Bucket& bucket : run.rate.buckets()) {
    const auto last = static_cast<double>(bucket.last_step);
    if (last >= step)
      return before_seconds + (bucket.last_seconds - before_seconds) * (step - before_step) /
                                  std::max(last - before_step, 1.0);
    before_step = last;
    before_seconds = bucket.last_seconds;
  }
  return before_seconds;
}

bool is_short(const TrainingRun& run) {
  return run.seconds < 60;
}

std::string time_text(const TrainingRun& run, double seconds) {
  return is_short(run) ? fmt::format("{:.3g}", seconds) : elapsed_text(seconds);
}

std::string draw_axes(const PlotAxes& axes, const TrainingRun& run) {
  std::string out = "<path class=\"grid\" d=\"";
  for (const double tick : axes.y.ticks)
    append(out, "M{} {:.1f}H{}", kLeft, axes.row(tick), kRight);
  append(out, "M{0} {1}V{2}H{3}\"/>\n", kLeft, kTop, kBottom, kRight);
  for (const double tick : axes.y.ticks)
    append(out, "<text class=\"name\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
           kLeft - 8, axes.row(tick) + 5, number_text(tick));
  for (const double tick : axes.x.ticks) {
    const double column = axes.column(tick);
    append(out, "<text class=\"name\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
           column, kBottom + 18, number_text(tick));
    append(out, "<text class=\"time\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
           column, kBottom + 34, time_text(run, seconds_at(run, tick)));
  }
  return out;
}

// Runs of buckets without a missing value; a bucket with some is a run of its own.
std::vector<std::span<const Bucket>> segments_of(std::span<const Bucket> buckets) {
  std::vector<std::span<const Bucket>> segments;
  for (size_t i = 0; i < buckets.size();) {
    size_t end = i + 1;
    if (buckets[i].missing == 0)
      while (end < buckets.size() && buckets[end].missing == 0) ++end;
    if (buckets[i].has_value()) segments.push_back(buckets.subspan(i, end - i));
    i = end;
  }
  return segments;
}

// The means as a line; the lowest and the highest values as the borders of an area around it.
std::string draw_line(const Series& series, const PlotAxes& axes) {
  const auto segments = segments_of(series.buckets());
  std::string line, band;
  for (const std::span<const Bucket> segment : segments) {
    char command = 'M';
    for (const Bucket& bucket : segment) {
      append(line, "{}{:.1f} {:.1f}", command, axes.column(bucket.step()), axes.row(bucket.mean));
      command = 'L';
    }
    if (segment.size() == 1) line += "h0";  // a dot
    if (series.points_a_bucket() == 1) continue;
    command = 'M';
    for (const Bucket& bucket : segment) {
      append(band, "{}{:.1f} {:.1f}", command, axes.column(bucket.step()),
             axes.row(bucket.highest));
      command = 'L';
    }
    for (size_t i = segment.size(); i-- > 0;)
      append(band, "L{:.1f} {:.1f}", axes.column(segment[i].step()), axes.row(segment[i].lowest));
    band += 'Z';
  }
  std::string out;
  if (!band.empty()) append(out, "<path class=\"band\" d=\"{}\"/>\n", band);
  if (!line.empty()) append(out, "<path class=\"line\" d=\"{}\"/>\n", line);
  return out;
}

std::string draw_dots(const Series& series, const PlotAxes& axes) {
  std::string out;
  for (const Bucket& bucket : series.buckets())
    if (bucket.has_value())
      append(out, "<circle class=\"test\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n",
             axes.column(bucket.step()), axes.row(bucket.mean));
  return out;
}

std::string steps_text(const Bucket& bucket) {
  return bucket.first_step == bucket.last_step
             ? fmt::format("{}", bucket.first_step)
             : fmt::format("{} to {}", bucket.first_step, bucket.last_step);
}

// A marked area over neighbours with missing values.
std::string draw_gaps(const Series& series, const PlotAxes& axes) {
  constexpr double kLeastWidth = 3;
  std::string out;
  const std::span<const Bucket> buckets = series.buckets();
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].missing == 0) continue;
    Bucket gap = buckets[i];
    while (i + 1 < buckets.size() && buckets[i + 1].missing > 0) gap.append(buckets[++i]);
    const double middle = axes.column(gap.step());
    const double width =
        std::max(kLeastWidth, axes.column(static_cast<double>(gap.last_step)) -
                                  axes.column(static_cast<double>(gap.first_step)));
    append(out, "<g><title>{} of {} values are NaN or infinite, step {}</title>", gap.missing,
           gap.points, steps_text(gap));
    append(out, "<rect class=\"gap\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>",
           middle - width / 2, kTop, width, kBottom - kTop);
    append(out, "<path class=\"cross\" d=\"M{:.1f} {}l8 8m-8 0l8 -8\"/></g>\n", middle - 4,
           kTop - 4);
  }
  return out;
}

std::string summary_of(const Panel& panel) {
  std::string out;
  if (!panel.line->empty()) {
    out = "last " + number_text(panel.line->last());
    const Bucket all = panel.line->total();
    if (panel.scale == Scale::LogIfWide && all.has_value())
      out += ", lowest " + number_text(all.lowest);
    if (panel.scale == Scale::FromZero && all.has_value()) out += ", mean " + number_text(all.mean);
  }
  if (panel.dots && !panel.dots->empty())
    append(out, "{}{} {}", out.empty() ? "" : ", ", panel.dots_name,
           number_text(panel.dots->last()));
  return out;
}

std::string description_of(const Panel& panel) {
  std::string out = summary_of(panel);
  const Bucket all = range_of(panel);
  if (all.has_value())
    append(out, "; from {} to {}, mean {}", number_text(all.lowest), number_text(all.highest),
           number_text(all.mean));
  if (all.missing > 0) append(out, "; {} of {} values are not finite", all.missing, all.points);
  return out + "; steps " + steps_text(all);
}

std::string draw_panel(const Panel& panel, const TrainingRun& run, std::string_view place) {
  const PlotAxes axes = axes_of(panel, run);
  std::string curves = draw_gaps(*panel.line, axes) + draw_line(*panel.line, axes);
  if (panel.dots) curves += draw_dots(*panel.dots, axes);
  const bool has_dots = panel.dots && !panel.dots->empty();
  return fill_template(kPanelSvg, {{"place", place},
                                   {"id", panel.id},
                                   {"title", panel.title + (axes.y.is_log ? ", log scale" : "")},
                                   {"description", description_of(panel)},
                                   {"summary", summary_of(panel)},
                                   {"sign", has_dots ? " \u25cf" : ""},
                                   {"clock", is_short(run) ? "s" : "min:s"},
                                   {"axes", draw_axes(axes, run)},
                                   {"curves", curves}});
}

std::vector<Panel> panels_of(const TrainingRun& run) {
  std::vector<Panel> panels;
  if (!run.loss.empty())
    panels.push_back({.id = "loss", .title = "loss", .scale = Scale::LogIfWide, .line = &run.loss});
  if (!run.accuracy.empty() || !run.test_accuracy.empty())
    panels.push_back({.id = "accuracy",
                      .title = "accuracy (%)",
                      .scale = Scale::Linear,
                      .line = &run.accuracy,
                      .dots = &run.test_accuracy,
                      .dots_name = "test"});
  if (!run.rate.empty())
    panels.push_back({.id = "rate",
                      .title = run.unit + " per second",
                      .scale = Scale::FromZero,
                      .line = &run.rate});
  return panels;
}

std::string table_rows(const Series& series, const TrainingRun& run, const std::string& label) {
  std::string out;
  for (const Bucket& bucket : merge_buckets(series.buckets(), kTableRows)) {
    const auto cell = [&](double value) {
      return bucket.has_value() ? number_text(value) : std::string("\u2013");
    };
    append(out, "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
           label + steps_text(bucket), time_text(run, bucket.last_seconds), cell(bucket.mean),
           cell(bucket.lowest), cell(bucket.highest), bucket.missing);
  }
  return out;
}

std::string figures_of(const TrainingRun& run) {
  std::string out;
  for (const Panel& panel : panels_of(run)) {
    std::string rows = table_rows(*panel.line, run, "");
    if (panel.dots) rows += table_rows(*panel.dots, run, std::string(panel.dots_name) + ", ");
    out += fill_template(kFigureHtml, {{"panel", draw_panel(panel, run, "")},
                                       {"title", panel.title},
                                       {"clock", is_short(run) ? "s" : "min:s"},
                                       {"rows", rows}});
  }
  return out;
}

}  // namespace

std::string status_text(const TrainingRun& run) {
  if (run.is_running && run.steps == 0) return "waiting for the first step";
  const std::string of = run.total_steps > 0 ? fmt::format(" of {}", run.total_steps) : "";
  const char* state = run.is_running                ? "running"
                      : run.steps < run.total_steps ? "stopped"
                                                    : "finished";
  return fmt::format("{}: step {}{}, {} {}", state, run.steps, of, time_text(run, run.seconds),
                     is_short(run) ? "s" : "min");
}

std::string training_svg(const TrainingRun& run) {
  std::string panels;
  int height = kHeadingHeight;
  for (const Panel& panel : panels_of(run)) {
    panels += draw_panel(
        panel, run, fmt::format("y=\"{}\" width=\"480\" height=\"{}\" ", height, kPanelHeight));
    height += kPanelHeight;
  }
  return fill_template(kPlotSvg, {{"height", std::to_string(height)},
                                  {"title", run.title},
                                  {"status", status_text(run)},
                                  {"style", kPlotCss},
                                  {"panels", panels}});
}

std::string training_html(const TrainingRun& run) {
  return fill_template(kPageHtml, {{"title", run.title},
                                   {"status", status_text(run)},
                                   {"reload", run.is_running ? kReloadHtml : ""},
                                   {"pause", run.is_running ? kPauseHtml : ""},
                                   {"page_style", kPageCss},
                                   {"plot_style", kPlotCss},
                                   {"panels", figures_of(run)}});
}

}  // namespace plugrad
