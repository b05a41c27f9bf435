#include "networks/kernel_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "plugrad/error.h"
#include "runtime/checks/record/recorded_call.h"
#include "trace/trace.h"

namespace plugrad::tools {
namespace {

constexpr size_t kMostNodes = 6;  // a kernel may compute dozens

std::string sources_of(const trace::Trace& trace, const trace::Kernel& kernel) {
  std::vector<std::string> nodes;
  for (const int32_t number : kernel.operations) {
    if (number == trace::kNone) continue;
    const trace::Operation& operation = trace.operations[static_cast<size_t>(number)];
    if (!operation.file.ends_with(".onnx")) continue;
    const std::string file = std::filesystem::path(operation.file).filename().string();
    std::string node = fmt::format("{} ({}:{})", operation.function, file, operation.line);
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(std::move(node));
  }
  const size_t more = nodes.size() - std::min(nodes.size(), kMostNodes);
  nodes.resize(nodes.size() - more);
  return fmt::format("{}{}", fmt::join(nodes, ", "), more ? fmt::format(" and {} more", more) : "");
}

struct RecordedKernel {
  uint64_t number = 0;
  std::string name;
};

// In the order of their first launches, as the trace has them.
std::vector<RecordedKernel> launched_kernels(const std::string& recording) {
  std::map<uint64_t, std::string> names;
  std::vector<RecordedKernel> kernels;
  runtime::RecordingReader reader(recording);
  for (runtime::RecordedCall call; reader.next(call);) {
    const std::string what = call.facts.value("call", "");
    const auto number = call.facts.value("kernel", uint64_t{0});
    if (what == "kernel") names[number] = call.facts.value("name", "");
    if (what == "launch" &&
        std::ranges::find(kernels, number, &RecordedKernel::number) == kernels.end())
      kernels.push_back({number, names[number]});
  }
  return kernels;
}

}  // namespace

std::map<uint64_t, std::string> kernel_sources(const std::string& trace_path,
                                               const std::string& recording) {
  std::map<uint64_t, std::string> sources;
  try {
    const trace::Trace trace = trace::read_trace(trace_path);
    std::map<std::string, std::vector<std::string>> by_name;
    for (const trace::Kernel& kernel : trace.kernels)
      by_name[kernel.name].push_back(sources_of(trace, kernel));
    std::map<std::string, size_t> used;
    for (const RecordedKernel& kernel : launched_kernels(recording)) {
      const std::vector<std::string>& known = by_name[kernel.name];
      if (!known.empty())
        sources[kernel.number] = known[std::min(used[kernel.name]++, known.size() - 1)];
    }
  } catch (const Error&) {  // the process ended before it wrote them
  }
  return sources;
}

uint64_t launches_in(const std::string& recording) {
  uint64_t launches = 0;
  try {
    runtime::RecordingReader reader(recording);
    for (runtime::RecordedCall call; reader.next(call);)
      launches += call.facts.value("call", "") == "launch";
  } catch (const Error&) {  // it ended before the first call
  }
  return launches;
}

}  // namespace plugrad::tools
