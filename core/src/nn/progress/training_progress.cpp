#include "plugrad/training_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "nn/progress/plot.h"
#include "nn/progress/progress_line.h"

namespace plugrad::optim {
namespace {

constexpr uint64_t kLeastWriteNs = 500'000'000;  // between the starts of two writes
constexpr uint64_t kWriteShare = 100;            // writing takes at most 1/100 of the time

std::string plot_text(const TrainingRun& run, std::string_view path) {
  return path.ends_with(".svg") ? training_svg(run) : training_html(run);
}

int write_plot(const TrainingRun& run, const std::string& path) {
  const std::string text = plot_text(run, path);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  return replace_file(path, parts, {.sync = !run.is_running});
}

}  // namespace

std::string default_unit(int64_t units_a_step) {
  return units_a_step == 1 ? "steps" : "images";
}

struct Progress::State {
  ProgressOptions options;
  TrainingRun run = {};
  std::optional<ProgressLine> line = {};
  uint64_t start_ns = 0, step_ns = 0;  // of the loop; end of the last step
  uint64_t write_ns = 0;               // earliest time of the next write
  bool has_warned = false;

  void write() {
    if (options.plot.empty()) return;
    const uint64_t begin_ns = monotonic_ns();
    if (const int error = write_plot(run, options.plot); error != 0 && !has_warned) {
      has_warned = true;
      if (line) line->end_line();
      log_warning("[Progress] the plot {} cannot be written: {}; the training goes on",
                  options.plot, file_error_text(error));
    }
    const uint64_t took_ns = monotonic_ns() - begin_ns;
    write_ns = begin_ns + std::max(kLeastWriteNs, kWriteShare * took_ns);
  }

  void draw() {
    if (!line || !line->is_due(run.steps)) return;
    std::string note, curve;
    if (!run.loss.empty()) {
      note = fmt::format("loss {:.4f}", run.loss.last());
      if (line->shows_curve()) curve = loss_curve(run, ProgressLine::kBarWidth);
    }
    line->draw(run.steps, note, curve);
    if (run.steps >= run.total_steps) line.reset();  // ends it before other output
  }
};

Progress::Progress(int64_t steps, ProgressOptions options)
    : state_(new State{.options = std::move(options)}) {
  State& s = *state_;
  const std::string& plot = s.options.plot;
  require(steps >= 0 && s.options.units_a_step >= 1,
          "[Progress] {} steps of {} units; steps must be 0 or more, and units 1 or more", steps,
          s.options.units_a_step);
  require(plot.empty() || plot.ends_with(".svg") || plot.ends_with(".html"),
          "[Progress] the plot \"{}\" must end in .svg or .html", plot);
  s.run.title = s.options.title;
  s.run.unit =
      s.options.unit.empty() ? default_unit(s.options.units_a_step) : std::move(s.options.unit);
  s.run.total_steps = steps;
  if (!plot.empty()) {
    const int error = write_plot(s.run, plot);
    require(error == 0, "[Progress] the plot {} cannot be written: {}", plot,
            file_error_text(error));
  }
  if (steps > 0 && !s.options.quiet)
    s.line.emplace(
        steps, ProgressBar::Options{
                   .label = "train", .unit = s.run.unit, .units_a_step = s.options.units_a_step});
  s.start_ns = s.step_ns = monotonic_ns();
}

Progress::~Progress() {
  State& s = *state_;
  s.line.reset();
  s.run.is_running = false;
  try {
    s.write();
  } catch (const std::exception&) {  // out of memory; the last plot stays
  }
}

void Progress::update(std::optional<double> loss, std::optional<double> accuracy) {
  State& s = *state_;
  TrainingRun& run = s.run;
  const uint64_t now_ns = monotonic_ns();
  const double took = static_cast<double>(std::max<uint64_t>(now_ns - s.step_ns, 1)) * 1e-9;
  s.step_ns = now_ns;
  run.seconds = static_cast<double>(now_ns - s.start_ns) * 1e-9;
  ++run.steps;
  if (loss) run.loss.add(run.steps, run.seconds, *loss);
  if (accuracy) run.accuracy.add(run.steps, run.seconds, *accuracy * 100);
  run.rate.add(run.steps, run.seconds, static_cast<double>(s.options.units_a_step) / took, took);
  s.draw();
  if (now_ns >= s.write_ns) s.write();
}

void Progress::add_test_accuracy(double accuracy) {
  State& s = *state_;
  s.run.test_accuracy.add(s.run.steps, s.run.seconds, accuracy * 100);
}

}  // namespace plugrad::optim
