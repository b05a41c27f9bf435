// Plots of a training: exact points, gaps, extremes, escaping.
#include "nn/progress/plot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/escaping/markup.h"

using namespace plugrad;

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// One step a second, with these losses.
TrainingRun run_of(const std::vector<double>& losses) {
  TrainingRun run{.title = "test", .unit = "images"};
  run.total_steps = static_cast<int64_t>(losses.size());
  for (const double loss : losses) {
    ++run.steps;
    run.seconds += 1;
    run.loss.add(run.steps, run.seconds, loss);
    run.rate.add(run.steps, run.seconds, 512);
  }
  return run;
}

bool has_text(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

}  // namespace

// The area of the curves is x 64 to 452, y 212 (0) to 40 (4).
TEST(Plot, APathHasOnePointForEachStep) {
  const std::string svg = training_svg(run_of({4, 2, 1, 0}));
  EXPECT_TRUE(
      has_text(svg, "<path class=\"line\" d=\"M161.0 40.0L258.0 126.0L355.0 169.0L452.0 212.0\"/>"))
      << svg;
  EXPECT_FALSE(has_text(svg, "class=\"band\""));
  // 512 images per second on an axis from 0 to 600
  EXPECT_TRUE(has_text(svg, "d=\"M161.0 65.2L258.0 65.2L355.0 65.2L452.0 65.2\"/>")) << svg;
  EXPECT_TRUE(has_text(svg, "last 0, lowest 0"));
  EXPECT_TRUE(has_text(svg, "last 512, mean 512"));
  EXPECT_TRUE(has_text(svg, "step, and elapsed time (s)"));
}

TEST(Plot, AxesAreLabelledWithStepsAndTimes) {
  TrainingRun run = run_of({1, 2});
  run.steps = 100;
  run.seconds = 400;
  run.rate.add(100, 400, 512);
  const std::string svg = training_svg(run);
  EXPECT_TRUE(has_text(svg, "text-anchor=\"middle\">100</text>"));
  EXPECT_TRUE(has_text(svg, "text-anchor=\"middle\">6:40</text>"));
  EXPECT_TRUE(has_text(svg, "step, and elapsed time (min:s)"));
  EXPECT_TRUE(has_text(svg, ">images per second</text>"));
}

TEST(Plot, ValuesThatAreNotFiniteAreMarkedGaps) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string svg = training_svg(run_of({4, 0, kNotANumber, infinity, 2, kNotANumber, 0, 4}));
  EXPECT_TRUE(has_text(svg, "d=\"M112.5 40.0L161.0 212.0M306.5 126.0h0M403.5 212.0L452.0 40.0\"/>"))
      << svg;
  EXPECT_TRUE(has_text(svg,
                       "<title>2 of 2 values are NaN or infinite, step 3 to 4</title>"
                       "<rect class=\"gap\" x=\"209.5\" y=\"40\" width=\"48.5\""))
      << svg;
  EXPECT_TRUE(has_text(svg, "<title>1 of 1 values are NaN or infinite, step 6</title>"));
  EXPECT_EQ(count(svg, "class=\"cross\""), 2);
  EXPECT_TRUE(has_text(svg, "3 of 8 values are not finite"));
}

TEST(Plot, ALossThatWasNeverFiniteHasNoLine) {
  const std::string svg = training_svg(run_of({kNotANumber, kNotANumber}));
  EXPECT_EQ(count(svg, "class=\"line\""), 1);  // the rate
  EXPECT_TRUE(has_text(svg, "last nan"));
  EXPECT_EQ(count(svg, "class=\"cross\""), 1);
}

TEST(Plot, DownsamplingShowsTheExtremes) {
  std::vector<double> losses(100'000, 2);
  losses[12'345] = 4;
  losses[67'890] = 0;
  const std::string svg = training_svg(run_of(losses));
  const size_t band = svg.find("class=\"band\"");
  ASSERT_NE(band, svg.npos);
  const std::string path = svg.substr(band, svg.find("/>", band) - band);
  EXPECT_EQ(count(path, " 40.0L"), 1) << path;   // 4
  EXPECT_EQ(count(path, " 212.0L"), 1) << path;  // 0
  EXPECT_LT(svg.size(), 60'000u);
  EXPECT_LT(training_html(run_of(losses)).size(), 120'000u);
}

TEST(Plot, ALossOverManyMagnitudesHasALogarithmicAxis) {
  const std::string svg = training_svg(run_of({1000, 1, 0.1}));
  EXPECT_TRUE(has_text(svg, ">loss, log scale</text>"));
  EXPECT_TRUE(has_text(svg, "M193.3 40.0L322.7 169.0L452.0 212.0\"/>")) << svg;
  EXPECT_FALSE(has_text(training_svg(run_of({1000, 1, 0})), "log scale"));
}

TEST(Plot, AccuraciesOfBatchesAndOfTheTestSetShareAPanel) {
  TrainingRun run = run_of({1, 1});
  run.accuracy.add(1, 1, 0);
  run.accuracy.add(2, 2, 100);
  run.test_accuracy.add(2, 2, 50);
  const std::string svg = training_svg(run);
  EXPECT_TRUE(has_text(svg, "M258.0 212.0L452.0 40.0\"/>")) << svg;
  EXPECT_TRUE(has_text(svg, "<circle class=\"test\" cx=\"452.0\" cy=\"126.0\" r=\"4\"/>")) << svg;
  EXPECT_TRUE(has_text(svg, "last 100, test 50"));
}

TEST(Plot, NamesNeverBecomeMarkup) {
  TrainingRun run = run_of({1});
  run.title = "</title><script>alert(1)</script>\"'&\x01\xff\xEF\xBF\xBE{{unit}}";
  run.unit = "<b onload=x>";
  for (const std::string& text : {training_svg(run), training_html(run)}) {
    EXPECT_FALSE(has_text(text, "alert(1)</script>"));
    EXPECT_FALSE(has_text(text, "<b "));
    EXPECT_TRUE(has_text(
        text, "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;???{{unit}}"))
        << text;
    EXPECT_TRUE(has_text(text, "&lt;b onload=x&gt; per second"));
  }
}

TEST(Plot, APageReloadsItselfOnlyWhileTheTrainingRuns) {
  TrainingRun run = run_of({1, 2});
  run.total_steps = 3;
  std::string page = training_html(run);
  EXPECT_TRUE(has_text(page, "location.reload()"));
  EXPECT_TRUE(has_text(page, "http-equiv=\"refresh\""));
  EXPECT_TRUE(has_text(page, "running: step 2 of 3, 2 s"));
  run.is_running = false;
  page = training_html(run);
  EXPECT_FALSE(has_text(page, "script"));
  EXPECT_FALSE(has_text(page, "http-equiv"));
  EXPECT_TRUE(has_text(page, "stopped: step 2 of 3, 2 s"));
  EXPECT_FALSE(has_text(page, "src="));
  EXPECT_EQ(count(page, "http"), count(page, "http://www.w3.org/2000/svg"));
  EXPECT_TRUE(
      has_text(page, "<tr><td>2</td><td>2</td><td>2</td><td>2</td><td>2</td><td>0</td></tr>"));
}

TEST(Plot, BeforeTheFirstStepThereIsAPage) {
  const TrainingRun run{.title = "test", .unit = "images", .total_steps = 3};
  EXPECT_TRUE(has_text(training_html(run), "waiting for the first step"));
  EXPECT_TRUE(has_text(training_svg(run), "waiting for the first step"));
}

TEST(Plot, ATemplateWithoutItsValueIsAnError) {
  EXPECT_EQ(fill_template("a{{x}}b{{{x}}}c", {{"x", "<"}}), "a&lt;b<c");
  EXPECT_ANY_THROW(fill_template("{{y}}", {{"x", ""}}));
}

TEST(LossCurve, LevelsFollowTheLoss) {
  EXPECT_EQ(loss_curve(run_of({7, 6, 5, 4, 3, 2, 1, 0}), 8), "█▇▆▅▄▃▂▁");
  EXPECT_EQ(loss_curve(run_of({1, 1, 1, 1}), 4), "▁▁▁▁");
  EXPECT_EQ(loss_curve(run_of({100, 10, 1, 0.1}), 4), "█▆▃▁");  // logarithmic
}

TEST(LossCurve, AStepFillsSeveralColumnsOrPartOfOne) {
  EXPECT_EQ(loss_curve(run_of({7, 0}), 6), "███▁▁▁");
  EXPECT_EQ(loss_curve(run_of({7, 7, 0, 0, 7, 7}), 3), "█▁█");
  TrainingRun run = run_of({7, 0});
  run.total_steps = 4;
  EXPECT_EQ(loss_curve(run, 8), "██▁▁    ");
}

TEST(LossCurve, ValuesThatAreNotFiniteAreCrosses) {
  EXPECT_EQ(loss_curve(run_of({7, kNotANumber, 0}), 3), "█×▁");
  EXPECT_EQ(loss_curve(run_of({kNotANumber}), 2), "××");
}
