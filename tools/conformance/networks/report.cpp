#include "networks/report.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/storage/disk_cache.h"
#include "conformance/driver/replay.h"
#include "conformance/plugin/manifest.h"
#include "conformance/report/report.h"
#include "interruption.h"
#include "networks/judge_networks.h"

namespace plugrad::tools {
namespace {

namespace suite = conformance;

// The id in a token of an earlier run's test; empty if there is none.
std::string id_of_token(const std::string& token) {
  if (token.empty()) return "";
  const std::string id = suite::decode_replay(token).id;
  if (!id.starts_with("l2.networks."))
    throw UsageError(fmt::format("--replay: its test {} is none of --models", id));
  return id;
}

NetworkOptions read_network_options(const suite::Options& options, const Parsed& parsed,
                                    const std::string& folder) {
  NetworkOptions networks;
  networks.target.device = {options.plugin_path, options.device_index, options.device_options,
                            options.time_limit_factor};
  networks.target.expected = parsed.get<std::string>("expected");
  if (!networks.target.expected.empty())
    require_choice("device --expected", networks.target.expected, {"CPU", "REFERENCE"},
                   conformance_syntax().usage);
  networks.target.sizes = parse_key_values(parsed.get<Arguments>("size"), "size");
  networks.target.inputs = parse_key_values(parsed.get<Arguments>("input"), "input");
  networks.target.seed = options.seed;
  const std::string cache = disk_cache().directory();
  networks.target.keep = !folder.empty()  ? folder + "/launches"
                         : !cache.empty() ? cache + "/differences"
                                          : std::filesystem::temp_directory_path().string();
  networks.target.keep = std::filesystem::absolute(networks.target.keep).string();
  if (parsed.has("models")) {
    networks.models = parsed.get<std::string>("models");
    const std::string id = id_of_token(options.replay);
    networks.filter = id.empty() ? options.filter : id;
  } else {
    networks.replay = options.replay;
  }
  return networks;
}

}  // namespace

bool is_of_networks(const Parsed& parsed) {
  return parsed.has("models") || parsed.get<std::string>("replay").ends_with(".rec");
}

suite::Report report_on_networks(const suite::Options& options, const Parsed& parsed,
                                 const std::string& folder) {
  const auto start = std::chrono::steady_clock::now();
  const NetworkOptions networks = read_network_options(options, parsed, folder);
  suite::Report report;
  const suite::ManifestFacts manifest = suite::read_manifest(options.plugin_path);
  report.device = manifest.device_name;
  report.plugin_version = manifest.version;
  report.plugin_path = options.plugin_path;
  report.suite_version = suite::suite_version();
  report.machine = suite::machine_name();
  report.command = suite::command_of(options);
  if (parsed.has("models")) report.command += " --models " + networks.models;
  report.seed = options.seed;
  report.filter = options.filter;
  report.replay = options.replay;
  judge_networks(networks, [&](suite::TestResult test) {
    if (test.replay.empty()) test.replay = suite::encode_replay({test.id, options.seed, {}});
    report.tests.push_back(std::move(test));
    options.progress(report.tests.back(), report.tests.size(), report.tests.size());
  });
  report.totals = suite::count(report.tests);
  report.next = suite::next_steps(report.tests, {});
  report.interrupted = is_interrupted();
  if (report.interrupted)
    report.notes.push_back("the run was interrupted: some models did not run");
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace plugrad::tools
