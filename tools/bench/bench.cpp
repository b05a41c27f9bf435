// Measures this machine and prints the rows; the measurements are in bench/.
#include "bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "against.h"
#include "base/check.h"
#include "base/file.h"
#include "base/settings.h"
#include "bench/isa.h"
#include "bench/peers/peers.h"
#include "bench/roofline/limits.h"
#include "bench/roofline/roofline.h"
#include "bench/suites.h"
#include "corpus.h"
#include "isas.h"
#include "models/find_models.h"
#include "onnx_files.h"
#include "plugrad/tensor.h"
#include "runtime/registry.h"

namespace plugrad::tools {
namespace {

nlohmann::ordered_json to_json(const bench::Result& result) {
  nlohmann::ordered_json row = {
      {"name", result.name}, {"value", result.value}, {"unit", result.unit}};
  row["peer"] = result.peer ? nlohmann::ordered_json(result.peer->name) : nullptr;
  row["peer_value"] = result.peer ? nlohmann::ordered_json(result.peer->value) : nullptr;
  row["ratio"] = result.peer ? nlohmann::ordered_json(result.ratio()) : nullptr;
  if (!result.peers.empty()) row["peers"] = nlohmann::ordered_json::object();
  for (const bench::Peer& peer : result.peers) row["peers"][peer.name] = peer.value;
  if (result.peak_bytes > 0) row["peak_bytes"] = result.peak_bytes;
  return row;
}

nlohmann::ordered_json to_json(const std::vector<bench::Result>& results, const std::string& suites,
                               const bench::Peers& peers) {
  nlohmann::ordered_json document = {
      {"machine", bench::describe_machine()}, {"suite", suites},
      {"isa", bench::chosen_isa().name},      {"arch", default_arch()},
      {"peer_isas", peer_isas_json(peers)},   {"results", nlohmann::ordered_json::array()}};
  for (const bench::Result& result : results) document["results"].push_back(to_json(result));
  return document;
}

std::string ratio_text(double ratio) {
  return ratio < 0.05 ? fmt::format("{:5.2g}", ratio) : fmt::format("{:5.2f}", ratio);
}

void print_result(const bench::Result& result) {
  const std::string memory =
      result.peak_bytes > 0
          ? fmt::format("{:.1f} MB", static_cast<double>(result.peak_bytes) * 1e-6)
          : "";
  fmt::print("{:<44}{:>10.4g} {:<10}{:>10}  ", result.name, result.value, result.unit, memory);
  if (result.peer)
    fmt::print("ratio {}   {} {:.4g}", ratio_text(result.ratio()), result.peer->name,
               result.peer->value);
  std::string others;
  for (const bench::Peer& peer : result.peers)
    if (!result.peer || peer.name != result.peer->name)
      others += fmt::format(", {} {:.4g}", peer.name, peer.value);
  if (!others.empty()) fmt::print("{}({})", result.peer ? " " : "", others.substr(2));
  fmt::print("\n");
  std::fflush(stdout);
}

bench::Choice read_choice(const Parsed& parsed) {
  bench::Choice choice{.suites = parsed.get<Arguments>("suite"),
                       .filter = parsed.get<std::string>("filter"),
                       .threads = parsed.get<int>("threads")};
  Arguments known = bench::suite_names();
  known.emplace_back("corpus");
  for (const std::string& name : choice.suites)
    require_choice("suite", name, known, bench_syntax().usage);
  return choice;
}

Arguments read_peers(const Parsed& parsed, bool is_corpus) {
  Arguments known_peers;
  for (const bench::PeerProgram& program : bench::peer_programs())
    known_peers.emplace_back(program.name);
  Arguments usual = known_peers;
  if (is_corpus) {
    known_peers = corpus_peers();
    usual = {"openblas", "onednn", "pytorch-tuned"};  // the others are rarely fastest
  }
  const Arguments peers = parsed.has("peers") ? parsed.get<Arguments>("peers") : usual;
  for (const std::string& name : peers)
    if (name != "none" &&
        std::find(known_peers.begin(), known_peers.end(), name) == known_peers.end())
      throw UsageError(fmt::format("there is no peer {}{}\nthere are none (of them), {}", name,
                                   did_you_mean(name, known_peers), fmt::join(known_peers, ", ")));
  return peers;
}

// Must run before the registry reads the settings.
void choose_isa(const std::string& name) {
  if (name.empty()) return;
  Arguments known;
  for (const bench::Isa& isa : bench::isas()) known.emplace_back(isa.name);
  require_choice("isa", name, known, bench_syntax().usage);
  for (const bench::Isa& isa : bench::isas())
    if (name == isa.name) change_settings([&](Settings& s) { s.cpu_target = isa.target; });
}

void print_rows(const std::vector<std::string>& names, bool json) {
  auto rows = nlohmann::ordered_json::array();
  for (const std::string& name : names)
    if (json)
      rows.push_back({{"name", name}});
    else
      fmt::print("{}\n", name);
  if (json) print_json(rows);
}

void print_peers(const bench::Peers& peers, bool json) {
  auto rows = nlohmann::ordered_json::array();
  for (const bench::PeerProgram& program : bench::peer_programs()) {
    const auto process = peers.start(program, 1);
    if (json)
      rows.push_back({{"name", program.name},
                      {"title", program.title},
                      {"installed", process != nullptr},
                      {"isa", process ? nlohmann::ordered_json(process->isa().name) : nullptr}});
    else
      fmt::print("{:<16}{:<24}{}\n", program.name, program.title,
                 process ? fmt::format("installed, runs {}", process->isa().name)
                         : fmt::format("not found: {}", program.remedy));
  }
  if (json) print_json(rows);
}

void require_written(const std::string& path, int error) {
  require(error == 0, "[bench] --roofline {} cannot be written: {}", path, file_error_text(error));
}

// Checked before any measurement.
void require_writable(const std::string& path) {
  if (!path.empty()) require_written(path, check_replaceable(path));
}

void write_roofline(const std::string& path, const std::vector<bench::Result>& results) {
  std::vector<bench::Roof> roofs;
  for (const int threads : std::set<int>{1, thread_count()})
    roofs.push_back({threads, bench::peak_flops(threads), bench::read_bandwidth(threads)});
  const std::string svg = bench::roofline_svg(bench::describe_machine(), roofs, results);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(svg))};
  require_written(path, replace_file(path, parts));
}

// Must run before the device is opened.
void set_options(const std::string& device, const Arguments& given) {
  if (given.empty()) return;
  if (device.empty()) throw UsageError("--option is of a plugin: --device names it");
  runtime::PluginOptions options;
  for (const auto& [key, value] : parse_key_values(given)) options.emplace_back(key, value);
  runtime::Registry::instance().set_plugin_options(device.substr(0, device.find(':')), options);
}

bool is_corpus(const Parsed& parsed) {
  const auto suites = parsed.get<Arguments>("suite");
  const bool found = std::ranges::count(suites, "corpus") > 0;
  if (found && suites.size() > 1)
    throw UsageError(fmt::format("corpus is measured alone\nusage: {}", bench_syntax().usage));
  for (const char* option : {"resume", "results", "family", "model"})
    if (!found && parsed.has(option) && !parsed.values[option].defaulted())
      throw UsageError(
          fmt::format("--{} is of the suite corpus\nusage: {}", option, bench_syntax().usage));
  return found;
}

CorpusRun read_corpus(const Parsed& parsed) {
  const int threads = parsed.get<int>("threads");
  std::vector<int> counts = {1};
  if (thread_count() > 1) counts.push_back(2);
  if (threads > 0) counts = {threads};
  return {.choice = {.family = parsed.get<std::string>("family"),
                     .filter = parsed.get<std::string>("filter"),
                     .threads = counts},
          .results = parsed.get<std::string>("results"),
          .is_resumed = parsed.has("resume"),
          .json = parsed.has("json")};
}

int run_corpus_suite(const Parsed& parsed, const Arguments& names, bench::Peers& peers) {
  const CorpusRun run = read_corpus(parsed);
  if (bench::chosen_rows(run.choice).empty())
    throw UsageError("no row of the corpus has this family and name; --list names all");
  if (parsed.has("list")) {
    print_corpus(run.choice, run.json);
    return kSuccess;
  }
  signal(SIGPIPE, SIG_IGN);
  // The device plans for the process's thread count at opening.
  if (const int threads = parsed.get<int>("threads"); threads > 0)
    change_settings([&](Settings& s) { s.threads = threads; });
  Tensor::from<float>({1}).contiguous().realize();
  return parsed.has("model") ? bench_model(run.choice, run.json) : bench_corpus(run, names, peers);
}

// The suites and options that select measurements, for the command line of another program.
Arguments measured_part(const Parsed& parsed) {
  Arguments words = parsed.get<Arguments>("suite");
  for (const char* name : {"device", "isa"})
    if (const auto value = parsed.get<std::string>(name); !value.empty())
      words.insert(words.end(), {fmt::format("--{}", name), value});
  for (const std::string& option : parsed.get<Arguments>("option"))
    words.insert(words.end(), {"--option", option});
  if (const int threads = parsed.get<int>("threads"); threads > 0)
    words.insert(words.end(), {"--threads", std::to_string(threads)});
  return words;
}

int compare_builds(const OtherBuild& other, const Parsed& parsed, const bench::Choice& choice) {
  std::vector<bench::Result> results;
  const bool json = parsed.has("json");
  other.compare(bench::row_names(choice), measured_part(parsed), [&](const bench::Result& result) {
    results.push_back(result);
    if (!json) print_result(result);
  });
  const auto suites = choice.suites.empty() ? bench::usual_suite_names() : choice.suites;
  nlohmann::ordered_json document =
      to_json(results, fmt::format("{}", fmt::join(suites, ",")), bench::Peers({}));
  document["against"] = other.folder();
  print_json(document);
  return kSuccess;
}

// The ONNX files of `cold --models DIR`; empty without it. Errors: UsageError; User if there is none, or one has no inputs.
std::map<std::string, std::string> cold_files(const Parsed& parsed) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  if (!parsed.has("models") || parsed.get<Arguments>("suite") != Arguments{"cold"}) return files;
  for (const char* option : {"size", "input", "against"})
    if (!parsed.values[option].defaulted())
      throw UsageError(fmt::format("--{} and cold --models do not go together", option));
  const auto given = parsed.get<std::string>("models");
  require(fs::exists(given), "[bench] --models {0}: there is no folder or file {0}", given);
  for (const FoundModel& model : find_models(given, "")) {
    const fs::path inputs = fs::path(model.path).replace_extension();
    require(fs::is_directory(inputs), "[bench] {} needs its inputs as {}/INPUT.npy", model.path,
            inputs.string());
    files["zoo/" + model.id] = model.path;
  }
  return files;
}

// Must run before any device is opened. Errors: UsageError.
std::optional<OtherBuild> read_against(const Parsed& parsed) {
  const auto folder = parsed.get<std::string>("against");
  if (parsed.values["against"].defaulted()) return {};
  if (is_corpus(parsed)) throw UsageError("--against compares no rows of the corpus");
  for (const char* option : {"peers", "roofline", "list", "list-peers"})
    if (parsed.has(option) && !parsed.values[option].defaulted())
      throw UsageError(fmt::format("--against and --{} do not go together", option));
  return OtherBuild(folder);
}

int measure_models(const Parsed& parsed) {
  if (parsed.get<Arguments>("suite") != Arguments{"networks"})
    throw UsageError(fmt::format("--models is of the suite networks or cold, alone\nusage: {}",
                                 bench_syntax().usage));
  const bool json = parsed.has("json");
  const OnnxChoice choice{.models = parsed.get<std::string>("models"),
                          .filter = parsed.get<std::string>("filter"),
                          .sizes = parse_key_values(parsed.get<Arguments>("size"), "size"),
                          .inputs = parse_key_values(parsed.get<Arguments>("input"), "input"),
                          .is_listed = parsed.has("list")};
  std::vector<bench::Result> results;
  const bool ran = measure_onnx_files(choice, [&](const bench::Result& result) {
    results.push_back(result);
    if (!json && !choice.is_listed) print_result(result);
  });
  if (results.empty() && ran)
    throw UsageError(fmt::format("no model has --filter {} in its name", choice.filter));
  if (choice.is_listed) {
    std::vector<std::string> names;
    for (const bench::Result& result : results) names.push_back(result.name);
    print_rows(names, json);
    return kSuccess;
  }
  print_json(to_json(results, "networks", bench::Peers({})));
  return ran ? kSuccess : kFailure;
}

}  // namespace

int measure_rows(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, bench_syntax());
  if (parsed.help) return kSuccess;
  bench::Choice choice = read_choice(parsed);
  choice.files = cold_files(parsed);
  const Arguments names = read_peers(parsed, is_corpus(parsed));
  const std::optional<OtherBuild> other = read_against(parsed);
  bench::Peers peers(names);
  choose_isa(parsed.get<std::string>("isa"));
  const auto device = parsed.get<std::string>("device");
  set_options(device, parsed.get<Arguments>("option"));
  choose_device(device);
  if (parsed.has("models") && choice.files.empty()) return measure_models(parsed);
  if (is_corpus(parsed)) return run_corpus_suite(parsed, names, peers);
  if (bench::row_names(choice).empty())
    throw UsageError(
        "no row is of these suites, this name and so many threads; --list without "
        "them names all");
  if (parsed.has("list")) {
    print_rows(bench::row_names(choice), parsed.has("json"));
    return kSuccess;
  }
  if (parsed.has("list-peers")) {
    print_peers(peers, parsed.has("json"));
    return kSuccess;
  }
  if (other) return compare_builds(*other, parsed, choice);
  const auto roofline = parsed.get<std::string>("roofline");
  require_writable(roofline);
  signal(SIGPIPE, SIG_IGN);  // the death of a peer is detected by its missing answer
  // The device is opened with all threads; a row may restrict their use.
  Tensor::from<float>({1}).contiguous().realize();

  const bool json = parsed.has("json");
  std::vector<bench::Result> results;
  const bool right = bench::run_rows(choice, peers, [&](const bench::Result& result) {
    results.push_back(result);
    if (!json) print_result(result);
  });
  if (!roofline.empty()) write_roofline(roofline, results);
  const auto suites = choice.suites.empty() ? bench::usual_suite_names() : choice.suites;
  if (!json) print_isas(peers);
  print_json(to_json(results, fmt::format("{}", fmt::join(suites, ",")), peers));
  return right ? kSuccess : kFailure;
}

}  // namespace plugrad::tools
