#include "engine/lengths/length_history.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/log.h"
#include "engine/numbers/number_history.h"

namespace plugrad::engine {
namespace {

constexpr uint32_t kMostLengthPlans = 8;  // of one family
constexpr size_t kMostFamilies = 16, kMostSamples = 16;
constexpr size_t kMostLengths = 1024;  // whose calls are counted

// The size that changes least: the others are its multiples. Of equal ones the first, which is one of
// an operand, if an operand changes.
std::optional<size_t> length_of(std::span<const int64_t> was, std::span<const int64_t> is) {
  std::optional<size_t> least;
  for (size_t i = 0; i < is.size(); ++i) {
    const int64_t change = std::abs(is[i] - was[i]);
    if (change != 0 && (!least || change < std::abs(is[*least] - was[*least]))) least = i;
  }
  return least;
}

std::optional<Line> line_through(int64_t x0, int64_t y0, int64_t x1, int64_t y1) {
  if ((y1 - y0) % (x1 - x0) != 0) return {};
  const int64_t by = (y1 - y0) / (x1 - x0);
  return Line{by, y0 - by * x0};
}

int64_t power_below(int64_t length) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(length)));
}
int64_t power_above(int64_t length) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
}

}  // namespace

bool LengthPlan::serves(const LengthSample& sample) const {
  const int64_t n = length_of(sample);
  if (n < form.bounds.least || n > form.bounds.most) return false;
  for (size_t i = 0; i < form.sizes.size(); ++i)
    if (form.sizes[i].at(n) != sample.sizes[i]) return false;
  for (size_t i = 0; i < form.sites.size(); ++i)
    if (form.given[i] == 0 && form.sites[i].bits != sample.sites[i].bits) return false;
  return true;
}

std::vector<uint64_t> LengthPlan::launch_bits(const LengthSample& sample) const {
  std::vector<uint64_t> bits = engine::launch_bits(sample.sites);
  for (const Line& start : starts)
    bits.insert(bits.end(), {static_cast<uint64_t>(start.at(length_of(sample))), 0});
  return bits;
}

std::optional<LengthFamily> LengthFamily::of(const LengthSample& a, const LengthSample& b,
                                             const LengthSample& c) {
  LengthFamily family;
  const auto length = engine::length_of(a.sizes, b.sizes);
  if (!length) return {};
  family.length_ = *length;
  const int64_t at_a = a.sizes[*length], at_b = b.sizes[*length];
  if (c.sizes[*length] == at_a || c.sizes[*length] == at_b) return {};
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    const auto line = line_through(at_a, a.sizes[i], at_b, b.sizes[i]);
    if (!line) return {};
    family.sizes_.push_back(*line);
  }
  if (!family.has(c)) return {};
  family.first_ = a.sites;
  family.given_.resize(a.sites.size());
  family.least_ = family.largest_ = at_a;
  for (const LengthSample* sample : {&b, &c}) family.see(*sample);
  return family;
}

bool LengthFamily::has(const LengthSample& sample) const {
  const int64_t n = sample.sizes[length_];
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (sizes_[i].at(n) != sample.sizes[i]) return false;
  return true;
}

void LengthFamily::see(const LengthSample& sample) {
  least_ = std::min(least_, sample.sizes[length_]);
  largest_ = std::max(largest_, sample.sizes[length_]);
  for (size_t i = 0; i < first_.size(); ++i) given_[i] |= first_[i].bits != sample.sites[i].bits;
}

// A plan for fewer lengths than the calls have is slower than those that these get for themselves.
bool LengthFamily::is_frequent(int64_t length) {
  constexpr uint32_t kCalls = 8, kShare = 8;
  if (calls_of_.size() >= kMostLengths) {
    calls_of_.clear();
    calls_ = 0;
  }
  ++calls_;
  const uint32_t calls = ++calls_of_[length];
  return calls > kCalls && calls * kShare >= calls_;
}

void LengthFamily::refuse(std::string_view why) {
  refused_ = fmt::format("each length has kernels of its own: {}", why);
  plan_.reset();
  log_line(LogLevel::Info, refused_);
}

std::shared_ptr<LengthPlan> LengthFamily::plan_for(const LengthSample& sample, const Make& make) {
  if (!refused_.empty() || sample.sizes[length_] < 1) return nullptr;
  if (is_frequent(sample.sizes[length_])) return nullptr;
  if (plan_ && plan_->serves(sample) && !plan_->ready.expired()) return plan_;
  see(sample);
  if (!plan_ || !plan_->ready.expired()) ++made_;
  if (made_ > kMostLengthPlans) {
    refuse("other sizes or numbers differ each time");
    return nullptr;
  }
  constexpr int64_t kLeastBound = 64;
  const LengthBounds bounds = {std::max<int64_t>(1, power_below(std::max<int64_t>(least_, 1)) / 2),
                               std::max(kLeastBound, 2 * power_above(largest_))};
  try {
    plan_ = make({sizes_, length_, first_, given_, bounds});
  } catch (const Error& error) {
    if (!dynamic_cast<const CompileError*>(&error) && error.kind() != ErrorKind::Unsupported) throw;
    refuse(error.what());
    return nullptr;
  }
  return plan_->serves(sample) ? plan_ : nullptr;
}

std::pair<std::shared_ptr<LengthPlan>, LengthFamily*> LengthHistory::plan_for(
    const LengthSample& sample, const LengthFamily::Make& make) {
  const auto found = std::ranges::find_if(families_, [&](const auto& f) { return f.has(sample); });
  if (found != families_.end()) {
    families_.splice(families_.begin(), families_, found);
    families_.front().note_sample();
    return {families_.front().plan_for(sample, make), &families_.front()};
  }
  for (size_t i = samples_.size(); i-- > 0;)
    for (size_t j = i; j-- > 0;) {
      auto family = LengthFamily::of(samples_[j], samples_[i], sample);
      if (!family || !may_add(*family)) continue;
      samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(i));
      samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(j));
      if (families_.size() == kMostFamilies) families_.pop_back();
      families_.push_front(*std::move(family));
      return {families_.front().plan_for(sample, make), &families_.front()};
    }
  return {};
}

// Three widths that come with each of many lengths are no family for each length.
bool LengthHistory::may_add(const LengthFamily& family) const {
  constexpr int kMostBarren = 3;
  return std::ranges::count_if(families_, [&](const LengthFamily& other) {
           return other.is_barren_beside(family);
         }) < kMostBarren;
}

void LengthHistory::note_exact(LengthSample sample) {
  const auto has = [&](const LengthFamily& family) { return family.has(sample); };
  const auto is_known = [&](const LengthSample& s) { return s.sizes == sample.sizes; };
  if (std::ranges::any_of(families_, has) || std::ranges::any_of(samples_, is_known)) return;
  if (samples_.size() == kMostSamples) samples_.erase(samples_.begin());
  samples_.push_back(std::move(sample));
}

}  // namespace plugrad::engine
