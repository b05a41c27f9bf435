// Reports the instruction set of each peer of a `plugrad bench` run, as text and JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/peers/peers.h"

namespace plugrad::tools {

/// Prints one line, with the peers that are excluded from comparison.
void print_isas(const bench::Peers& peers);
nlohmann::ordered_json peer_isas_json(const bench::Peers& peers);
/// The default device's architecture as opened: "x86-64-v3".
std::string default_arch();

}  // namespace plugrad::tools
