#include "runtime/checks/record/live_recordings.h"

#include <vector>

#include "runtime/queue/exit_wait.h"

namespace plugrad::runtime {
namespace {

struct Live {
  std::mutex mutex;
  std::vector<std::weak_ptr<RecordingWriter>> recordings;
};
Live& live() {
  static auto* const all = new Live;  // never destroyed
  return *all;
}

void finish_all() {
  const std::lock_guard lock(live().mutex);
  for (const auto& recording : live().recordings)
    if (const auto open = recording.lock()) open->finish();
}

}  // namespace

void finish_at_exit(std::shared_ptr<RecordingWriter> recording) {
  bool is_first = false;
  {
    const std::lock_guard lock(live().mutex);
    is_first = live().recordings.empty();
    live().recordings.push_back(recording);
  }
  if (is_first) before_devices_end(finish_all);
}

}  // namespace plugrad::runtime
