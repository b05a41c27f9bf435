#include "corpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/storage/disk_cache.h"
#include "bench/corpus/model.h"
#include "bench/corpus/summary.h"
#include "bench/isa.h"
#include "command.h"
#include "isas.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorst = 10;

// Results are comparable only if all of these are equal.
Json describe_run(const std::vector<std::string>& peers) {
  return {{"corpus", 1},
          {"machine", bench::describe_machine()},
          {"isa", bench::chosen_isa().name},
          {"arch", default_arch()},
          {"peers", peers}};
}

std::string results_path(const std::string& given) {
  if (!given.empty()) return given;
  require(!cache_directory().empty(), "[bench] there is no cache folder: --results names a file");
  return fmt::format("{}/bench-corpus-{}.jsonl", cache_directory(), bench::chosen_isa().name);
}

void print_row(const bench::CorpusResult& r) {
  const bench::Result& of = r.result;
  const std::string ours = r.is_wrong ? "wrong" : fmt::format("{:.4g} {}", of.value, of.unit);
  fmt::print("{:<84} {} thread{} {:>16}", r.name, r.threads, r.threads == 1 ? " " : "s", ours);
  if (r.has_ratio())
    fmt::print("  ratio {:5.2f}   {} {:.4g}", of.ratio(), of.peer->name, of.peer->value);
  fmt::print("{}\n", r.runs > 1 ? fmt::format(" ({} runs)", r.runs) : "");
  std::fflush(stdout);
}

void print_summary(const std::vector<bench::CorpusResult>& results, const bench::Peers& peers) {
  fmt::print("\n{:<16}{:>8}{:>6}{:>10}{:>8}{:>12}{:>7}\n", "family", "threads", "rows", "geo. mean",
             "least", "below 0.8", "wrong");
  for (const bench::FamilySummary& s : bench::summarise(results))
    fmt::print("{:<16}{:>8}{:>6}{:>10.2f}{:>8.2f}{:>12}{:>7}\n", s.family, s.threads, s.rows,
               s.mean, s.least, s.below, s.wrong);
  fmt::print("\nthe {} worst\n", kWorst);
  for (const bench::CorpusResult& r : bench::worst_rows(results, kWorst)) print_row(r);
  print_isas(peers);
}

Json summary_json(const std::vector<bench::CorpusResult>& results, const Json& run,
                  const bench::Peers& peers) {
  Json document = run;
  document["peer_isas"] = peer_isas_json(peers);
  document["families"] = Json::array();
  for (const bench::FamilySummary& s : bench::summarise(results))
    document["families"].push_back({{"family", s.family},
                                    {"threads", s.threads},
                                    {"rows", s.rows},
                                    {"geometric_mean", s.rows > 0 ? Json(s.mean) : nullptr},
                                    {"least", s.rows > 0 ? Json(s.least) : nullptr},
                                    {"below_floor", s.below},
                                    {"wrong", s.wrong}});
  for (const char* key : {"worst", "results"}) document[key] = Json::array();
  for (const bench::CorpusResult& r : bench::worst_rows(results, kWorst))
    document["worst"].push_back(r.name);
  for (const bench::CorpusResult& r : results) document["results"].push_back(to_json(r));
  return document;
}

void print_row(const bench::ModelRow& r) {
  fmt::print("{:<84} {} thread{} {:>10.4g} us predicted {:>10.4g} us measured {:6.2f}\n", r.name,
             r.threads, r.threads == 1 ? " " : "s", r.predicted * 1e6, r.measured * 1e6,
             r.predicted / r.measured);
  std::fflush(stdout);
}

Json model_json(const std::vector<bench::ModelRow>& rows) {
  Json document = describe_run({});
  document["families"] = document["results"] = Json::array();
  for (const bench::ModelSummary& s : bench::summarise(rows))
    document["families"].push_back(to_json(s));
  for (const bench::ModelRow& row : rows) document["results"].push_back(to_json(row));
  return document;
}

}  // namespace

int bench_model(const bench::CorpusChoice& choice, bool json) {
  std::vector<bench::ModelRow> rows;
  bench::run_model(choice, [&](const bench::ModelRow& row) {
    rows.push_back(row);
    if (!json) print_row(row);
  });
  if (json) return print_json(model_json(rows)), kSuccess;
  fmt::print("\n{:<16}{:>8}{:>6}{:>18}{:>22}{:>8}\n", "family", "threads", "rows",
             "rank correlation", "predicted / measured", "spread");
  for (const bench::ModelSummary& s : bench::summarise(rows))
    fmt::print("{:<16}{:>8}{:>6}{:>18.3f}{:>22.2f}{:>8.2f}\n", s.family, s.threads, s.rows,
               s.rank_correlation, s.ratio, s.spread);
  return kSuccess;
}

const std::vector<std::string>& corpus_peers() {
  static const std::vector<std::string> names = {"openblas", "onednn", "pytorch-tuned", "blis",
                                                 "pytorch"};
  return names;
}

void print_corpus(const bench::CorpusChoice& choice, bool json) {
  Json rows = Json::array();
  for (const bench::CorpusRow& row : bench::chosen_rows(choice))
    if (json)
      rows.push_back({{"name", row.item.name},
                      {"network", row.network},
                      {"family", row.family},
                      {"count", row.count}});
    else
      fmt::print("{}\n", row.item.name);
  if (json) print_json(rows);
}

int bench_corpus(const CorpusRun& run, const std::vector<std::string>& names, bench::Peers& peers) {
  const Json header = describe_run(names);
  const std::string path = results_path(run.results);
  bench::ResultFile file(path, header, run.is_resumed);
  const size_t kept = file.results().size();
  if (!run.json) fmt::print("results are kept in {}; {} are there\n", path, kept);
  bench::run_corpus(run.choice, peers, file, [&](const bench::CorpusResult& result) {
    if (!run.json) print_row(result);
  });
  if (!run.json) print_summary(file.results(), peers);
  if (run.json) print_json(summary_json(file.results(), header, peers));
  const bool wrong = std::ranges::any_of(file.results(), &bench::CorpusResult::is_wrong);
  return wrong ? kFailure : kSuccess;
}

}  // namespace plugrad::tools
