#include "bench/corpus/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "bench/corpus/summary.h"
#include "bench/rows/versus.h"
#include "engine/session.h"

namespace plugrad::bench {
namespace {

constexpr size_t kRunsBelowFloor = 3;

CorpusResult measure_once(const CorpusRow& row, int threads, Peers& peers) {
  engine::Session::current().collect();
  engine::Session::current().clear_caches();
  Case item = row.item;
  item.threads = threads;
  CorpusResult out{.name = item.name,
                   .network = row.network,
                   .family = row.family,
                   .threads = threads,
                   .result = {}};
  const auto result = measure_case(item, peers);
  out.is_wrong = !result;
  if (result) out.result = *result;
  return out;
}

CorpusResult measure_corpus_row(const CorpusRow& row, int threads, Peers& peers) {
  std::vector<CorpusResult> runs = {measure_once(row, threads, peers)};
  const auto is_low = [](const CorpusResult& r) {
    return r.has_ratio() && r.result.ratio() < kCorpusFloor;
  };
  if (!is_low(runs[0])) return runs[0];
  while (runs.size() < kRunsBelowFloor) {
    runs.push_back(measure_once(row, threads, peers));
    if (!runs.back().has_ratio()) return runs.back();
  }
  return middle_run(std::move(runs));
}

}  // namespace

std::vector<CorpusRow> chosen_rows(const CorpusChoice& choice) {
  const auto& families = corpus_families();
  require(choice.family.empty() || std::ranges::count(families, choice.family) == 1,
          "[bench] there is no family \"{}\" of the corpus; there are {}", choice.family,
          fmt::join(families, ", "));
  std::vector<CorpusRow> rows = corpus_rows();
  std::erase_if(rows, [&](const CorpusRow& row) {
    return (!choice.family.empty() && row.family != choice.family) ||
           row.item.name.find(choice.filter) == std::string::npos;
  });
  return rows;
}

void run_corpus(const CorpusChoice& choice, Peers& peers, ResultFile& file,
                const std::function<void(const CorpusResult&)>& report) {
  const std::vector<CorpusRow> rows = chosen_rows(choice);
  for (const int threads : choice.threads)
    for (const CorpusRow& row : rows) {
      if (file.has(row.item.name, threads)) continue;
      const CorpusResult result = measure_corpus_row(row, threads, peers);
      file.add(result);
      report(result);
    }
}

}  // namespace plugrad::bench
