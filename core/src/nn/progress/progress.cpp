// Draws progress bars.
#include "plugrad/progress.h"

#include <utility>

#include "nn/progress/progress_line.h"

namespace plugrad {

struct ProgressBar::State {
  ProgressLine line;
};

ProgressBar::ProgressBar(int64_t total, Options options)
    : state_(new State{.line = ProgressLine(total, std::move(options))}) {}

ProgressBar::~ProgressBar() = default;

void ProgressBar::update(int64_t done, std::string_view note) {
  if (state_->line.is_due(done)) state_->line.draw(done, note);
}

}  // namespace plugrad
