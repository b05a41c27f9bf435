#include "runtime/checks/live_objects.h"

#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "runtime/checks/layer.h"

namespace plugrad::runtime {
namespace {

constexpr std::size_t kMostGone = 4096;  // handles remembered for messages
constexpr int kMostFrames = 32;
constexpr int kOwnFrames = 4;  // frames of the layer itself

std::recursive_mutex& lock() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}
std::vector<const LiveObjects*>& all() {
  static auto* list = new std::vector<const LiveObjects*>;
  return *list;
}

std::string origin_text(const Origin& made) {
  std::string out;
  if (made.frames.empty()) return out;
  char** symbols = backtrace_symbols(made.frames.data(), static_cast<int>(made.frames.size()));
  for (std::size_t i = 0; symbols && i < made.frames.size(); ++i)
    out += fmt::format("\n    {}", symbols[i]);
  std::free(symbols);
  return out;
}

}  // namespace

uint64_t dtype_bytes(uint32_t dtype) {
  switch (dtype) {
#define PLUGRAD_ROW(NAME, Pascal, number, size, text) \
  case number:                                        \
    return size;
    PGR_DTYPES(PLUGRAD_ROW)
#undef PLUGRAD_ROW
    default:
      return 0;
  }
}

LiveObjects::LiveObjects(std::string device_name, int frames)
    : device_name_(std::move(device_name)), frames_(std::min(frames, kMostFrames)) {
  const Lock guard;
  all().push_back(this);
}
LiveObjects::~LiveObjects() {
  const Lock guard;
  std::erase(all(), this);
}

LiveObjects::Lock::Lock() {
  lock().lock();
}
LiveObjects::Lock::~Lock() {
  lock().unlock();
}

Origin LiveObjects::origin() {
  Origin out{++made_, {}};
  if (frames_ == 0) return out;
  void* frames[kMostFrames + kOwnFrames];
  const int count = backtrace(frames, frames_ + kOwnFrames);
  if (count > kOwnFrames) out.frames.assign(frames + kOwnFrames, frames + count);
  return out;
}

LiveBuffer* LiveObjects::buffer(const pgr_buffer* handle) {
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : &found->second;
}
LiveProgram* LiveObjects::program(const pgr_program* handle) {
  const auto found = programs_.find(handle);
  return found == programs_.end() ? nullptr : &found->second;
}
LiveKernel* LiveObjects::kernel(const pgr_kernel* handle) {
  const auto found = kernels_.find(handle);
  return found == kernels_.end() ? nullptr : &found->second;
}

bool LiveObjects::owns(const void* handle) const {
  return buffers_.contains(static_cast<const pgr_buffer*>(handle)) ||
         programs_.contains(static_cast<const pgr_program*>(handle)) ||
         kernels_.contains(static_cast<const pgr_kernel*>(handle));
}

std::string LiveObjects::why_not(const void* handle, const char* gone_word) const {
  if (!handle) return "is NULL";
  for (const LiveObjects* other : all())
    if (other != this && other->owns(handle))
      return fmt::format("is of {}, not of {}", other->device_name_, device_name_);
  const auto found = gone_.find(handle);
  if (found != gone_.end()) return fmt::format("{} already: {}", gone_word, found->second);
  return "was never made by this device";
}

LiveBuffer& LiveObjects::add_buffer(pgr_buffer* handle, uint64_t size) {
  gone_.erase(handle);
  return buffers_[handle] = {origin(), size, handle, 0, 0, ""};
}
LiveProgram& LiveObjects::add_program(pgr_program* handle, uint64_t binary_bytes) {
  gone_.erase(handle);
  return programs_[handle] = {origin(), binary_bytes, ""};
}
LiveKernel& LiveObjects::add_kernel(pgr_kernel* handle, pgr_program* program) {
  gone_.erase(handle);
  LiveKernel& kernel = kernels_[handle];
  kernel.program = program;
  return kernel;
}

void LiveObjects::note_gone(const void* handle, std::string description) {
  if (gone_.size() >= kMostGone) gone_.clear();
  gone_[handle] = std::move(description);
}

void LiveObjects::remove_buffer(pgr_buffer* handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return;
  note_gone(handle, describe(found->second));
  buffers_.erase(found);
}
void LiveObjects::remove_program(pgr_program* handle) {
  const auto found = programs_.find(handle);
  if (found == programs_.end()) return;
  note_gone(handle, describe(found->second));
  for (const auto& [kernel, facts] : kernels_)
    if (facts.program == handle) note_gone(kernel, "kernel " + facts.name);
  std::erase_if(kernels_, [&](const auto& row) { return row.second.program == handle; });
  programs_.erase(found);
}

std::string LiveObjects::describe(const LiveBuffer& buffer) {
  std::string out = named("buffer", buffer.made.number, buffer.size);
  if (!buffer.last_kernel.empty()) out += ", last used by kernel " + buffer.last_kernel;
  return out + origin_text(buffer.made);
}
std::string LiveObjects::describe(const LiveProgram& program) {
  std::string out = named("program", program.made.number, program.binary_bytes);
  if (!program.kernel_name.empty()) out += " with kernel " + program.kernel_name;
  return out + origin_text(program.made);
}

std::vector<std::string> LiveObjects::leaks() const {
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const auto& [handle, buffer] : buffers_)
    found.emplace_back(
        buffer.made.number,
        (buffer.root == handle ? "alloc made " : "sub_buffer made ") + describe(buffer));
  for (const auto& [handle, program] : programs_)
    found.emplace_back(program.made.number, "load made " + describe(program));
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (auto& [number, text] : found) out.push_back(std::move(text));
  return out;
}

}  // namespace plugrad::runtime
