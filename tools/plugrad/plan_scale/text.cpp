#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan_scale/report.h"

namespace plugrad::tools {
namespace {

using scale::Estimate;
using scale::Tried;

constexpr double kMillisecond = 1e3;

std::string size_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes * 1e-6)
                     : fmt::format("{:.1f} GB", bytes * 1e-9);
}
std::string size_text(uint64_t bytes) {
  return size_text(static_cast<double>(bytes));
}

constexpr size_t kMostDifferences = 3;  // that fit into a row

/// The groups with another spec than in the best row, as --cut takes them: "; 3=model,- 5=-,-".
std::string differences_text(const ScaleReport& report, const scale::Layout& layout) {
  const scale::Layout& best = report.result.tried[0].layout;
  std::vector<std::string> cuts;
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    if (layout.groups[i] == best.groups[i]) continue;
    std::vector<std::string> dims;
    for (const sharding::AxisSet axes : layout.groups[i])
      dims.push_back(sharding::names_of(report.mesh, axes));
    cuts.push_back(fmt::format("{}={}", i, fmt::join(dims, ",")));
  }
  if (cuts.empty()) return "";
  const size_t shown = std::min(cuts.size(), kMostDifferences);
  return fmt::format("; {}{}", fmt::join(std::span(cuts).first(shown), " "),
                     shown < cuts.size() ? " ..." : "");
}

std::string cuts_text(const ScaleReport& report, const Tried& tried) {
  const auto cut = std::ranges::count_if(tried.layout.groups, [](const auto& dims) {
    return std::ranges::any_of(dims, [](sharding::AxisSet axes) { return axes != 0; });
  });
  const auto names = [&](sharding::AxisSet axes) { return sharding::names_of(report.mesh, axes); };
  return fmt::format("batch {}, state {}, {} of {} groups cut{}", names(tried.layout.batch),
                     names(tried.layout.state), cut, tried.layout.groups.size(),
                     differences_text(report, tried.layout));
}

std::string head(const ScaleReport& report) {
  const scale::Program& program = report.program;
  std::string text =
      fmt::format("{} on {} ({} devices); plan {} of the trace, {} inputs, batch of {}\n",
                  sharding::to_string(report.mesh), report.machine.name, report.mesh.size(),
                  program.plan, program.leaves.size(), program.batch);
  text += report.is_corrected ? "kernels: the cost model, corrected by their times in the trace\n"
                              : "kernels: the cost model with the machine's figures\n";
  return text + fmt::format("tried {} specs in {:.1f} s{}\n\n", report.result.tried.size(),
                            report.seconds,
                            report.result.refused == 0
                                ? ""
                                : fmt::format("; {} have no rule of propagation: {}",
                                              report.result.refused, report.result.reason));
}

std::string table(const ScaleReport& report) {
  std::string text = fmt::format("{:>12} {:>12} {:>10} {:>12} {:>12} {:>10}  specs\n", "step ms",
                                 "overlapped", "compute", "exposed", "overlapped", "memory");
  const auto& all = report.result.tried;
  for (size_t i = 0; i < std::min(report.top, all.size()); ++i) {
    const Estimate& e = all[i].estimate;
    text += fmt::format(
        "{:>12.3f} {:>12.3f} {:>10.3f} {:>12.3f} {:>12.3f} {:>10}  {}{}\n",
        e.step_seconds() * kMillisecond, e.best_step_seconds() * kMillisecond,
        e.compute_seconds() * kMillisecond, std::max(0.0, e.exposed_seconds) * kMillisecond,
        std::max(0.0, e.exposed_at_best_seconds) * kMillisecond, size_text(e.memory.total()),
        cuts_text(report, all[i]), all[i].fits ? "" : " (does not fit)");
  }
  return text;
}

std::string parts_of(const ScaleReport& report) {
  const Estimate& e = report.result.tried[0].estimate;
  std::string text = fmt::format(
      "\nbest: {} kernels, matrix products {:.3f} ms, others {:.3f} ms, between kernels {:.3f} ms, "
      "{:.3f} teraflops a second\n",
      e.kernels, e.matrix_seconds * kMillisecond, e.other_seconds * kMillisecond,
      e.host_seconds * kMillisecond, e.flops / e.step_seconds() * 1e-12);
  for (const scale::Traffic& t : e.traffic)
    text += fmt::format("  {:>5} {} of {} devices: {}, {:.3f} ms\n", t.count, name_of(t.kind),
                        t.members, size_text(t.bytes), t.seconds * kMillisecond);
  const scale::Memory& m = e.memory;
  return text + fmt::format(
                    "memory of a device: parameters {}, state {}, batch {}, other {}, results {}, "
                    "activations and gradients {}; it has {}\n",
                    size_text(m.parameters), size_text(m.state), size_text(m.batch),
                    size_text(m.other), size_text(m.results), size_text(m.temporaries),
                    size_text(report.machine.device.memory_bytes));
}

std::string groups_text(const ScaleReport& report) {
  std::string text = "\ngroup  parameters  shape, spec of the best\n";
  const scale::Layout& best = report.result.tried[0].layout;
  for (size_t i = 0; i < report.program.groups.size(); ++i) {
    const scale::Group& group = report.program.groups[i];
    sharding::Spec spec;
    spec.dims = best.groups[i];
    text += fmt::format("{:>5}  {:>10}  ({}) {} {}\n", i, group.leaves.size(),
                        fmt::join(group.shape, ", "), name_of(group.dtype),
                        sharding::to_string(report.mesh, spec));
  }
  return text;
}

}  // namespace

std::string scale_text(const ScaleReport& report) {
  return head(report) + table(report) + parts_of(report) + groups_text(report);
}

}  // namespace plugrad::tools
