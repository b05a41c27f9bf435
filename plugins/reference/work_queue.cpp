#include "work_queue.h"

#include <algorithm>
#include <cstring>

namespace plugrad::reference {

WorkQueue::WorkQueue() : thread_([this] { run_all(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkQueue::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void WorkQueue::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_.empty(); });
  if (!failure_) return;
  const sdk::StatusError failure = *failure_;
  failure_.reset();
  throw failure;
}

void WorkQueue::wait_for(const void* held) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::none_of(pending_.begin(), pending_.end(), [&](const Work& work) {
      return std::any_of(work.holds.begin(), work.holds.end(),
                         [&](const auto& hold) { return hold.get() == held; });
    });
  });
}

std::optional<sdk::StatusError> WorkQueue::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void WorkQueue::run_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !pending_.empty(); });
    if (pending_.empty()) return;
    Work& work = pending_.front();  // references to a deque's elements stay valid
    lock.unlock();
    std::optional<sdk::StatusError> failure;
    try {
      work.run();
    } catch (const sdk::StatusError& e) {
      failure = e;
    } catch (const std::exception& e) {
      failure = sdk::StatusError(PGR_STATUS_INTERNAL, e.what());
    }
    lock.lock();
    if (!failure_) failure_ = std::move(failure);
    pending_.pop_front();  // also frees memory that has no other owner
    changed_.notify_all();
  }
}

WorkQueue* work_queue_of(pgr_device& device, pgr_queue* queue) {
  return queue ? queue->work.get() : device.own_queue.get();
}

void submit(pgr_device& device, pgr_queue* queue, Work work) {
  if (WorkQueue* worker = work_queue_of(device, queue))
    worker->submit(std::move(work));
  else
    work.run();
}

namespace {

std::vector<std::shared_ptr<WorkQueue>> queues_of(pgr_device& device) {
  const std::lock_guard lock(device.queues_mutex);
  return device.queues;
}

}  // namespace

void wait_for(pgr_device& device, const void* held) {
  for (const auto& queue : queues_of(device)) queue->wait_for(held);
}

void finish_all(pgr_device& device) {
  for (const auto& queue : queues_of(device)) queue->finish();
}

namespace {

// Calls `use` with the launch in the interpreter's form.
template <typename Use>
void with_launch(const LaunchWork& work, const Use& use) {
  std::vector<sdk::InterpreterBuffer> buffers;
  buffers.reserve(work.buffers.size());
  for (const sdk::HostBuffer& buffer : work.buffers) buffers.push_back({buffer.data, buffer.size});
  use(sdk::InterpreterLaunch{.buffers = buffers,
                             .scalars = work.scalars,
                             .group_count = work.group_count,
                             .local_size = work.local_size});
}

}  // namespace

namespace {

void check_limits(const pgr_device& device, const pgr_launch_desc& desc) {
  const uint64_t most = most_items(device.claims);
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t count = desc.group_count[axis], size = desc.local_size[axis];
    sdk::require(count <= kMostGroups, PGR_STATUS_LIMIT_EXCEEDED,
                 std::to_string(count) + " groups along axis " + std::to_string(axis) +
                     "; the device takes " + std::to_string(kMostGroups));
    if (size <= most) items *= size;
    sdk::require(size <= most && items <= most, PGR_STATUS_LIMIT_EXCEEDED,
                 "local size " + std::to_string(size) + " along axis " + std::to_string(axis) +
                     "; the device takes groups of " + std::to_string(most) + " work-items");
  }
}

}  // namespace

LaunchWork read_launch(const pgr_device& device, const pgr_kernel* kernel,
                       const pgr_launch_desc* desc) {
  sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
  const pgr_launch_desc own = sdk::read(desc);
  check_limits(device, own);
  LaunchWork work;
  work.kernel = kernel->interpreter;
  for (uint32_t i = 0; i < own.buffer_count; ++i) {
    sdk::require(own.buffers && own.buffers[i], PGR_STATUS_INVALID_ARGUMENT,
                 "buffer " + std::to_string(i) + " is NULL");
    work.buffers.push_back(*own.buffers[i]);
  }
  sdk::require(own.scalars || own.scalar_count == 0, PGR_STATUS_INVALID_ARGUMENT,
               "scalars is NULL");
  work.scalars.assign(own.scalars, own.scalars + own.scalar_count);
  for (int axis = 0; axis < 3; ++axis) {
    work.group_count[axis] = own.group_count[axis];
    work.local_size[axis] = own.local_size[axis];
  }
  check_launch(work);
  return work;
}

void check_launch(const LaunchWork& work) {
  with_launch(work, [&](const sdk::InterpreterLaunch& launch) { work.kernel->check(launch); });
}

Work make_work(pgr_device& device, LaunchWork launch, uint64_t* out_time_ns) {
  Work work;
  for (const sdk::HostBuffer& buffer : launch.buffers) work.holds.push_back(buffer.memory);
  work.holds.push_back(launch.kernel);
  work.run = [&device, launch = std::move(launch), out_time_ns] {
    const uint64_t begin = device_now_ns(device);
    with_launch(launch, [&](const sdk::InterpreterLaunch& own) { launch.kernel->run(own); });
    if (out_time_ns) *out_time_ns = device_now_ns(device) - begin;
    ++device.kernels_launched;
  };
  return work;
}

void check_copy(const CopyWork& copy) {
  sdk::require_range(&copy.dst, copy.dst_offset, copy.size, "dst");
  sdk::require_range(&copy.src, copy.src_offset, copy.size, "src");
}

Work make_work(pgr_device& device, CopyWork copy) {
  check_copy(copy);
  Work work;
  work.holds = {copy.dst.memory, copy.src.memory};
  work.run = [&device, copy = std::move(copy)] {
    if (copy.size > 0)
      std::memcpy(copy.dst.data + copy.dst_offset, copy.src.data + copy.src_offset, copy.size);
    device.bytes_copied += copy.size;
  };
  return work;
}

}  // namespace plugrad::reference
