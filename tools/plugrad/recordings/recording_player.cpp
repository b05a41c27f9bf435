#include "recordings/recording_player.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "runtime/checks/compare/launch_data.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"
#include "runtime/registry.h"

namespace plugrad::tools {

using runtime::Buffer;
using runtime::KernelLines;
using runtime::Launch;
using runtime::RecordedCall;

namespace {

uint64_t number(const RecordedCall& call, const char* key) {
  const auto found = call.facts.find(key);
  require(found != call.facts.end() && found->is_number_unsigned(),
          "[replay] a call {} has no number {}", call.facts["call"].get<std::string>(), key);
  return found->get<uint64_t>();
}

template <class T>
std::vector<T> numbers(const RecordedCall& call, const char* key) {
  std::vector<T> out;
  const auto found = call.facts.find(key);
  require(found != call.facts.end() && found->is_array(), "[replay] a call {} has no list {}",
          call.facts["call"].get<std::string>(), key);
  for (const auto& item : *found) {
    require(item.is_number_unsigned(), "[replay] the list {} has no numbers", key);
    out.push_back(item.get<T>());
  }
  return out;
}

std::string text(const RecordedCall& call, const char* key) {
  const auto found = call.facts.find(key);
  return found != call.facts.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Buffer& RecordingPlayer::buffer(const RecordedCall& call, const char* key) {
  const auto found = buffers_.find(number(call, key));
  require(found != buffers_.end(), "[replay] call {} uses buffer {}, which does not exist", calls_,
          number(call, key));
  return *found->second;
}

void RecordingPlayer::make_kernel(const RecordedCall& call) {
  PlayedKernel kernel{text(call, "name"), text(call, "ast"), {}, nullptr};
  auto lines = runtime::read_kernel_lines(call.data);
  require(lines.has_value(),
          "[replay] kernel {} was made of source text: it cannot run without its program",
          kernel.name);
  kernel.lines = std::move(*lines);
  std::string lacks = left_out_.contains(number(call, "kernel")) ? "the kernel" : "";
  if (lacks.empty() && device_.plugin_name() != "REFERENCE")
    lacks = runtime::lacking(kernel.lines, device_.caps(), device_.caps());
  if (lacks.empty()) {
    const std::vector<std::byte> block(call.data.begin(), call.data.end());  // aligned
    const bool contract = (kernel.lines.flags & PGR_IR_FLAG_CONTRACT) != 0;
    kernel.kernel = device_.compile(block, kernel.name, {.contract = contract});
  } else {
    moved_[kernel.name] = lacks;
  }
  kernels_[number(call, "kernel")] = std::move(kernel);
}

void RecordingPlayer::launch_elsewhere(PlayedKernel& kernel, const std::vector<Buffer*>& buffers,
                                       const Launch& launch) {
  runtime::Device& other = runtime::Registry::instance().find_device("REFERENCE");
  runtime::LaunchData data;
  data.scalars.assign(launch.scalars.begin(), launch.scalars.end());
  data.group_count = launch.group_count;
  data.local_size = launch.local_size;
  std::vector<Buffer*> distinct;
  for (Buffer* one : buffers) {
    const auto at = std::ranges::find(distinct, one);
    data.region_of.push_back(static_cast<std::size_t>(at - distinct.begin()));
    if (at != distinct.end()) continue;
    distinct.push_back(one);
    data.regions.emplace_back(one->size_bytes());
    one->copy_out(data.regions.back().data(), one->size_bytes());
  }
  const runtime::HostMemory after = runtime::run_on(other, kernel.lines, data, false);
  for (std::size_t i = 0; i < distinct.size(); ++i)
    distinct[i]->copy_in(after[i].data(), after[i].size());
}

void RecordingPlayer::launch(const RecordedCall& call) {
  const auto found = kernels_.find(number(call, "kernel"));
  require(found != kernels_.end(), "[replay] call {} launches kernel {}, which does not exist",
          calls_, number(call, "kernel"));
  std::vector<Buffer*> buffers;
  const std::vector<uint32_t> params = runtime::LaunchData::buffer_params(found->second.lines);
  for (const uint64_t one : numbers<uint64_t>(call, "buffers")) {
    const auto at = buffers_.find(one);
    require(at != buffers_.end(), "[replay] call {} uses buffer {}, which does not exist", calls_,
            one);
    if (buffers.size() < params.size())
      dtypes_[one] = found->second.lines.params[params[buffers.size()]].dtype;
    buffers.push_back(at->second.get());
  }
  require(buffers.size() == params.size(),
          "[replay] call {}: {} buffers for kernel {}, which has {}", calls_, buffers.size(),
          found->second.name, params.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const pgr_ir_param& param = found->second.lines.params[params[i]];
    require(buffers[i]->size_bytes() / std::max<uint64_t>(1, runtime::dtype_bytes(param.dtype)) >=
                param.elem_count,
            "[replay] call {}: buffer {} of kernel {} is too small", calls_, i, found->second.name);
  }
  const auto scalars = numbers<uint64_t>(call, "scalars");
  Launch launch{.buffers = buffers, .scalars = scalars};
  const auto groups = numbers<uint64_t>(call, "groups");
  const auto local = numbers<uint32_t>(call, "local");
  require(groups.size() == 3 && local.size() == 3, "[replay] call {} has no sizes", calls_);
  std::ranges::copy(groups, launch.group_count.begin());
  std::ranges::copy(local, launch.local_size.begin());
  ++launches_;
  if (observer_)
    observer_(found->second.name, found->second.ast, found->second.lines, buffers, launch);
  if (launcher_)
    launcher_(call, found->second, launch);
  else if (found->second.kernel)
    device_.launch(*found->second.kernel, launch);
  else
    launch_elsewhere(found->second, buffers, launch);
}

void RecordingPlayer::read(const RecordedCall& call) {
  const Buffer& from = buffer(call);
  const uint64_t size = number(call, "bytes"), offset = number(call, "offset");
  from.require_range(offset, size);
  std::vector<std::byte> now(size);
  from.copy_out(now.data(), size, offset);
  PlayedRead read{
      calls_, number(call, "buffer"), size, text(call, "hash"), hash128(now).hex(), false, ""};
  read.is_equal = read.hash == read.recorded_hash;
  if (!read.is_equal && call.data.size() == size) {
    const auto known = dtypes_.find(read.buffer);
    const uint32_t dtype = known == dtypes_.end() ? uint32_t{PGR_DTYPE_U8} : known->second;
    const uint64_t count = size / runtime::dtype_bytes(dtype);
    uint64_t differing = 0, first = 0, most = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t a = runtime::bits_at(now, dtype, i), b = runtime::bits_at(call.data, dtype, i);
      if (a == b) continue;
      if (differing++ == 0) first = i;
      most = std::max(most, runtime::ulps_between(dtype, a, b));
    }
    if (differing > 0)
      read.first_difference =
          fmt::format("{} of {} elements differ, by at most {} {}; [{}] is {}, it was {}",
                      differing, count, most == UINT64_MAX ? "NaN, not" : fmt::to_string(most),
                      runtime::is_float(dtype) ? "ulp" : "units", first,
                      runtime::value_text(dtype, runtime::bits_at(now, dtype, first)),
                      runtime::value_text(dtype, runtime::bits_at(call.data, dtype, first)));
  }
  reads_.push_back(std::move(read));
}

void RecordingPlayer::play(const RecordedCall& call) {
  ++calls_;
  const std::string name = text(call, "call");
  if (name == "alloc") {
    buffers_[number(call, "buffer")] = device_.allocate(
        number(call, "bytes"), static_cast<uint32_t>(call.facts.value("flags", 0)));
  } else if (name == "free") {
    buffers_.erase(number(call, "buffer"));
  } else if (name == "part") {
    const auto parent = buffers_.find(number(call, "parent"));
    require(parent != buffers_.end(), "[replay] call {} divides no buffer", calls_);
    buffers_[number(call, "buffer")] =
        sub_buffer(parent->second, number(call, "offset"), number(call, "bytes"));
  } else if (name == "copy_in") {
    const uint64_t size = number(call, "bytes");
    if (call.data.size() == size)
      buffer(call).copy_in(call.data.data(), size, number(call, "offset"));
    else
      lacks_contents_ = true;
  } else if (name == "copy") {
    runtime::copy(buffer(call), number(call, "offset"), buffer(call, "from"),
                  number(call, "from_offset"), number(call, "bytes"));
  } else if (name == "fill") {
    std::vector<std::byte> bytes(number(call, "bytes"));
    require(!call.data.empty(), "[replay] call {} fills with nothing", calls_);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = call.data[i % call.data.size()];
    buffer(call).copy_in(bytes.data(), bytes.size(), number(call, "offset"));
  } else if (name == "kernel") {
    make_kernel(call);
  } else if (name == "launch") {
    launch(call);
  } else if (name == "copy_out") {
    read(call);
  }
}

}  // namespace plugrad::tools
