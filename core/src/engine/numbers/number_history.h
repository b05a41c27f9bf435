// A record of graphs that differ in numbers alone: which numbers have differed, and the plan that
// takes them at launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/plan/canonical.h"
#include "engine/plan/ready_plan.h"
#include "engine/recent_cache.h"

namespace plugrad::engine {

/// The first graph's plan has its numbers as constants. From the second on, one plan takes the
/// numbers that have differed at launch; by index of CanonicalGraph::number_sites().
struct NumberHistory {
  std::vector<uint64_t> first;  // bits of Const nodes
  std::weak_ptr<ReadyPlan> plan_of_first;
  std::vector<uint8_t> differs;
  // Stays a constant, as kernels that take it would compute otherwise, or the device takes no
  // number.
  std::vector<uint8_t> stays;
  std::weak_ptr<ReadyPlan> taking;  // the plan that takes what differs; the plan cache holds it
  bool is_current = false;          // it was made for what differs now
  uint32_t made = 0;                // such plans, without those that the cache dropped

  explicit NumberHistory(std::span<const NumberSite> sites, const std::shared_ptr<ReadyPlan>& plan);
  /// Notes what differs from the first graph; false if one of these stays a constant.
  bool note(std::span<const NumberSite> sites);
  /// Makes the next plan take all numbers that may be given at launch.
  void take_all();
  bool takes(size_t site) const { return differs[site] != 0 && stays[site] == 0; }
};

/// By the graph's key without numbers.
using NumberHistories = RecentCache<std::shared_ptr<NumberHistory>>;

/// The numbers that a plan of the graph may take now: none in a recording, which keeps its numbers.
std::vector<NumberSite> sites_to_give(const CanonicalGraph& graph);

/// Notes the first plan of graphs with this key.
void note_numbers(NumberHistories& histories, const Hash128& key, std::span<const NumberSite> sites,
                  const std::shared_ptr<ReadyPlan>& plan);

/// Whether each kernel takes few enough numbers.
bool may_take_numbers(const schedule::Plan& plan, uint32_t max_params);

/// The key of the plan that takes what is `given` and has the other numbers as constants.
/// `without_numbers`: the graph's key.
Hash128 key_of_taking(const Hash128& without_numbers, std::span<const NumberSite> sites,
                      std::span<const uint8_t> given);

/// Makes a plan that takes the numbers of these sites (CanonicalGraph::copy()), with the kernels'
/// schedules of `like` if given; null if its kernels take too many.
using MakeTaking = std::function<std::shared_ptr<ReadyPlan>(std::span<const uint8_t> given,
                                                            const ReadyPlan* like)>;

/// The plan that takes what differs; null if the graph needs constants. Errors: those of `make`,
/// but not CompileError and Unsupported, after which the numbers stay constants.
std::shared_ptr<ReadyPlan> plan_taking_numbers(NumberHistory& history,
                                               std::span<const NumberSite> sites,
                                               const MakeTaking& make);

/// Keeps as constants the numbers of the kernels that are not the same program as those of the plan
/// with the first numbers; returns whether there was none.
bool keep_where_programs_differ(NumberHistory& history, const ReadyPlan& taking,
                                const ReadyPlan& with_constants, std::span<const NumberSite> sites);

/// The bits that launches take: of each number, then of its negative.
std::vector<uint64_t> launch_bits(std::span<const NumberSite> sites);

}  // namespace plugrad::engine
