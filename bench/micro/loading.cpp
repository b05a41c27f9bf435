// Finding plugins, and the first kernel of a process.

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "base/child_process.h"
#include "bench/micro/micro.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kPlugins = 20;

// A directory of copies of one plugin of this machine, each with note and manifest.
class Copies {
 public:
  Copies() {
    std::string pattern = (fs::temp_directory_path() / "plugrad-bench-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary directory");
    directory_ = pattern;
    fs::path library;
    for (const runtime::LoadRecord& r : runtime::Registry::instance().records())
      if (r.state == runtime::LoadState::Loaded) library = r.path;
    for (int i = 0; i < kPlugins; ++i) {
      fs::path copy = directory_ / fmt::format("libplugrad_plugin_copy{}.so", i);
      fs::copy_file(library, copy);
      fs::path manifest = fs::path(library).replace_extension(".json");
      if (fs::exists(manifest)) fs::copy_file(manifest, copy.replace_extension(".json"));
    }
  }
  ~Copies() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  std::string path() const { return directory_.string(); }

 private:
  fs::path directory_;
};

// From before the start of a process of the command beside this program until it has ended, having
// run one kernel.
void run_first_kernel() {
  const std::string device = runtime::Registry::instance().default_device().name();
  output_of({.program = program_beside("plugrad"), .arguments = {"first-kernel", device}});
}

std::function<void(benchmark::State&)> discovery() {
  return [copies = std::make_shared<Copies>()](benchmark::State& state) {
    for (auto _ : state) {
      runtime::RegistryOptions options;
      options.places = {{copies->path(), "bench"}};
      if (runtime::Registry(options).records().size() != kPlugins)
        throw std::runtime_error("plugins were not found");
    }
  };
}

void first_kernel(benchmark::State& state) {
  for (auto _ : state) run_first_kernel();
}

}  // namespace

std::vector<Micro> loading_micros() {
  return {{.name = "discovery/plugins:20", .unit = "ms", .prepare = discovery, .repetitions = 20},
          {.name = "first kernel of a process/warm cache",
           .unit = "ms",
           .prepare = [] { return first_kernel; },
           .repetitions = 20}};
}

}  // namespace plugrad::bench
