#include "bench/rows/first_steps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/settings.h"
#include "bench/harness.h"
#include "bench/networks/mnist_step.h"
#include "bench/row.h"
#include "bench/rows/cache_folder.h"
#include "plugrad/device.h"

namespace plugrad::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStepBatch = 512;

// A field of /proc/self/status, in bytes.
double resident(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024;
  return 0;
}

void report_first(const Report& report, const std::string& name, const nlohmann::json& steps) {
  const double more = steps.at("first").get<double>() - steps.at("steady").get<double>();
  report({.name = name, .value = more, .unit = "s", .higher_is_better = false});
}

// PyTorch's memory growth in a fresh process, for its best settings.
std::optional<Peer> torch_growth(Peers& peers) {
  std::optional<Peer> least;
  const std::string file =
      (fs::temp_directory_path() / fmt::format("plugrad-bench-{}", getpid())).string();
  for (const PeerProgram& program : peer_programs())
    for (const char* format : {"channels-first", "channels-last"}) {
      const auto process = peers.start(program, thread_count());
      if (!process || !program.script) continue;
      const auto answer = process->ask({{"do", "setup"},
                                        {"kind", "peak_memory"},
                                        {"batch", kStepBatch},
                                        {"format", format},
                                        {"shapes", nlohmann::json::array()},
                                        {"input", "/dev/null"},
                                        {"output", file}});
      if (!answer || answer->at("variants").empty()) continue;
      float bytes = 0;
      std::ifstream(file + ".0", std::ios::binary)
          .read(reinterpret_cast<char*>(&bytes), sizeof bytes);
      fs::remove(file + ".0");
      if (!least || bytes * 1e-6 < least->value)
        least = Peer{answer->at("variants")[0], static_cast<double>(bytes) * 1e-6};
    }
  return least;
}

}  // namespace

std::vector<std::string> first_step_names() {
  return {"first_step/cold", "first_step/warm", "mnist_step/peak_memory"};
}

nlohmann::json run_first_steps(const std::string& device) {
  if (!device.empty()) Device::set_default_device(device);
  MnistStep step(kStepBatch);
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const double before = resident("VmRSS"), first = time_of([&] { step.run(); });
  std::vector<double> others;
  for (int i = 0; i < 5; ++i) others.push_back(time_of([&] { step.run(); }));
  std::sort(others.begin(), others.end());
  return {{"first", first}, {"steady", others[2]}, {"growth_bytes", resident("VmHWM") - before}};
}

bool report_first_steps(Peers& peers, const Report& report) {
  const CacheFolder folder;
  const auto steps = [&] { return folder.steps({Device::default_device()}); };
  const std::vector<std::string> names = first_step_names();
  report_first(report, names[0], steps());
  std::vector<nlohmann::json> warm = {steps(), steps(), steps()};
  std::sort(warm.begin(), warm.end(),
            [](auto& a, auto& b) { return a.at("first") < b.at("first"); });
  report_first(report, names[1], warm[1]);
  Result memory{.name = names[2],
                .value = warm[1].at("growth_bytes").get<double>() * 1e-6,
                .unit = "MB",
                .peer = torch_growth(peers),
                .higher_is_better = false};
  if (memory.peer) memory.peers = {*memory.peer};
  report(memory);
  return true;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows = step_rows();
  rows.push_back({first_step_names(), 0, report_first_steps});
  return rows;
}

}  // namespace plugrad::bench
