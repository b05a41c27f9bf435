// plugrad bench: measures this machine; the measurements themselves live in bench/.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <set>

#include "command.h"
#ifdef PLUGRAD_HAS_BENCH
#include "base/check.h"
#include "base/file.h"
#include "base/settings.h"
#include "bench/first_steps.h"
#include "bench/isa.h"
#include "bench/library_peer.h"
#include "bench/limits.h"
#include "bench/peers.h"
#include "bench/roofline.h"
#include "bench/suites.h"
#include "bench_corpus.h"
#include "bench_isas.h"
#include "runtime/registry.h"
#endif
#include "plugrad/tensor.h"

namespace plugrad::tools {
namespace {

constexpr char kUsage[] =
    "plugrad bench [gemm|conv|elementwise|framework|models|halves|networks]… [--filter TEXT] "
    "[--threads N] "
    "[--isa native|v4|v3|v2] [--peers NAME…] [--device D] [--option KEY=VALUE…] "
    "[--roofline FILE.svg] [--list] [--json]\n"
    "plugrad bench corpus [--family NAME] [--filter TEXT] [--threads N] [--isa …] [--peers NAME…] "
    "[--results FILE] [--resume] [--model] [--list] [--json]";

}  // namespace

Syntax bench_syntax() {
  namespace po = boost::program_options;
  Syntax syntax{.usage = kUsage,
                .words = "suite",
                .choices = {{"suite",
                             {"gemm", "conv", "elementwise", "framework", "models", "halves",
                              "networks", "corpus"}}},
                .paths = {"results", "roofline"}};
  auto text = [] { return po::value<std::string>()->default_value(""); };
  syntax.options.add_options()("device", text(), "device to measure")(
      "option", po::value<Arguments>()->default_value({}, "")->composing(),
      "option of the device's plugin, as isa=x86-64-v3 of CPU's")(
      "isa", text(),
      "level of x86-64 that ours and the peers' code is held to; default: PLUGRAD_CPU_TARGET")(
      "filter", text(), "only the row of this name, or those whose name contains it")(
      "threads", po::value<int>()->default_value(0), "only rows that use so many threads")(
      "peers", po::value<Arguments>()->multitoken(),
      "peers to measure beside; default: all that are installed")(
      "family", text(), "only rows of this family of the corpus")(
      "results", text(), "file that keeps the corpus's results; default: in the cache folder")(
      "model", "predicted beside measured times of the corpus's rows, without peers")(
      "resume", "go on with the corpus where its file of results ends")(
      "roofline", text(), "draw the rows into this SVG file")(
      "list", "names of the rows, without measuring")(
      "list-peers", "peers that are installed, and how to install the others")("json",
                                                                               "one JSON document");
#ifdef PLUGRAD_HAS_BENCH
  for (const bench::Isa& isa : bench::isas()) syntax.choices["isa"].emplace_back(isa.name);
  for (const bench::PeerProgram& program : bench::peer_programs())
    syntax.choices["peers"].emplace_back(program.name);
#endif
  return syntax;
}

#ifdef PLUGRAD_HAS_BENCH
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

void print_result(const bench::Result& result) {
  const std::string memory =
      result.peak_bytes > 0
          ? fmt::format("{:.1f} MB", static_cast<double>(result.peak_bytes) * 1e-6)
          : "";
  fmt::print("{:<44}{:>10.4g} {:<10}{:>10}  ", result.name, result.value, result.unit, memory);
  if (result.peer)
    fmt::print("ratio {:5.2f}   {} {:.4g}", result.ratio(), result.peer->name, result.peer->value);
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
  for (const std::string& name : choice.suites) require_choice("suite", name, known, kUsage);
  return choice;
}

Arguments read_peers(const Parsed& parsed, bool is_corpus) {
  Arguments known_peers;
  for (const bench::PeerProgram& program : bench::peer_programs())
    known_peers.emplace_back(program.name);
  Arguments usual = known_peers;
  if (is_corpus) {
    known_peers = corpus_peers();
    usual = {"openblas", "onednn", "pytorch-tuned"};  // the others are hardly ever the best
  }
  const Arguments peers = parsed.has("peers") ? parsed.get<Arguments>("peers") : usual;
  for (const std::string& name : peers)
    if (name != "none" &&
        std::find(known_peers.begin(), known_peers.end(), name) == known_peers.end())
      throw UsageError(fmt::format("there is no peer {}{}\nthere are none (of them), {}", name,
                                   did_you_mean(name, known_peers), fmt::join(known_peers, ", ")));
  return peers;
}

// Before the registry reads the settings.
void choose_isa(const std::string& name) {
  if (name.empty()) return;
  Arguments known;
  for (const bench::Isa& isa : bench::isas()) known.emplace_back(isa.name);
  require_choice("isa", name, known, kUsage);
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

// Found out before anything is measured.
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

// Before the device is opened.
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
    throw UsageError(fmt::format("corpus is measured alone\nusage: {}", kUsage));
  for (const char* option : {"resume", "results", "family", "model"})
    if (!found && parsed.has(option) && !parsed.values[option].defaulted())
      throw UsageError(fmt::format("--{} is of the suite corpus\nusage: {}", option, kUsage));
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
  // The device plans for the threads that the process has when it opens.
  if (const int threads = parsed.get<int>("threads"); threads > 0)
    change_settings([&](Settings& s) { s.threads = threads; });
  Tensor::from<float>({1}).contiguous().realize();
  return parsed.has("model") ? bench_model(run.choice, run.json) : bench_corpus(run, names, peers);
}

}  // namespace

int run_bench(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, bench_syntax());
  if (parsed.help) return kSuccess;
  const bench::Choice choice = read_choice(parsed);
  const Arguments names = read_peers(parsed, is_corpus(parsed));
  bench::Peers peers(names);
  choose_isa(parsed.get<std::string>("isa"));
  const auto device = parsed.get<std::string>("device");
  set_options(device, parsed.get<Arguments>("option"));
  choose_device(device);
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
  const auto roofline = parsed.get<std::string>("roofline");
  require_writable(roofline);
  signal(SIGPIPE, SIG_IGN);  // a peer that dies is noticed when it does not answer
  // The device is opened with every thread; a row that wants fewer restricts what is used of them.
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

int run_bench_peer(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad bench-peer NAME");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped process would outlive its parent
  return bench::run_library_peer(arguments[0]);
}

int run_bench_steps(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad bench-steps DEVICE");
  fmt::print("{}\n", bench::run_first_steps(arguments[0]).dump());
  return kSuccess;
}
#else
namespace {

int no_bench() {
  fmt::print(stderr,
             "plugrad: this build has no benchmarks; configure with PLUGRAD_BUILD_BENCH=ON\n");
  return kFailure;
}

}  // namespace

int run_bench(const Arguments&) {
  return no_bench();
}
int run_bench_peer(const Arguments&) {
  return no_bench();
}
int run_bench_steps(const Arguments&) {
  return no_bench();
}
#endif

int run_first_kernel(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad first-kernel DEVICE");
  const Tensor x = Tensor::from<float>({1, 2, 3}, arguments[0]);
  return (x * 2 + 1).to_vector<float>() == std::vector<float>{3, 5, 7} ? kSuccess : kFailure;
}

}  // namespace plugrad::tools
