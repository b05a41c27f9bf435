// Progress bars on stderr, and plots of a training. Python's lock, which is kept, guards them.
#include "plugrad/progress.h"

#include <nanobind/stl/filesystem.h>

#include <filesystem>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "plugrad/training_progress.h"

namespace plugrad::python {

namespace {

/// A bar or a plot that ends with close() or its `with` statement.
template <class Shown>
class Closable {
 public:
  template <class... Arguments>
  explicit Closable(Arguments&&... arguments)
      : shown_(std::make_unique<Shown>(std::forward<Arguments>(arguments)...)) {}
  Shown& get() {
    if (!shown_) throw nb::value_error("this progress is closed");
    return *shown_;
  }
  void close() { shown_.reset(); }

 private:
  std::unique_ptr<Shown> shown_;
};

template <class Shown>
void bind_closing(nb::class_<Closable<Shown>>& made) {
  made.def("close", &Closable<Shown>::close, "Ends the line.");
  made.def(
      "__enter__", [](nb::handle self) { return self; }, nb::sig("def __enter__(self) -> Self"));
  made.def(
      "__exit__", [](Closable<Shown>& self, const nb::args&) { self.close(); },
      nb::sig("def __exit__(self, *error: object) -> None"));
}

void bind_bar(nb::module_& module) {
  using Bar = Closable<ProgressBar>;
  nb::class_<Bar> made(module, "ProgressBar", doc("ProgressBar"));
  made.def(
      "__init__",
      [](Bar* self, int64_t total, std::string label, std::string unit, int64_t units_a_step,
         bool quiet) {
        new (self) Bar(
            total, ProgressBar::Options{std::move(label), std::move(unit), units_a_step, quiet});
      },
      "total"_a, "label"_a = "", "unit"_a = "", "units_a_step"_a = 1, "quiet"_a = false,
      "A bar of `total` steps.\nunit: of the rate, e.g. \"images\"; empty: no rate");
  made.def(
      "update",
      [](Bar& self, int64_t done, std::string_view note) { self.get().update(done, note); },
      "done"_a, "note"_a = "", doc("ProgressBar::update"));
  bind_closing(made);
}

/// optim.Progress, whose line is a bar in the page of a notebook.
class ShownProgress {
 public:
  ShownProgress(int64_t steps, optim::ProgressOptions options)
      : bar_(bar_in_page(steps, options)), progress_(steps, without_line(std::move(options))) {}
  ~ShownProgress() {
    if (bar_.is_none()) return;
    try {
      bar_.attr("close")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("plugrad.optim.Progress.close");
    }
  }
  ShownProgress(const ShownProgress&) = delete;
  ShownProgress& operator=(const ShownProgress&) = delete;

  void update(std::optional<double> loss, std::optional<double> accuracy) {
    progress_.update(loss, accuracy);
    if (bar_.is_none()) return;
    ++steps_;
    bar_.attr("update")(steps_, loss ? nb::str("loss {:.4f}").attr("format")(*loss) : nb::str(""));
  }
  void add_test_accuracy(double accuracy) { progress_.add_test_accuracy(accuracy); }

 private:
  static nb::object bar_in_page(int64_t steps, const optim::ProgressOptions& options) {
    const int64_t units = options.units_a_step;
    if (steps <= 0 || units <= 0 || options.quiet) return nb::none();
    const std::string unit = options.unit.empty() ? optim::default_unit(units) : options.unit;
    return nb::module_::import_("plugrad._progress")
        .attr("notebook_bar")(steps, options.title, unit, units);
  }
  optim::ProgressOptions without_line(optim::ProgressOptions options) const {
    options.quiet |= !bar_.is_none();
    return options;
  }

  nb::object bar_;  // None elsewhere
  optim::Progress progress_;
  int64_t steps_ = 0;  // done
};

void bind_training_progress(nb::module_& module) {
  using Progress = Closable<ShownProgress>;
  nb::class_<Progress> made(module, "Progress", doc("Progress"));
  made.def(
      "__init__",
      [](Progress* self, int64_t steps, std::string title, int64_t units_a_step, std::string unit,
         const std::optional<std::filesystem::path>& plot, bool quiet) {
        new (self)
            Progress(steps, optim::ProgressOptions{std::move(title), units_a_step, std::move(unit),
                                                   plot ? plot->string() : std::string(), quiet});
      },
      "steps"_a, "title"_a = "training", "units_a_step"_a = 1, "unit"_a = "", "plot"_a = nb::none(),
      "quiet"_a = false,
      nb::sig(
          "def __init__(self, steps: int, title: str = 'training', units_a_step: int = 1, unit: "
          "str = '', plot: str | os.PathLike[str] | None = None, quiet: bool = False) -> None"),
      "Starts the clock.\nsteps: number of steps to be done; 0: unknown, no line is drawn\n"
      "units_a_step: e.g. the images of a batch\n"
      "unit: of the rate; empty: \"images\", or \"steps\" for one unit a step\n"
      "plot: a path that ends in .html (a page that reloads itself during the training) or .svg\n"
      "quiet: no line on stderr, and no bar in the page of a notebook\n"
      "Errors: ValueError for negative numbers, another kind of file, and a file that cannot be "
      "written.");
  made.def(
      "update",
      [](Progress& self, std::optional<double> loss, std::optional<double> accuracy) {
        self.get().update(loss, accuracy);
      },
      "loss"_a = nb::none(), "accuracy"_a = nb::none(), doc("Progress::update"));
  made.def(
      "add_test_accuracy",
      [](Progress& self, double accuracy) { self.get().add_test_accuracy(accuracy); }, "accuracy"_a,
      doc("Progress::add_test_accuracy"));
  bind_closing(made);
}

}  // namespace

void bind_progress(nb::module_& module) {
  bind_bar(module);
  nb::module_ optim = nb::borrow<nb::module_>(module.attr("_optim"));
  bind_training_progress(optim);
}

}  // namespace plugrad::python
