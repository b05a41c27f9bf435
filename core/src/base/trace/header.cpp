#include "base/trace/header.h"

#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/launch/launcher.h"
#include "base/settings.h"
#include "base/trace/json_line.h"
#include "base/trace/trace.h"

namespace plugrad::trace {
namespace {

std::string name_of_processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != line.npos) return line.substr(colon + 2);
  return "";
}

std::string name_of_program() {
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? std::string(program_invocation_short_name) : path.string();
}

std::uint64_t unix_ns() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::string header_line(std::uint64_t start_ns) {
  const plugrad::Launch launch = launch_of_process();
  return JsonLine("trace")
             .add("version", 1)
             .add("program", name_of_program())
             .add("pid", ::getpid())
             .add("rank", launch.rank)
             .add("ranks", launch.size)
             .add("start_ns", start_ns)
             .add("start_unix_ns", unix_ns())
             .add("rules", tracing_rules())
             .add("threads", thread_count())
             .add("cpu", name_of_processor())
             .str() +
         "\n";
}

std::string path_of_rank(const std::string& path) {
  const std::uint32_t rank = launch_of_process().rank;
  return rank == 0 ? path : fmt::format("{}.rank{}", path, rank);
}

}  // namespace plugrad::trace
