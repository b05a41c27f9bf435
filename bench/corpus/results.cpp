#include "bench/corpus/results.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <sstream>

#include "base/check.h"
#include "base/file.h"

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
  text_ = run.dump() + "\n";
  for (const CorpusResult& result : results_) text_ += to_json(result).dump() + "\n";
  write();
}

void ResultFile::read(const Json& run) {
  const auto bytes = read_file(path_);
  require(bytes || errno == ENOENT, "[bench] {} cannot be read: {}", path_, file_error_text(errno));
  if (!bytes) return;  // no previous run
  std::istringstream file(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  std::string line;
  if (!std::getline(file, line)) return;
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
    } catch (const Json::exception&) {  // measured again
    }
  }
}

bool ResultFile::has(const std::string& name, int threads) const {
  return std::ranges::any_of(
      results_, [&](const CorpusResult& r) { return r.name == name && r.threads == threads; });
}

void ResultFile::add(const CorpusResult& result) {
  results_.push_back(result);
  text_ += to_json(result).dump() + "\n";
  write();
}

// Rewrites the whole file after each row: a row takes seconds to measure, and the file is small.
void ResultFile::write() const {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text_))};
  const int error = replace_file(path_, parts);
  require(error == 0, "[bench] {} cannot be written: {}", path_, file_error_text(error));
}

}  // namespace plugrad::bench
