// Adds to an error the lines of the program that recorded what failed.
#include <algorithm>

#include "base/binding.h"
#include "engine/plan/options.h"
#include "engine/session_state.h"

namespace plugrad::engine {
namespace {

constexpr size_t kMostPlaces = 4;  // in a message

// The step that made the kernel cache's request with this number.
size_t step_of_request(const schedule::Plan& plan, size_t request) {
  size_t step = 0;
  for (; step < plan.steps.size(); ++step) {
    const auto kind = plan.steps[step].kind;
    const bool is_kernel =
        kind == schedule::Step::Kind::Kernel || kind == schedule::Step::Kind::User;
    if (is_kernel && request-- == 0) break;
  }
  return step;
}

void add_distinct(std::vector<uint32_t>& places, uint32_t place) {
  if (place != 0 && std::ranges::find(places, place) == places.end()) places.push_back(place);
}

void set_recorded_at(Error& error, std::span<const uint32_t> places) {
  std::vector<std::string> lines;
  for (const uint32_t place : places) {
    std::string line = describe_place(place);
    if (!line.empty() && std::ranges::find(lines, line) == lines.end())
      lines.push_back(std::move(line));
    if (lines.size() == kMostPlaces) break;
  }
  if (!lines.empty()) error.set_recorded_at(std::move(lines));
}

}  // namespace

// Plans the walked graph again, now with the nodes of each step.
void Session::name_places_of_request(Error& error, size_t number, const PlanRequest& request) {
  if (!has_places()) return;
  PlanRequest kept = request;
  kept.options.keep_graph = true;
  const schedule::Plan plan = plan_of(state_->canonical.copy(), kept);
  const auto step = static_cast<int32_t>(step_of_request(plan, number));
  const auto of_value = origins_of(*plan.scheduled, state_->places);
  std::vector<uint32_t> places;
  const auto add_if = [&](bool is_reduction) {
    for (size_t i = 0; i < of_value.size(); ++i) {
      const auto& value = plan.scheduled->values[i];
      if (value.step == step && (plan.scheduled->graph[value.id].op == Op::Reduce) == is_reduction)
        add_distinct(places, of_value[i]);
    }
  };
  add_if(true);
  add_if(false);
  set_recorded_at(error, places);
}

void Session::name_places(Error& error, std::span<const Id> nodes) {
  if (!has_places() || !error.recorded_at().empty()) return;
  std::vector<uint32_t> places;
  for (const Id node : nodes) add_distinct(places, place(node));
  set_recorded_at(error, places);
}

}  // namespace plugrad::engine
