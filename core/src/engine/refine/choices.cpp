#include "engine/refine/choices.h"

#include <algorithm>

#include "base/check.h"
#include "engine/kernels/kernel_cache.h"
#include "runtime/registry.h"

namespace plugrad::engine {
namespace {

codegen::SearchSpace space_of(const KernelReport& report) {
  require(report.planned != nullptr, "[explain] {} was written by hand: it has no schedule",
          report.name);
  runtime::Device& device = runtime::Registry::instance().find_device(report.device);
  const codegen::Options options =
      codegen_options({report.planned, &device}, KernelOptions::from_settings());
  return {report.planned->graph, report.planned->sink, device.caps(), options};
}

codegen::Candidate own_of(const codegen::SearchSpace& space, const KernelReport& report) {
  return space.predicted(codegen::parse_schedule(report.optimisations));
}

}  // namespace

codegen::Candidate prediction_of(const KernelReport& report) {
  return own_of(space_of(report), report);
}

std::vector<codegen::Candidate> predictions_of(const KernelReport& report,
                                               std::span<const codegen::KernelSchedule> lists) {
  const codegen::SearchSpace space = space_of(report);
  std::vector<codegen::Candidate> found;
  for (const codegen::KernelSchedule& list : lists)
    if (auto each = space.look(list)) found.push_back(std::move(*each));
  return found;
}

Choice choice_of(const KernelReport& report, size_t most) {
  const codegen::SearchSpace space = space_of(report);
  Choice choice{own_of(space, report), space.predicted({}), {}, 0};
  choice.nearest = space.near(choice.own.list);
  choice.looked_at = choice.nearest.size();
  std::ranges::stable_sort(choice.nearest, {}, &codegen::Candidate::cost);
  if (choice.nearest.size() > most) choice.nearest.resize(most);
  return choice;
}

}  // namespace plugrad::engine
