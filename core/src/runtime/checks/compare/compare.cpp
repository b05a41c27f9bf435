// Runs every launch on a second device from the same inputs and compares the memory afterwards. The
// program continues with its own device's results.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "plugrad/error.h"
#include "runtime/checks/compare/judge.h"
#include "runtime/checks/compare/memory_ranges.h"
#include "runtime/checks/compare/recorded_graphs.h"
#include "runtime/checks/compare/report.h"
#include "runtime/checks/compare/rounding.h"
#include "runtime/checks/compare/time_share.h"
#include "runtime/checks/layers.h"
#include "runtime/device/device.h"
#include "runtime/discovery/selection.h"

namespace plugrad::runtime {
namespace {

constexpr const char* kReference = "REFERENCE";
// Bytes behind a buffer that are compared too, where they belong to no other argument: a write
// shortly behind the end lands there. Allocations are larger by as much.
constexpr uint64_t kBytesBehind = 64;
// Opening REFERENCE takes 0.4 ms and its first kernel 2 ms (strace on an Intel Xeon of the Ice Lake
// generation, loaded); a plugin that was not tried before takes longer.
constexpr double kOpeningNs = 5e6;
constexpr std::size_t kMostShrunk = 5;  // kernels reduced in one program: each takes seconds

double since(std::uint64_t start_ns) {
  return static_cast<double>(monotonic_ns() - start_ns);
}

struct Known {
  KernelLines lines;
  uint64_t hash = 0;
  Device* other = nullptr;  // null until its first comparison
  std::shared_ptr<Kernel> other_kernel;
  std::string why_not;  // why it cannot be compared
  CheckTimes times;
};

class Compare final : public Layer {
 public:
  Compare(const DeviceTables& inner, CompareOptions options, const LayerChoice& choice,
          const std::string& device_name)
      : Layer("compare", device_name, inner),
        options_(std::move(options)),
        share_(options_.share),
        open_beside_(choice.open_beside),
        caps_(caps_of(inner)) {
    if (!choice.is_implied) open_other();
  }

  // With a limit of time, graphs are replayed as such, apart from the replays that are checked.
  bool wants_every_launch() const override { return !share_.is_limited(); }
  void closing() override {
    summarise();
    const std::lock_guard lock(mutex_);
    kernels_.clear();
    own_.reset();
    reference_.reset();
    other_.reset();
  }

  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override {
    pgr_alloc_desc larger = *desc;
    const bool has_room =
        caps_.max_buffer_bytes == 0 || desc->size_bytes <= caps_.max_buffer_bytes - kBytesBehind;
    if (has_room) larger.size_bytes += kBytesBehind;
    const pgr_status status = Layer::alloc(&larger, out, error);
    if (status == PGR_STATUS_OK) ranges_.add(*out, desc->size_bytes, larger.size_bytes);
    return status;
  }
  void free(pgr_buffer* buffer) override {
    ranges_.remove(buffer);
    Layer::free(buffer);
  }
  pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                        pgr_error* error) override {
    const pgr_status status = Layer::sub_buffer(parent, offset, size, out, error);
    if (status == PGR_STATUS_OK) ranges_.add_part(*out, parent, offset, size);
    return status;
  }
  pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                    pgr_error* error) override;
  void unload(pgr_program* program) override;
  pgr_status graph_build(const pgr_graph_node* nodes, uint32_t count, uint32_t stride,
                         pgr_graph** out, pgr_error* error) override {
    const pgr_status status = Layer::graph_build(nodes, count, stride, out, error);
    if (status == PGR_STATUS_OK) graphs_.add(*out, nodes, count, stride);
    return status;
  }
  pgr_status patch_buffer(pgr_graph* graph, uint32_t node, uint32_t slot, pgr_buffer* buffer,
                          pgr_error* error) override {
    const pgr_status status = Layer::patch_buffer(graph, node, slot, buffer, error);
    if (status == PGR_STATUS_OK) graphs_.patch_buffer(graph, node, slot, buffer);
    return status;
  }
  pgr_status patch_scalar(pgr_graph* graph, uint32_t node, uint32_t slot, uint64_t bits,
                          pgr_error* error) override {
    const pgr_status status = Layer::patch_scalar(graph, node, slot, bits, error);
    if (status == PGR_STATUS_OK) graphs_.patch_scalar(graph, node, slot, bits);
    return status;
  }
  pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) override;
  void graph_destroy(pgr_graph* graph) override {
    graphs_.remove(graph);
    Layer::graph_destroy(graph);
  }
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override;

 private:
  void open_other();
  bool has_other();
  std::shared_ptr<Known> known(pgr_kernel* kernel);
  bool prepare(Known& kernel);
  bool make_on(Known& kernel, Device& device);
  std::string arrange(const Known& kernel, const pgr_launch_desc& desc, LaunchData& data,
                      std::vector<MemoryRange>& ranges) const;
  pgr_status read(pgr_queue* queue, const std::vector<MemoryRange>& ranges, HostMemory& out,
                  pgr_error* error);
  // These return how often the other device ran the kernel.
  uint32_t judge_launch(Known& kernel, const LaunchData& data, HostMemory got, std::string& found);
  uint32_t judge_part(Known& kernel, LaunchData data, HostMemory got, uint64_t groups,
                      std::string& found);
  void found_difference(Known& kernel, const LaunchData& data, HostMemory got,
                        const Difference& difference, std::string& found);
  std::optional<uint64_t> groups_to_check(Known& kernel, const pgr_launch_desc& desc,
                                          const LaunchData& data,
                                          const std::vector<MemoryRange>& ranges) const;
  std::optional<uint64_t> prepare_check(Known& kernel, const pgr_launch_desc& desc,
                                        LaunchData& data, std::vector<MemoryRange>& ranges);
  void explain(const Finding& finding, Device& other);
  void skip(const Known& kernel, const std::string& why);
  void give_up(Known& kernel, const std::string& why);
  void summarise();

  const CompareOptions options_;
  TimeShare share_;  // its time begins before the other device is opened; under mutex_
  const OpenBeside open_beside_;
  // `own`: a second handle of the device, for smaller kernels.
  std::unique_ptr<Device> other_, reference_, own_;
  const pgr_device_caps caps_;
  MemoryRanges ranges_;
  RecordedGraphs graphs_;
  std::mutex mutex_;  // of all below; one launch is compared at a time
  std::map<pgr_kernel*, std::shared_ptr<Known>> kernels_;
  std::map<pgr_program*, std::vector<pgr_kernel*>> kernels_of_;
  std::set<uint64_t> reported_, skipped_;
  bool cannot_open_ = false;
  uint64_t launches_ = 0, compared_ = 0;
};

void Compare::open_other() {
  const std::uint64_t start_ns = monotonic_ns();
  other_ = open_beside_(options_.with);
  share_.spent_beside(since(start_ns));
  if (other_->name() == device_name_)
    fail(ErrorKind::User,
         "[layers] compare would compare {} with itself; name another device in with=, or "
         "restrict the layer to another one by device=",
         device_name_);
}

// PLUGRAD_VALIDATE opens the other device when its share of the time allows it.
bool Compare::has_other() {
  if (other_) return true;
  if (cannot_open_ || share_.available_ns() < kOpeningNs) return false;
  try {
    open_other();
  } catch (const Error& e) {
    cannot_open_ = true;
    log_warning("compare: {}: nothing is compared: {}", device_name_, e.what());
  }
  return !cannot_open_;
}

pgr_status Compare::kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                           pgr_error* error) {
  const pgr_status status = Layer::kernel(program, name, out, error);
  if (status != PGR_STATUS_OK) return status;
  const std::uint64_t start_ns = monotonic_ns();
  auto made = std::make_shared<Known>();
  const std::span<const std::byte> ir = KernelIrScope::current();
  if (auto lines = read_kernel_lines(ir))
    made->lines = std::move(*lines);
  else
    made->why_not = "it was made of source text";
  if (made->lines.name.empty()) made->lines.name = std::string(view(*name));
  made->hash = hash64(ir);
  const std::lock_guard lock(mutex_);
  kernels_[*out] = std::move(made);
  kernels_of_[program].push_back(*out);
  share_.spent_beside(since(start_ns));
  return status;
}

void Compare::unload(pgr_program* program) {
  {
    const std::lock_guard lock(mutex_);
    for (pgr_kernel* kernel : kernels_of_[program]) kernels_.erase(kernel);
    kernels_of_.erase(program);
  }
  Layer::unload(program);
}

std::shared_ptr<Known> Compare::known(pgr_kernel* kernel) {
  const auto at = kernels_.find(kernel);
  return at == kernels_.end() ? nullptr : at->second;
}

// Tells once for each kernel that a launch is not compared.
void Compare::skip(const Known& kernel, const std::string& why) {
  if (skipped_.insert(kernel.hash).second)
    log_line(LogLevel::Warning, fmt::format("compare: {}: {} is not compared: {}", device_name_,
                                            kernel.lines.name, why));
}

void Compare::give_up(Known& kernel, const std::string& why) {
  kernel.why_not = why;
  skip(kernel, why);
}

bool Compare::make_on(Known& kernel, Device& device) {
  try {
    kernel.other_kernel = device.compile(kernel.lines.encode(), kernel.lines.name);
  } catch (const Error&) {
    return false;
  }
  kernel.other = &device;
  const std::vector<double> errors = allowed_errors(kernel.lines, caps_, device.caps());
  if (std::ranges::any_of(errors, [](double ulps) { return ulps > 0; }))
    kernel.times.most_runs = 1 + kRoundingVariants;
  return true;
}

// Compiles the kernel for the other device, or for REFERENCE, which executes every kernel.
bool Compare::prepare(Known& kernel) {
  if (!kernel.why_not.empty()) return skip(kernel, kernel.why_not), false;
  if (kernel.other) return true;
  const bool is_reference = other_->plugin_name() == kReference;
  std::string lacks;
  if (is_reference && !kernel.lines.has_op(PGR_OP_WMMA)) {
    if (make_on(kernel, *other_)) return true;
    lacks = "its kernel IR";
  } else {
    lacks = lacking(kernel.lines, other_->caps(), caps_);
    if (lacks.empty() && make_on(kernel, *other_)) return true;
  }
  if (is_reference)
    return give_up(kernel, fmt::format("{} lacks {}", other_->name(), lacks)), false;
  if (!reference_) reference_ = open_beside_(kReference);
  if (make_on(kernel, *reference_)) return true;
  return give_up(kernel, fmt::format("{} and REFERENCE lack {}", other_->name(), lacks)), false;
}

// Names the memory of each buffer; equal buffers once. Returns why that is not possible.
std::string Compare::arrange(const Known& kernel, const pgr_launch_desc& desc, LaunchData& data,
                             std::vector<MemoryRange>& ranges) const {
  if (LaunchData::buffer_params(kernel.lines).size() != desc.buffer_count)
    return "it is launched with another number of buffers than its kernel IR has";
  for (uint32_t i = 0; i < desc.buffer_count; ++i) {
    const auto range = ranges_.of(desc.buffers[i]);
    if (!range) return "it is launched with a buffer of unknown size";
    const auto same = std::ranges::find(ranges, *range);
    data.region_of.push_back(static_cast<std::size_t>(same - ranges.begin()));
    if (same != ranges.end()) continue;
    for (const MemoryRange& other : ranges)
      if (other.overlaps(*range)) return "its buffers overlap in part";
    ranges.push_back(*range);
  }
  const std::vector<MemoryRange> exact = ranges;
  for (MemoryRange& range : ranges) {
    uint64_t end = std::min(range.end() + kBytesBehind, range.root_size);
    for (const MemoryRange& other : exact)
      if (other.root == range.root && other.offset >= range.end())
        end = std::min(end, other.offset);
    range.size = end - range.offset;
  }
  data.scalars.assign(desc.scalars, desc.scalars + desc.scalar_count);
  std::copy_n(desc.group_count, 3, data.group_count.begin());
  std::copy_n(desc.local_size, 3, data.local_size.begin());
  return "";
}

pgr_status Compare::read(pgr_queue* queue, const std::vector<MemoryRange>& ranges, HostMemory& out,
                         pgr_error* error) {
  out.clear();
  for (const MemoryRange& range : ranges) {
    out.emplace_back(range.size);
    if (range.size == 0) continue;
    const pgr_status status =
        Layer::copy_out(queue, out.back().data(), range.root, range.offset, range.size, error);
    if (status != PGR_STATUS_OK) return status;
  }
  return PGR_STATUS_OK;
}

void Compare::found_difference(Known& kernel, const LaunchData& data, HostMemory got,
                               const Difference& difference, std::string& found) {
  reported_.insert(kernel.hash);
  const Finding finding{kernel.lines,         data,          difference, device_name_,
                        kernel.other->name(), std::move(got)};
  found = describe(finding);
  // Before smaller kernels are tried: one of them may crash the device.
  report(found, kernel.lines.name, difference_json(finding));
  explain(finding, *kernel.other);
}

uint32_t Compare::judge_launch(Known& kernel, const LaunchData& data, HostMemory got,
                               std::string& found) {
  uint32_t more_runs = 0;
  try {
    const HostMemory expected = run_on(*kernel.other, *kernel.other_kernel, data);
    const auto difference =
        judge(kernel.lines, data, caps_, *kernel.other, got, expected, false, &more_runs);
    ++compared_;
    if (difference) found_difference(kernel, data, std::move(got), *difference, found);
  } catch (const Error& e) {
    give_up(kernel, e.what());
  }
  return 1 + more_runs;
}

// Runs some groups of the longest axis on the other device, others with each check. What they do
// not write must not count: memory that is only written starts as the device left it.
uint32_t Compare::judge_part(Known& kernel, LaunchData data, HostMemory got, uint64_t groups,
                             std::string& found) {
  const HostMemory before = data.regions;
  const std::vector<uint32_t> params = LaunchData::buffer_params(kernel.lines);
  std::vector<bool> is_read(data.regions.size());
  for (std::size_t i = 0; i < params.size(); ++i)
    if (kernel.lines.params[params[i]].flags & PGR_PARAM_READ) is_read[data.region_of[i]] = true;
  for (std::size_t i = 0; i < data.regions.size(); ++i)
    if (!is_read[i]) data.regions[i] = got[i];
  const auto longest = std::ranges::max_element(data.group_count);
  const auto axis = static_cast<std::size_t>(longest - data.group_count.begin());
  const uint64_t last = *longest - groups;
  const uint64_t first = last == 0 ? 0 : kernel.times.checks * 0x9e3779b97f4a7c15u % (last + 1);
  KernelLines part = kernel.lines;
  part.keep_groups(axis, first, groups);
  const uint64_t all_groups = std::exchange(*longest, groups);
  uint32_t more_runs = 0;
  try {
    const HostMemory expected = run_on(*kernel.other, part, data, false);
    const auto difference =
        judge(part, data, caps_, *kernel.other, got, expected, true, &more_runs);
    ++compared_;
    if (!difference) return 1 + more_runs;
    data.group_count[axis] = all_groups;
    data.regions = before;
    found_difference(kernel, data, std::move(got), *difference, found);
  } catch (const Error& e) {
    give_up(kernel, e.what());
  }
  return 1 + more_runs;
}

// Nothing: there is no time for a check. Otherwise the groups of the longest axis to run.
std::optional<uint64_t> Compare::groups_to_check(Known& kernel, const pgr_launch_desc& desc,
                                                 const LaunchData& data,
                                                 const std::vector<MemoryRange>& ranges) const {
  const uint64_t all = *std::ranges::max_element(data.group_count);
  if (!share_.is_limited()) return all;
  double bytes = 0;
  for (const MemoryRange& range : ranges) bytes += 3 * static_cast<double>(range.size);
  const double lines = executed_lines(kernel.lines, data.group_count);
  const double left = share_.available_ns() - share_.expected_ns(kernel.times, 0, bytes);
  const double wanted = share_.expected_ns(kernel.times, lines, 0);
  if (left <= 0 || desc.buffer_count == 0) return std::nullopt;
  if (wanted <= left) return all;
  const auto affordable = static_cast<uint64_t>(static_cast<double>(all) * left / wanted);
  const bool is_divisible = all > 1 && !kernel.lines.has_op(PGR_OP_ATOMIC_ADD);
  return is_divisible && affordable > 0 ? std::optional(affordable) : std::nullopt;
}

// A replay that is checked runs as launches, which counts as time of checks.
pgr_status Compare::replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  bool has_time = false;
  double spent_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    has_time = share_.available_ns() > 0;
    spent_ns = share_.spent_ns();
  }
  const auto nodes = has_time ? graphs_.of(graph) : nullptr;
  if (!nodes) return Layer::replay(queue, graph, error);
  const std::uint64_t start_ns = monotonic_ns();
  for (const pgr_graph_node& node : nodes->nodes) {
    const pgr_status status = node.kind == PGR_GRAPH_LAUNCH
                                  ? launch(queue, node.kernel, node.launch, nullptr, error)
                                  : Layer::copy(queue, node.dst, node.dst_offset_bytes, node.src,
                                                node.src_offset_bytes, node.size_bytes, error);
    if (status != PGR_STATUS_OK) return status;
  }
  const std::lock_guard lock(mutex_);
  share_.spent_beside(std::max(0.0, since(start_ns) - (share_.spent_ns() - spent_ns)));
  return PGR_STATUS_OK;
}

// Reports the smallest kernel, and the files for repeating the launch.
void Compare::explain(const Finding& finding, Device& other) {
  if (const std::string path = write_replay(finding, options_.folder); !path.empty())
    report(fmt::format("kernel {}: the whole launch: plugrad replay {} --device {} --compare {}",
                       finding.kernel.name, path, finding.device, finding.other),
           finding.kernel.name);
  else
    log_warning("compare: no replay file could be written to {}",
                options_.folder.empty() ? "the cache directory" : options_.folder);
  if (options_.shrink_seconds == 0 || reported_.size() > kMostShrunk) return;
  try {
    if (!own_) own_ = open_beside_(device_name_);
    report(describe_smallest(finding, *own_, other, options_), finding.kernel.name);
  } catch (const Error& e) {
    report(fmt::format("kernel {} is not reduced: {}", finding.kernel.name, e.what()),
           finding.kernel.name);
  }
}

// The groups of the longest axis to run; nothing if the launch is not checked.
std::optional<uint64_t> Compare::prepare_check(Known& kernel, const pgr_launch_desc& desc,
                                               LaunchData& data, std::vector<MemoryRange>& ranges) {
  const bool is_new = kernel.other == nullptr;
  const std::uint64_t start_ns = is_new ? monotonic_ns() : 0;
  const bool is_prepared = prepare(kernel);
  if (is_new) share_.spent_beside(since(start_ns));
  if (!is_prepared) return std::nullopt;
  if (const std::string why = arrange(kernel, desc, data, ranges); !why.empty())
    return skip(kernel, why), std::nullopt;
  return groups_to_check(kernel, desc, data, ranges);
}

pgr_status Compare::launch(pgr_queue* queue, pgr_kernel* handle, const pgr_launch_desc* desc,
                           uint64_t* out_time_ns, pgr_error* error) {
  const std::lock_guard lock(mutex_);
  ++launches_;
  const std::shared_ptr<Known> kernel = known(handle);
  LaunchData data;
  std::vector<MemoryRange> ranges;
  const bool is_due = kernel && !reported_.contains(kernel->hash) && share_.available_ns() > 0 &&
                      share_.is_due(kernel->times) && has_other();
  const auto groups = is_due ? prepare_check(*kernel, *desc, data, ranges) : std::nullopt;
  if (!groups) return Layer::launch(queue, handle, desc, out_time_ns, error);
  const std::uint64_t start = monotonic_ns();
  pgr_status status = read(queue, ranges, data.regions, error);
  if (status != PGR_STATUS_OK) return status;
  const std::uint64_t launched = monotonic_ns();
  status = Layer::launch(queue, handle, desc, out_time_ns, error);
  if (status != PGR_STATUS_OK) return status;
  const std::uint64_t returned = monotonic_ns();
  HostMemory got;
  status = read(queue, ranges, got, error);
  if (status != PGR_STATUS_OK) return status;
  std::string found;
  const uint64_t all = *std::ranges::max_element(data.group_count);
  const double lines = executed_lines(kernel->lines, data.group_count) *
                       static_cast<double>(*groups) / static_cast<double>(all);
  CheckWork work{lines, 3 * static_cast<double>(data.bytes())};
  work.runs = *groups == all ? judge_launch(*kernel, data, std::move(got), found)
                             : judge_part(*kernel, std::move(data), std::move(got), *groups, found);
  share_.spent(kernel->times, work, (launched - start) + (monotonic_ns() - returned));
  if (found.empty() || !options_.stop) return status;
  return set_error(error, PGR_STATUS_INTERNAL, "compare: " + found);
}

void Compare::summarise() {
  const std::lock_guard lock(mutex_);
  log_line(LogLevel::Info,
           fmt::format("compare: {}: {} of {} launches were compared with {}, {} kernels differ",
                       device_name_, compared_, launches_, options_.with, reported_.size()));
}

}  // namespace

std::unique_ptr<Layer> make_compare_layer(const DeviceTables& inner, const LayerChoice& choice,
                                          const std::string& device_name) {
  return std::make_unique<Compare>(inner, compare_options(choice), choice, device_name);
}

}  // namespace plugrad::runtime
