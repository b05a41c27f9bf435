#include <fmt/format.h>

#include "plan_scale/report.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;
using scale::Estimate;

constexpr double kMilli = 1e3;

Json memory_json(const scale::Memory& m) {
  return {{"memory_bytes", m.total()},       {"parameter_bytes", m.parameters},
          {"state_bytes", m.state},          {"batch_bytes", m.batch},
          {"other_bytes", m.other},          {"result_bytes", m.results},
          {"temporary_bytes", m.temporaries}};
}

Json spec_json(const ScaleReport& report, const scale::Tried& tried) {
  const Estimate& e = tried.estimate;
  Json traffic = Json::array(), groups = Json::array();
  for (const scale::Traffic& t : e.traffic)
    traffic.push_back({{"kind", name_of(t.kind)},
                       {"members", t.members},
                       {"count", t.count},
                       {"bytes", t.bytes},
                       {"ms", t.seconds * kMilli}});
  for (const auto& dims : tried.layout.groups) {
    sharding::Spec spec;
    spec.dims = dims;
    groups.push_back(sharding::to_string(report.mesh, spec));
  }
  Json json = {{"batch", sharding::names_of(report.mesh, tried.layout.batch)},
               {"state", sharding::names_of(report.mesh, tried.layout.state)},
               {"groups", std::move(groups)},
               {"fits", tried.fits},
               {"step_ms", e.step_seconds() * kMilli},
               {"overlapped_step_ms", e.best_step_seconds() * kMilli},
               {"compute_ms", e.compute_seconds() * kMilli},
               {"matrix_ms", e.matrix_seconds * kMilli},
               {"host_ms", e.host_seconds * kMilli},
               {"exposed_ms", e.exposed_seconds * kMilli},
               {"overlapped_exposed_ms", e.exposed_at_best_seconds * kMilli},
               {"kernels", e.kernels},
               {"flops", e.flops},
               {"collectives", std::move(traffic)}};
  json.update(memory_json(e.memory));
  return json;
}

}  // namespace

Json scale_json(const ScaleReport& report) {
  Json mesh = Json::object(), inputs = Json::array(), groups = Json::array(), specs = Json::array();
  for (size_t axis = 0; axis < report.mesh.axes.size(); ++axis)
    mesh[report.mesh.axes[axis]] = report.mesh.sizes[axis];
  for (const scale::Leaf& leaf : report.program.leaves)
    inputs.push_back({{"shape", leaf.shape},
                      {"dtype", name_of(leaf.dtype)},
                      {"role", scale::name_of(leaf.role)},
                      {"group", leaf.group ? Json(*leaf.group) : Json()}});
  for (const scale::Group& group : report.program.groups)
    groups.push_back({{"shape", group.shape},
                      {"dtype", name_of(group.dtype)},
                      {"parameters", group.leaves.size()},
                      {"bytes", group.bytes}});
  for (const scale::Tried& tried : report.result.tried) specs.push_back(spec_json(report, tried));
  return {{"machine", report.machine.name},
          {"mesh", std::move(mesh)},
          {"plan", report.program.plan},
          {"batch", report.program.batch},
          {"corrected_by_trace", report.is_corrected},
          {"seconds", report.seconds},
          {"refused", report.result.refused},
          {"inputs", std::move(inputs)},
          {"groups", std::move(groups)},
          {"specs", std::move(specs)}};
}

}  // namespace plugrad::tools
