#include "engine/plan/canonical_order.h"

namespace plugrad::engine {
namespace {

// A round of the finaliser of MurmurHash3 (Appleby, 2011).
uint64_t mix(uint64_t x) {
  x *= 0xff51afd7ed558ccdull;
  return x ^ x >> 32;
}

}  // namespace

void StructuralOrder::begin(size_t node_count) {
  sources_.clear();
  roots_.clear();
  own_.clear();
  below_.clear();
  label_.clear();
  exact_.clear();
  numbers_.clear();
  sources_.reserve(node_count);
  own_.reserve(node_count);
  below_.reserve(node_count);
}

// Sources of a commutative op contribute without order.
uint64_t StructuralOrder::combine(uint64_t own, const Sources& sources,
                                  std::span<const uint64_t> of) {
  uint64_t h = mix(own);
  if (sources.is_commutative)
    h += mix(of[sources.first[0]]) + mix(of[sources.first[1]]);
  else
    for (uint32_t i = 0; i < sources.count; ++i) h = mix(h + of[sources.first[i]]);
  return mix(h);
}

void StructuralOrder::add(std::span<const uint64_t> own, size_t numbers,
                          std::span<const uint32_t> sources, bool is_commutative) {
  uint64_t h = own.size();
  if (numbers != 0) {
    uint64_t of_numbers = 0;
    for (uint64_t word : own.last(numbers)) of_numbers = mix(of_numbers + word);
    numbers_.emplace_back(static_cast<uint32_t>(own_.size()), of_numbers);
    own = own.first(own.size() - numbers);
  }
  for (uint64_t word : own) h = mix(h + word);
  own_.push_back(h);
  sources_.push_back({sources.data(), static_cast<uint32_t>(sources.size()), is_commutative});
  below_.push_back(combine(h, sources_.back(), below_));
}

bool StructuralOrder::comes_first(uint32_t a, uint32_t b) {
  if (below_[a] != below_[b]) return below_[a] < below_[b];
  if (label_.empty()) label_all();
  if (label_[a] != label_[b] || numbers_.empty()) return label_[a] < label_[b];
  if (exact_.empty()) label_with_numbers();
  return exact_[a] < exact_[b];
}

void StructuralOrder::label_with_numbers() {
  std::vector<uint64_t> own = own_;
  for (const auto& [node, number] : numbers_) own[node] = mix(own[node] + number);
  for (size_t i = 0; i < sources_.size(); ++i)
    exact_.push_back(combine(own[i], sources_[i], exact_));
}

void StructuralOrder::label_all() {
  use_.assign(sources_.size(), 0);
  for (size_t i = 0; i < roots_.size(); ++i) use_[roots_[i]] += mix(i + 1);
  for (size_t i = sources_.size(); i-- > 0;) {
    const Sources& sources = sources_[i];
    const uint64_t user = mix(use_[i] + below_[i]);
    for (uint32_t argument = 0; argument < sources.count; ++argument)
      use_[sources.first[argument]] += mix(user + (sources.is_commutative ? 0 : argument));
  }
  for (size_t i = 0; i < sources_.size(); ++i)
    label_.push_back(combine(own_[i] + mix(use_[i]), sources_[i], label_));
}

}  // namespace plugrad::engine
