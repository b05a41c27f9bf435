#include "bench/suites.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "bench/row.h"

namespace plugrad::bench {
namespace {

struct Suite {
  const char* name;
  std::vector<Row> (*rows)();
};
constexpr Suite kSuites[] = {
    {"gemm", gemm_rows},           {"conv", conv_rows},    {"elementwise", elementwise_rows},
    {"framework", framework_rows}, {"models", model_rows},
};

bool wanted(const Choice& choice, const std::string& name) {
  return name.find(choice.filter) != std::string::npos;
}

std::vector<Row> chosen_rows(const Choice& choice) {
  std::vector<Row> chosen;
  for (const Suite& suite : kSuites) {
    const auto& names = choice.suites;
    if (!names.empty() && std::find(names.begin(), names.end(), suite.name) == names.end())
      continue;
    for (Row& row : suite.rows()) {
      if (choice.threads != 0 && row.threads != choice.threads) continue;
      if (std::any_of(row.names.begin(), row.names.end(),
                      [&](auto& n) { return wanted(choice, n); }))
        chosen.push_back(std::move(row));
    }
  }
  return chosen;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites) names.emplace_back(suite.name);
  return names;
}

std::vector<std::string> row_names(const Choice& choice) {
  std::vector<std::string> names;
  for (const Row& row : chosen_rows(choice))
    for (const std::string& name : row.names)
      if (wanted(choice, name)) names.push_back(name);
  return names;
}

bool run_rows(const Choice& choice, const Report& report) {
  Peers peers(choice.peers);
  bool right = true;
  for (const Row& row : chosen_rows(choice))
    right &= row.run(peers, [&](const Result& result) {
      if (std::find(row.names.begin(), row.names.end(), result.name) == row.names.end())
        throw std::logic_error("bench: the row " + result.name + " is in no list");
      if (wanted(choice, result.name)) report(result);
    });
  return right;
}

std::string describe_machine() {
  struct sysinfo info{};
  sysinfo(&info);
  double gib = static_cast<double>(info.totalram) * info.mem_unit / (1u << 30);
  return fmt::format("{}, {} cores, {:.0f} GiB", processor_name(),
                     std::thread::hardware_concurrency(), gib);
}

}  // namespace plugrad::bench
