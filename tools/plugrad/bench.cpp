// plugrad bench: measures this machine; the measurements themselves live in bench/.
#include <fmt/format.h>

#include "command.h"
#ifdef PLUGRAD_HAS_BENCH
#include "bench/suites.h"
#endif
#include "plugrad/tensor.h"

namespace plugrad::tools {
#ifdef PLUGRAD_HAS_BENCH
namespace {

constexpr char kUsage[] =
    "plugrad bench [gemm|conv|elementwise|framework|models]… [--device D] [--json]";

nlohmann::ordered_json to_json(const std::vector<bench::Result>& results, const std::string& suites) {
  nlohmann::ordered_json document = {
      {"machine", bench::describe_machine()}, {"suite", suites}, {"results", nlohmann::ordered_json::array()}};
  for (const bench::Result& result : results) {
    nlohmann::ordered_json row = {{"name", result.name}, {"value", result.value}, {"unit", result.unit}};
    row["peer"] = nullptr;
    row["peer_value"] = row["ratio"] = nullptr;
    if (result.peer) {
      row["peer"] = result.peer->name;
      row["peer_value"] = result.peer->value;
      row["ratio"] = result.ratio();
    }
    document["results"].push_back(row);
  }
  return document;
}

void print_result(const bench::Result& result) {
  fmt::print("{:<44}{:>12.4g} {:<14}", result.name, result.value, result.unit);
  if (result.peer) fmt::print("{:<22}{:>10.4g}   ratio {:.2f}", result.peer->name, result.peer->value, result.ratio());
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int run_bench(const Arguments& arguments) {
  namespace po = boost::program_options;
  po::options_description options("Options");
  options.add_options()("device", po::value<std::string>()->default_value(""), "device to measure")(
      "json", "one JSON document");
  Parsed parsed = parse(arguments, kUsage, options, "suite");
  if (parsed.help) return kSuccess;
  auto names = parsed.get<Arguments>("suite");
  if (names.empty()) names = bench::suite_names();
  for (const std::string& name : names)
    if (!bench::has_suite(name)) throw UsageError(fmt::format("there is no suite {}\nusage: {}", name, kUsage));
  choose_device(parsed.get<std::string>("device"));
  // The device is opened with every thread; a suite that wants fewer restricts what is used of them.
  Tensor::from<float>({1}).contiguous().realize();

  bool json = parsed.has("json");
  std::vector<bench::Result> results;
  for (const std::string& name : names)
    bench::run_suite(name, [&](const bench::Result& result) {
      results.push_back(result);
      if (!json) print_result(result);
    });
  nlohmann::ordered_json document = to_json(results, fmt::format("{}", fmt::join(names, ",")));
  print_json(document, json);
  return kSuccess;
}
#else
int run_bench(const Arguments&) {
  fmt::print(stderr, "plugrad: this build has no benchmarks; configure with PLUGRAD_BUILD_BENCH=ON\n");
  return kFailure;
}
#endif

int run_first_kernel(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad first-kernel DEVICE");
  const Tensor x = Tensor::from<float>({1, 2, 3}, arguments[0]);
  return (x * 2 + 1).to_vector<float>() == std::vector<float>{3, 5, 7} ? kSuccess : kFailure;
}

}  // namespace plugrad::tools
