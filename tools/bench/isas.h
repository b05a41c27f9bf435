// What instruction set each peer of a run of `plugrad bench` ran, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/peers/peers.h"

namespace plugrad::tools {

/// One line, and which of them no row is held against.
void print_isas(const bench::Peers& peers);
nlohmann::ordered_json peer_isas_json(const bench::Peers& peers);
/// Of the default device, as it is opened: "x86-64-v3".
std::string default_arch();

}  // namespace plugrad::tools
