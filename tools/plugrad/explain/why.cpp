#include "explain/why.h"

#include <fmt/format.h>

#include "engine/refine/choices.h"
#include "runtime/registry.h"
#include "tuning/calibration/machines.h"

namespace plugrad::tools {
namespace {

using codegen::Candidate;
using Json = nlohmann::ordered_json;

constexpr size_t kShown = 12;  // number of schedules near the kernel's own

struct Column {
  const char* title;
  const char* key;
  double codegen::TileCycles::* part;
};

constexpr Column kColumns[] = {
    {"compute", "arithmetic", &codegen::TileCycles::arithmetic},
    {"load/store", "accesses", &codegen::TileCycles::accesses},
    {"latency", "latency", &codegen::TileCycles::latency},
    {"traffic", "traffic", &codegen::TileCycles::traffic},
    {"packing", "packing", &codegen::TileCycles::packing},
    {"storing", "storing", &codegen::TileCycles::storing},
    {"loops", "loops", &codegen::TileCycles::loops},
};

std::string list_text(const Candidate& candidate) {
  return candidate.list.empty() ? "(no change)" : codegen::to_string(candidate.list);
}

double seconds_of(const Candidate& p, const cost::Machine& machine) {
  return p.prediction.seconds(machine, machine.threads);
}

void print_row(const char* mark, const Candidate& p, const cost::Machine& machine) {
  const auto& cycles = p.prediction.cycles;
  const std::string time =
      p.prediction.is_possible ? fmt::format("{:.1f}", seconds_of(p, machine) * 1e6) : "spills";
  fmt::print("{} {:>10}", mark, time);
  for (const Column& column : kColumns) fmt::print(" {:>10.3g}", cycles.*column.part);
  fmt::print(" {:>10.3g} {:>9.0f} {:>7.0f}  {}\n", p.prediction.moving(machine, p.prediction.busy),
             p.prediction.registers, p.prediction.busy, list_text(p));
}

runtime::Device& device_of(const engine::KernelReport& kernel) {
  return runtime::Registry::instance().find_device(kernel.device);
}

std::string machine_text(runtime::Device& device, const cost::Machine& machine) {
  return fmt::format(
      "{}, {}: {:g} f32 lanes, {:g} vector registers, {:g} threads, {:.2f} multiply-adds a cycle, "
      "{:.2f} GHz",
      device.name(), tuning::is_calibrated(device) ? "calibrated" : "by the table", machine.lanes,
      machine.registers, machine.threads, machine.multiply_adds, machine.cycles_a_second * 1e-9);
}

Json why_json(const Candidate& p, const cost::Machine& machine) {
  Json cycles = Json::object();
  for (const Column& column : kColumns) cycles[column.key] = p.prediction.cycles.*column.part;
  const bool possible = p.prediction.is_possible;
  return {{"optimisations", codegen::to_string(p.list)},
          {"seconds", possible ? Json(seconds_of(p, machine)) : nullptr},
          {"cycles", cycles},
          {"bytes_once", p.prediction.moving(machine, p.prediction.busy)},
          {"registers", p.prediction.registers},
          {"threads", p.prediction.busy}};
}

void print_choice(const engine::KernelReport& kernel) {
  fmt::print("\n{}: {} flops, {} bytes\n", kernel.name, kernel.flops, kernel.bytes);
  if (!kernel.planned) return fmt::print("  written by hand: it has no schedule\n");
  const engine::Choice choice = engine::choice_of(kernel, kShown);
  runtime::Device& device = device_of(kernel);
  const cost::Machine machine = *tuning::machine_of(device);
  fmt::print("  on {}\n  {:>10}", machine_text(device, machine), "us");
  for (const Column& column : kColumns) fmt::print(" {:>10}", column.title);
  fmt::print(" {:>10} {:>9} {:>7}  schedule\n", "once", "registers", "threads");
  print_row("*", choice.own, machine);
  if (!choice.own.list.empty()) print_row(" ", choice.plain, machine);
  for (const Candidate& near : choice.nearest) print_row(" ", near, machine);
  fmt::print("  {} of {} schedules one change away from the chosen one (*)\n",
             choice.nearest.size(), choice.looked_at);
}

}  // namespace

void print_choices(const std::vector<engine::KernelReport>& kernels) {
  for (const engine::KernelReport& kernel : kernels) print_choice(kernel);
  fmt::print(
      "\nus: predicted time of a launch. compute to loops: cycles of one core, each as if it ran "
      "alone;\nthe slowest of the first four counts, and a little of the others. once: cycles in "
      "which all threads\nmove every byte once. What needs more registers than there are spills, "
      "and is never chosen.\n");
}

Json choice_json(const engine::KernelReport& kernel) {
  if (!kernel.planned) return nullptr;
  const engine::Choice choice = engine::choice_of(kernel, kShown);
  runtime::Device& device = device_of(kernel);
  const cost::Machine machine = *tuning::machine_of(device);
  Json candidates = {why_json(choice.own, machine), why_json(choice.plain, machine)};
  for (const Candidate& near : choice.nearest) candidates.push_back(why_json(near, machine));
  return {{"machine", machine_text(device, machine)},
          {"candidates", candidates},
          {"looked_at", choice.looked_at}};
}

}  // namespace plugrad::tools
