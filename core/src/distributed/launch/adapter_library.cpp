#include "distributed/launch/adapter_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "runtime/device/host_api.h"

namespace plugrad::distributed {
namespace {

constexpr const char* kAdvice =
    "install the MPI that starts the program (Debian: mpich, or openmpi-bin), or let PLUGRAD_MPI "
    "name another: mpich, openmpi, abi, or the path of an MPI library such as "
    "/opt/mpi/lib/libmpi_abi.so.1";

struct Row {
  const char* name;
  const char* library;  // how the file of that MPI begins
};
constexpr Row kAdapters[] = {
    {"abi", "libmpi_abi.so"},
    {"mpich", "libmpich.so"},
    {"openmpi", "libmpi.so.40"},
};

const plugrad_mpi_api* open_one(const std::string& name, std::string& reason) {
  const void* table = runtime::open_component_for(runtime::own_file(), "plugrad_mpi_" + name,
                                                  PLUGRAD_MPI_INTERFACE, reason);
  const auto* api = static_cast<const plugrad_mpi_api*>(table);
  if (api && api->struct_size < sizeof(plugrad_mpi_api)) {
    reason = "it is of an older version of plugrad";
    return nullptr;
  }
  return api;
}

// Opens the library first: the adapter, which needs one of that name, then uses it.
std::string adapter_of_library(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const auto row =
      std::ranges::find_if(kAdapters, [&](const Row& r) { return file.starts_with(r.library); });
  require(
      row != std::end(kAdapters),
      "[distributed::init] PLUGRAD_MPI=\"{}\" names no MPI library that there is an adapter for: "
      "the file is libmpi_abi.so… (the standard ABI), libmpich.so… or libmpi.so.40… (Open MPI)",
      path);
  std::string reason;
  require(runtime::open_library_symbol(path, "MPI_Init_thread", reason) != nullptr,
          "[distributed::init] PLUGRAD_MPI=\"{}\" cannot be used: {}", path, reason);
  return row->name;
}

}  // namespace

const plugrad_mpi_api& open_adapter(const Launch& launch, const std::string& wanted) {
  std::vector<std::string> names = launch.adapters;
  if (wanted.find('/') != wanted.npos) {
    names = {adapter_of_library(wanted)};
  } else if (!wanted.empty()) {
    require(std::ranges::any_of(kAdapters, [&](const Row& r) { return wanted == r.name; }),
            "[distributed::init] PLUGRAD_MPI=\"{}\" names no MPI; {}", wanted, kAdvice);
    names = {wanted};
  }
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    std::string reason;
    if (const plugrad_mpi_api* api = open_one(name, reason)) return *api;
    reasons.push_back(fmt::format("{}: {}", name, reason));
  }
  fail(ErrorKind::User,
       "[distributed::init] {} started this program, but no MPI can be used ({}); {}",
       launch.launcher.empty() ? "PLUGRAD_MPI" : launch.launcher, fmt::join(reasons, "; "),
       kAdvice);
}

}  // namespace plugrad::distributed
