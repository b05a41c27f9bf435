#include "bench/suites.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <fstream>
#include <thread>

namespace plugrad::bench {
namespace {

struct Suite {
  const char* name;
  void (*run)(const Report& report);
};
constexpr Suite kSuites[] = {
    {"gemm", run_gemm},           {"conv", run_conv},     {"elementwise", run_elementwise},
    {"framework", run_framework}, {"models", run_models},
};

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

bool has_suite(const std::string& name) {
  for (const Suite& suite : kSuites)
    if (name == suite.name) return true;
  return false;
}

void run_suite(const std::string& name, const Report& report) {
  for (const Suite& suite : kSuites)
    if (name == suite.name) suite.run(report);
}

std::string describe_machine() {
  struct sysinfo info {};
  sysinfo(&info);
  double gib = static_cast<double>(info.totalram) * info.mem_unit / (1u << 30);
  return fmt::format("{}, {} cores, {:.0f} GiB", processor_name(), std::thread::hardware_concurrency(), gib);
}

}  // namespace plugrad::bench
