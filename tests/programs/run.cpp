// Runs a program in both worlds and compares them.
#include "programs/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/settings.h"
#include "distributed/exchange.h"
#include "engine/session.h"
#include "plugrad/device.h"
#include "plugrad/distributed.h"
#include "plugrad/error.h"
#include "programs/compare.h"
#include "programs/perform.h"
#include "tensor/handles.h"

namespace plugrad::programs {
namespace {

// Steps that do not fit are left out, in both worlds alike.
World pure_world(const Program& program, std::vector<Step>* kept) {
  World world(true);
  for (Step step : program.steps)
    if (perform(world, step, nullptr)) kept->push_back(step);
  return world;
}

Mesh mesh_of(Spread spread) {
  if (spread == Spread::Two) return Mesh({{"a", 2}}, {"CPU", "REFERENCE"});
  if (spread == Spread::Four) return Mesh({{"a", 4}}, {"CPU", "CPU", "REFERENCE", "CPU"});
  if (spread == Spread::Processes) return Mesh({{"a", distributed::size()}}, {"CPU"});
  if (spread == Spread::TwoAProcess)
    return Mesh({{"a", distributed::size()}, {"b", 2}}, {"CPU", "REFERENCE"});
  return Mesh({{"a", 2}, {"b", 2}}, {"CPU", "REFERENCE", "CPU", "REFERENCE"});
}

/// A spec that the program's seed and the step decide: each axis cuts some dimension or none.
ShardSpec draw_spec(const Mesh& mesh, const Tensor& x, std::mt19937_64& random) {
  std::vector<std::string> dims(static_cast<size_t>(x.ndim()));
  std::string partial;
  for (const auto& [axis, size] : mesh.axes()) {
    const uint64_t at = random() % (dims.size() + 2);
    std::string* text = at < dims.size() ? &dims[at] : nullptr;
    if (at == dims.size() && random() % 4 == 0 && is_float(x.dtype())) text = &partial;
    if (text != nullptr) *text += (text->empty() ? "" : "+") + axis;
  }
  return ShardSpec(dims).with_partial_sum(partial);
}

/// Leaves are sharded; every fourth other result moves to another spec.
std::function<Tensor(const Tensor&, int, bool)> place_on_mesh(const Program& program) {
  return [mesh = mesh_of(program.spread), seed = program.seed](const Tensor& x, int step,
                                                               bool is_leaf) {
    std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(step));
    if (!is_leaf && random() % 4 != 0) return x;
    const Tensor placed = x.shard(mesh, draw_spec(mesh, x, random));
    return is_leaf ? placed.realize() : placed;  // leaves have values
  };
}

/// Kernels of users and variable sizes do not run sharded, and say so.
bool is_without_rule(const Error& error) {
  return std::string_view(error.what()).find("has no rule for sharded") != std::string_view::npos;
}

bool agrees(double want, double got, double error) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return want == got || std::fabs(want - got) <= 2 * error;
}

bool is_over_processes(Spread spread) {
  return spread == Spread::Processes || spread == Spread::TwoAProcess;
}

/// Processes collect garbage at different times, as when they have other tensors beside those on
/// meshes.
void collect_sometimes(const Program& program, int step) {
  std::mt19937_64 random(program.seed * 1000003 + static_cast<uint64_t>(step));
  random.discard(static_cast<uint64_t>(distributed::rank()));
  if (random() % 4 == 0) engine::Session::current().collect();
}

std::optional<std::string> run_real(const Program& program, const std::vector<Step>& steps,
                                    const World& pure,
                                    const std::vector<oracle::Measured>& expected,
                                    Coverage* coverage) {
  World world(false);
  if (program.spread != Spread::No) world.place = place_on_mesh(program);
  const Step* current = nullptr;
  try {
    for (const Step& step : steps) {
      current = &step;
      Step copy = step;
      if (!perform(world, copy, nullptr))
        return fmt::format("step v{} fits in the pure world only", step.id);
      if (is_over_processes(program.spread)) collect_sometimes(program, step.id);
    }
    current = nullptr;
    if (program.together) {
      std::vector<Tensor> all;
      for (const auto& [variable, slot] : world.slots) all.push_back(*slot.tensor);
      Tensor::realize(all);
    }
    size_t i = 0;
    for (const auto& [variable, slot] : pure.slots) {
      if (is_over_processes(program.spread)) collect_sometimes(program, -variable.step);
      const std::string fault =
          first_difference(*world.slots.at(variable).tensor, expected[i++], coverage);
      if (!fault.empty()) return fmt::format("{}: {}", name_of(variable), fault);
    }
  } catch (const Error& error) {
    if (program.spread != Spread::No && is_without_rule(error)) return std::nullopt;
    return fmt::format("{}: {}", current ? fmt::format("v{}", current->id) : "at the end",
                       error.what());
  }
  return std::nullopt;
}

/// The fault of the lowest rank that has one, so that all ranks shrink the program alike.
std::optional<std::string> agreed(const std::optional<std::string>& fault) {
  const std::string own = fault.value_or("");
  const auto faults = distributed::exchange(std::as_bytes(std::span(own)), "fault");
  for (size_t rank = 0; rank < faults.size(); ++rank)
    if (!faults[rank].empty())
      return fmt::format("rank {}: {}", rank,
                         std::string_view(reinterpret_cast<const char*>(faults[rank].data()),
                                          faults[rank].size()));
  return std::nullopt;
}

}  // namespace

std::string name_of(Variable v) {
  return v.output == 0 ? fmt::format("v{}", v.step) : fmt::format("v{}.{}", v.step, v.output);
}

std::vector<oracle::Measured> expected_of(const World& world) {
  std::vector<engine::TensorState*> states;
  for (const auto& [variable, slot] : world.slots)
    states.push_back(tensor::state_of(*slot.tensor).get());
  return oracle::evaluate_measured(states);
}

std::string first_difference(const Tensor& tensor, const oracle::Measured& want,
                             Coverage* coverage) {
  const Shape shape = tensor.shape();
  if (tensor.dtype() != want.value.dtype || shape != want.value.shape)
    return fmt::format("{} {} instead of {} {}", to_string(shape), plugrad::name_of(tensor.dtype()),
                       to_string(want.value.shape), plugrad::name_of(want.value.dtype));
  const oracle::Array got = oracle::from_bytes(tensor.dtype(), shape, tensor.to_bytes());
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = want.error_of(i);
    if (coverage) {
      ++coverage->elements;
      coverage->exact += error == 0;
      coverage->unknown += std::isinf(error);
    }
    if (std::isinf(error)) continue;
    const bool good = is_float(tensor.dtype()) || error != 0
                          ? agrees(want.value.real(i), got.real(i), error)
                          : want.value.bits[i] == got.bits[i];
    if (!good)
      return fmt::format("element {}: {} expected, {} found (allowed error {})", i,
                         want.value.real(i), got.real(i), error);
  }
  return {};
}

std::optional<std::string> run(const Program& program, Coverage* coverage) {
  std::vector<Step> steps;
  Device::set_default_device(program.device);
  const SettingScope scope([&](Settings& s) {
    s.contract = false;
    s.noopt = program.noopt;
  });
  try {
    const World pure = pure_world(program, &steps);
    const auto fault = run_real(program, steps, pure, expected_of(pure), coverage);
    return distributed::is_initialized() ? agreed(fault) : fault;
  } catch (const std::exception& error) {
    return fmt::format("while recording: {}", error.what());
  }
}

std::string to_text(const Program& program) {
  std::string text =
      fmt::format("on {}{}{}{}\n",
                  program.spread == Spread::No ? program.device : mesh_of(program.spread).device(),
                  program.noopt ? ", NOOPT" : "", program.together ? ", read together" : "",
                  program.spread == Spread::No ? "" : ", sharded");
  World world(true);
  for (Step step : program.steps) {
    if (!perform(world, step, nullptr)) continue;
    std::vector<std::string> inputs;
    for (Variable v : step.inputs) inputs.push_back(name_of(v));
    text += fmt::format("  v{} = {}({}) {}", step.id, step.operation->name, fmt::join(inputs, ", "),
                        step.numbers);
    for (auto at = world.slots.lower_bound({step.id, 0});
         at != world.slots.end() && at->first.step == step.id; ++at)
      text += fmt::format("  {} {}", to_string(at->second.tensor->shape()),
                          plugrad::name_of(at->second.tensor->dtype()));
    text += "\n";
  }
  return text;
}

}  // namespace plugrad::programs
