#include "bench/corpus/summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/corpus/rows.h"

namespace plugrad::bench {
namespace {

bool is_lower(const CorpusResult& a, const CorpusResult& b) {
  return a.result.ratio() < b.result.ratio();
}

FamilySummary family_summary(const std::string& family, int threads,
                             const std::vector<CorpusResult>& results) {
  FamilySummary out{family, threads, 0, 0, INFINITY, 0, 0};
  double logarithms = 0;
  for (const CorpusResult& r : results) {
    if (r.family != family || r.threads != threads) continue;
    if (r.is_wrong) ++out.wrong;
    if (!r.has_ratio()) continue;
    const double ratio = r.result.ratio();
    ++out.rows;
    logarithms += std::log(ratio);
    out.least = std::min(out.least, ratio);
    if (ratio < kCorpusFloor) ++out.below;
  }
  if (out.rows > 0) out.mean = std::exp(logarithms / static_cast<double>(out.rows));
  return out;
}

}  // namespace

std::vector<FamilySummary> summarise(const std::vector<CorpusResult>& results) {
  std::set<int> threads;
  for (const CorpusResult& r : results) threads.insert(r.threads);
  std::vector<FamilySummary> out;
  for (const int count : threads)
    for (const std::string& family : corpus_families()) {
      const FamilySummary summary = family_summary(family, count, results);
      if (summary.rows + summary.wrong > 0) out.push_back(summary);
    }
  return out;
}

std::vector<CorpusResult> worst_rows(std::vector<CorpusResult> results, size_t count) {
  std::erase_if(results, [](const CorpusResult& r) { return !r.has_ratio(); });
  std::ranges::stable_sort(results, is_lower);
  results.resize(std::min(results.size(), count));
  return results;
}

CorpusResult middle_run(std::vector<CorpusResult> runs) {
  std::ranges::stable_sort(runs, is_lower);
  CorpusResult middle = runs[runs.size() / 2];
  middle.runs = static_cast<int>(runs.size());
  return middle;
}

}  // namespace plugrad::bench
