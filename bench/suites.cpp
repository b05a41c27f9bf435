#include "bench/suites.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "bench/row.h"
#include "engine/session.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

struct Suite {
  const char* name;
  std::vector<Row> (*rows)();
  bool is_usual = true;  // measured if no suite is named
};
constexpr Suite kSuites[] = {
    {"gemm", gemm_rows},
    {"conv", conv_rows},
    {"elementwise", elementwise_rows},
    {"framework", framework_rows},
    {"models", model_rows},
    {"halves", half_rows},
    {"networks", network_rows, false},
    {"variation", variation_rows, false},
    {"cold", cold_rows, false},
};

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The selected rows and their selected names.
class Chosen {
 public:
  explicit Chosen(const Choice& choice) : filter_(choice.filter) {
    for (const Suite& suite : kSuites)
      if (choice.suites.empty() ? suite.is_usual : listed(choice.suites, suite.name))
        add(choice.files.empty() ? suite.rows() : cold_file_rows(choice.files), choice.threads);
    std::erase_if(rows_, [&](const Row& row) {
      return std::none_of(row.names.begin(), row.names.end(), [&](auto& n) { return wanted(n); });
    });
  }

  const std::vector<Row>& rows() const { return rows_; }
  /// A filter that equals the name of a row selects only that row.
  bool wanted(const std::string& name) const {
    return one_ ? name == filter_ : name.find(filter_) != std::string::npos;
  }

 private:
  void add(std::vector<Row> rows, int threads) {
    for (Row& row : rows) {
      if (threads != 0 && row.threads != threads) continue;
      one_ |= listed(row.names, filter_);
      rows_.push_back(std::move(row));
    }
  }

  std::string filter_;
  bool one_ = false;
  std::vector<Row> rows_;
};

// Peak memory of the default device between two results, minus the memory left by other rows.
class PeakMemory {
 public:
  PeakMemory() {
    engine::Session::current().collect();
    engine::Session::current().clear_caches();
    device_.reset_peak();
    before_ = device_.memory_stats().used_bytes;
  }
  uint64_t next() {
    const uint64_t peak = device_.memory_stats().peak_bytes;
    device_.reset_peak();
    return peak > before_ ? peak - before_ : 0;
  }

 private:
  runtime::Device& device_ = runtime::Registry::instance().default_device();
  uint64_t before_;
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

std::vector<std::string> usual_suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : kSuites)
    if (suite.is_usual) names.emplace_back(suite.name);
  return names;
}

std::vector<std::string> row_names(const Choice& choice) {
  const Chosen chosen(choice);
  std::vector<std::string> names;
  for (const Row& row : chosen.rows())
    for (const std::string& name : row.names)
      if (chosen.wanted(name)) names.push_back(name);
  return names;
}

bool run_rows(const Choice& choice, Peers& peers, const Report& report) {
  const Chosen chosen(choice);
  bool right = true;
  for (const Row& row : chosen.rows()) {
    PeakMemory memory;
    right &= row.run(peers, [&](Result result) {
      if (!listed(row.names, result.name))
        throw std::logic_error("bench: the row " + result.name + " is in no list");
      result.peak_bytes = memory.next();
      if (chosen.wanted(result.name)) report(result);
    });
  }
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
