#include "engine/numbers/number_history.h"

#include <algorithm>
#include <bit>

#include "base/settings.h"
#include "codegen/analysis/same_program.h"
#include "engine/recording/call_observer.h"
#include "engine/refine/promotion.h"
#include "ir/kernel_ast.h"

namespace plugrad::engine {

std::vector<NumberSite> sites_to_give(const CanonicalGraph& graph) {
  constexpr size_t kMostSites = 256;
  if (!settings().lift || CallObserver::active()) return {};
  std::vector<NumberSite> sites = graph.number_sites();
  if (sites.size() > kMostSites)
    std::erase_if(sites, [](const NumberSite& s) { return s.axis != NumberSite::kConstant; });
  if (sites.size() > kMostSites) sites.clear();
  return sites;
}

void note_numbers(NumberHistories& histories, const Hash128& key, std::span<const NumberSite> sites,
                  const std::shared_ptr<ReadyPlan>& plan) {
  if (sites.empty()) return;
  if (const auto* known = histories.find(key)) {
    if ((*known)->plan_of_first.expired()) **known = NumberHistory(sites, plan);
    return;
  }
  constexpr size_t kHistory = 256, kSite = sizeof(uint64_t) + 2;
  histories.insert(key, std::make_shared<NumberHistory>(sites, plan),
                   kHistory + kSite * sites.size());
}

NumberHistory::NumberHistory(std::span<const NumberSite> sites,
                             const std::shared_ptr<ReadyPlan>& plan)
    : plan_of_first(plan), differs(sites.size()), stays(sites.size()) {
  for (const NumberSite& site : sites) first.push_back(site.bits);
}

bool NumberHistory::note(std::span<const NumberSite> sites) {
  bool may_take = true;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (sites[i].bits == first[i]) continue;
    if (stays[i] != 0) may_take = false;
    if (differs[i] == 0 && stays[i] == 0) is_current = false;
    differs[i] = 1;
  }
  return may_take;
}

void NumberHistory::take_all() {
  std::ranges::fill(differs, 1);
}

namespace {

bool is_same_buffer(const schedule::PlannedBuffer& a, const schedule::PlannedBuffer& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.elem_count == b.elem_count;
}

bool is_same_step(const schedule::Step& a, const schedule::Step& b) {
  return a.kind == b.kind && a.device == b.device && a.buffers == b.buffers;
}

// A kernel that got its frugal schedule from the constants' kernel gets the full one from it too.
void promote_alike(ReadyKernel& taking, const ReadyKernel& with_constants,
                   std::span<const uint64_t> numbers) {
  if (!with_constants.promotion || taking.promotion) return;
  taking.promotion =
      with_constants.promotion->of_taking({taking.ast, &taking.kernel->device()}, numbers);
}

}  // namespace

bool keep_where_programs_differ(NumberHistory& history, const ReadyPlan& taking,
                                const ReadyPlan& with_constants,
                                std::span<const NumberSite> sites) {
  const auto& steps = taking.plan.steps;
  if (!std::ranges::equal(steps, with_constants.plan.steps, is_same_step) ||
      !std::ranges::equal(taking.plan.buffers, with_constants.plan.buffers, is_same_buffer)) {
    std::ranges::fill(history.stays, 1);
    return false;
  }
  bool are_same = true;
  std::vector<NumberSite> first(sites.begin(), sites.end());
  for (size_t i = 0; i < first.size(); ++i) first[i].bits = history.first[i];
  const std::vector<uint64_t> bits = launch_bits(first);
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!taking.kernels[i] || taking.kernels[i] == with_constants.kernels[i]) continue;
    numbers.clear();
    for (const uint32_t number : steps[i].numbers) numbers.push_back(bits[number]);
    if (codegen::is_same_program(with_constants.kernels[i]->code.ir, taking.kernels[i]->code.ir,
                                 numbers)) {
      promote_alike(*taking.kernels[i], *with_constants.kernels[i], numbers);
      continue;
    }
    are_same = false;
    if (steps[i].numbers.empty()) std::ranges::fill(history.stays, 1);
    for (const uint32_t number : steps[i].numbers) history.stays[number / 2] = 1;
  }
  return are_same;
}

Hash128 key_of_taking(const Hash128& without_numbers, std::span<const NumberSite> sites,
                      std::span<const uint8_t> given) {
  std::vector<uint64_t> words = {without_numbers.high, without_numbers.low};
  for (size_t i = 0; i < sites.size(); ++i)
    words.insert(words.end(), {uint64_t{given[i]}, given[i] != 0 ? 0 : sites[i].bits});
  return hash128(std::as_bytes(std::span(words)));
}

std::vector<uint64_t> launch_bits(std::span<const NumberSite> sites) {
  std::vector<uint64_t> bits;
  for (const NumberSite& site : sites) {
    if (site.axis != NumberSite::kConstant) {
      bits.insert(bits.end(), {site.bits, 0});
      continue;
    }
    const DType dtype = launch_dtype(site.dtype);
    const uint64_t negative = is_float(dtype) ? bits_of(-std::bit_cast<double>(site.bits), dtype)
                                              : bits_of(-static_cast<int64_t>(site.bits), dtype);
    bits.push_back(storage_bits(site.bits, dtype));
    bits.push_back(storage_bits(negative, dtype));
  }
  return bits;
}

}  // namespace plugrad::engine
