#include "isas.h"

#include <fmt/format.h>

#include "bench/isa.h"
#include "runtime/registry.h"

namespace plugrad::tools {

std::string default_arch() {
  return runtime::Registry::instance().default_device().info().arch;
}

void print_isas(const bench::Peers& peers) {
  fmt::print("isa {}: plugrad {}", bench::chosen_isa().name, default_arch());
  for (const bench::PeerRun& run : peers.runs())
    fmt::print(" | {} {}{}", run.title, run.isa,
               run.counts ? "" : " (cannot be held to it: not counted)");
  fmt::print("\n");
}

nlohmann::ordered_json peer_isas_json(const bench::Peers& peers) {
  auto isas = nlohmann::ordered_json::object();
  for (const bench::PeerRun& run : peers.runs())
    isas[run.title] = {{"isa", run.isa}, {"counts", run.counts}};
  return isas;
}

}  // namespace plugrad::tools
