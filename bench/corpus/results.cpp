#include "bench/corpus/results.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/check.h"

namespace plugrad::bench {
namespace {

using Json = nlohmann::ordered_json;

CorpusResult from_json(const Json& line) {
  CorpusResult out{.name = line.at("name"),
                   .network = line.at("network"),
                   .family = line.at("family"),
                   .threads = line.at("threads"),
                   .runs = line.at("runs"),
                   .is_wrong = line.at("wrong"),
                   .result = {}};
  out.result.name = out.name;
  if (out.is_wrong) return out;
  out.result.value = line.at("value");
  out.result.unit = line.at("unit");
  for (const auto& [name, value] : line.at("peers").items())
    out.result.peers.push_back({name, value});
  if (!line.at("peer").is_null()) out.result.peer = Peer{line.at("peer"), line.at("peer_value")};
  return out;
}

}  // namespace

Json to_json(const CorpusResult& r) {
  Json line = {{"name", r.name},       {"network", r.network}, {"family", r.family},
               {"threads", r.threads}, {"runs", r.runs},       {"wrong", r.is_wrong}};
  if (r.is_wrong) return line;
  line["value"] = r.result.value;
  line["unit"] = r.result.unit;
  line["peer"] = r.result.peer ? Json(r.result.peer->name) : nullptr;
  line["peer_value"] = r.result.peer ? Json(r.result.peer->value) : nullptr;
  line["ratio"] = r.result.peer ? Json(r.result.ratio()) : nullptr;
  line["peers"] = Json::object();
  for (const Peer& peer : r.result.peers) line["peers"][peer.name] = peer.value;
  return line;
}

ResultFile::ResultFile(std::string path, const Json& run, bool is_resumed)
    : path_(std::move(path)) {
  if (is_resumed) read(run);
  std::ofstream(path_, std::ios::trunc);
  append(run.dump());
  for (const CorpusResult& result : results_) append(to_json(result).dump());
}

void ResultFile::read(const Json& run) {
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line)) return;  // nothing to resume
  const Json header = Json::parse(line, nullptr, false);
  require(header == run,
          "[bench] {} holds results of another run ({}) than this one ({}); without --resume it is "
          "begun anew",
          path_, line, run.dump());
  while (std::getline(file, line)) {
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_discarded()) continue;
    try {
      results_.push_back(from_json(row));
    } catch (const Json::exception&) {  // it is measured again
    }
  }
}

bool ResultFile::has(const std::string& name, int threads) const {
  return std::ranges::any_of(
      results_, [&](const CorpusResult& r) { return r.name == name && r.threads == threads; });
}

void ResultFile::add(const CorpusResult& result) {
  results_.push_back(result);
  append(to_json(result).dump());
}

void ResultFile::append(const std::string& line) {
  std::ofstream file(path_, std::ios::app);
  file << line << "\n";
  require(bool(file.flush()), "[bench] {} cannot be written: {}", path_, std::strerror(errno));
}

}  // namespace plugrad::bench
