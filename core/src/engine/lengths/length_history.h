// A record of graphs that differ in sizes and numbers alone: from the third size on, one plan serves
// all up to a bound.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/lengths/any_length.h"
#include "engine/plan/ready_plan.h"
#include "engine/recent_cache.h"

namespace plugrad::engine {

/// The sizes and constants of a graph, which differ among those of one history.
struct LengthSample {
  std::vector<int64_t> sizes;
  std::vector<NumberSite> sites;
};

/// A plan for several lengths, and how a call gives it what it takes.
struct LengthPlan {
  LengthForm form;
  Lines starts;
  std::vector<Lines> inputs, roots;
  uint32_t device = 0;
  std::weak_ptr<ReadyPlan> ready;  // the plan cache holds it
  Hash128 key;                     // there

  /// Errors: Unsupported if too many rows were copied in or out of memory of the largest size.
  void require_few_rows() const;
  int64_t length_of(const LengthSample& sample) const { return sample.sizes[form.length]; }
  /// Whether the plan computes what the sample's graph does.
  bool serves(const LengthSample& sample) const;
  /// The bits that launches take.
  std::vector<uint64_t> launch_bits(const LengthSample& sample) const;
};

/// Samples whose sizes are lines by one length.
class LengthFamily {
 public:
  /// Makes a plan for a form. Errors: Unsupported, saying why, if none serves it.
  using Make = std::function<std::shared_ptr<LengthPlan>(LengthForm form)>;

  /// The family of three samples; nothing if their sizes are no lines.
  static std::optional<LengthFamily> of(const LengthSample& a, const LengthSample& b,
                                        const LengthSample& c);
  bool has(const LengthSample& sample) const;
  void note_sample() { ++samples_; }
  /// The plan for a sample of the family; null where kernels of its own serve it better.
  std::shared_ptr<LengthPlan> plan_for(const LengthSample& sample, const Make& make);
  /// Each length gets a plan of its own from now on.
  void refuse(std::string_view why);
  /// Empty if there may be plans for several lengths.
  const std::string& refused() const { return refused_; }
  /// Whether only the sample had it that made it a family, of lengths at the same place as `other`.
  bool is_barren_beside(const LengthFamily& other) const {
    return samples_ == 0 && length_ == other.length_;
  }

 private:
  void see(const LengthSample& sample);
  bool is_frequent(int64_t length);

  Lines sizes_;
  size_t length_ = 0;              // index of the size that is the length
  std::vector<NumberSite> first_;  // numbers of the first sample
  std::vector<uint8_t> given_;     // which have differed
  int64_t least_ = 0, largest_ = 0;
  std::shared_ptr<LengthPlan> plan_;
  uint32_t made_ = 0;
  std::unordered_map<int64_t, uint32_t> calls_of_;
  uint32_t calls_ = 0;
  uint32_t samples_ = 0;  // after those that made it a family
  std::string refused_;
};

class LengthHistory {
 public:
  /// The plan for the sample, and its family; null where none serves it.
  std::pair<std::shared_ptr<LengthPlan>, LengthFamily*> plan_for(const LengthSample& sample,
                                                                 const LengthFamily::Make& make);
  /// A plan of its own was made for it.
  void note_exact(LengthSample sample);
  /// Nodes that plans of such graphs should store: ReadyPlan::needed_again.
  const std::shared_ptr<std::vector<uint32_t>>& needed_again() const { return needed_again_; }

 private:
  bool may_add(const LengthFamily& family) const;

  std::shared_ptr<std::vector<uint32_t>> needed_again_ = std::make_shared<std::vector<uint32_t>>();
  std::list<LengthFamily> families_;   // the latest first
  std::vector<LengthSample> samples_;  // of none
};

/// By the graph's key without sizes and numbers.
using LengthHistories = RecentCache<std::shared_ptr<LengthHistory>>;

}  // namespace plugrad::engine
