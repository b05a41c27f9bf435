#include "recent_programs.h"

#include "api.h"

namespace plugrad::opencl {
namespace {

// A thread pool may compile this many programs before the first of them is loaded.
constexpr size_t kMostKept = 64;

}  // namespace

cl_program RecentPrograms::find(const std::string& source, const std::string& options) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.source == source && entry.options == options) {
      api().clRetainProgram(entry.program);
      return entry.program;
    }
  return nullptr;
}

void RecentPrograms::keep(const std::string& source, const std::string& options,
                          cl_program program) {
  const std::lock_guard lock(mutex_);
  api().clRetainProgram(program);
  entries_.push_back({source, options, program});
  if (entries_.size() <= kMostKept) return;
  api().clReleaseProgram(entries_.front().program);
  entries_.pop_front();
}

void RecentPrograms::clear() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) api().clReleaseProgram(entry.program);
  entries_.clear();
}

}  // namespace plugrad::opencl
