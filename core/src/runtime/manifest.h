// The JSON beside a plugin -> Manifest. What each key means is in docs/plugin-manifest.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/load_record.h"

namespace plugrad::runtime {

/// Fills `out` as far as it gets. Empty, or why the text is no manifest.
std::string parse_manifest(std::string_view json, Manifest& out);

/// Empty, or why a plugin of this manifest cannot be opened by this host; `hint` says what would
/// help.
std::string manifest_refusal(const Manifest& manifest, std::string& hint);

/// Whether the hardware or driver that the plugin needs seems to be there.
bool probes_pass(const Manifest& manifest);

}  // namespace plugrad::runtime
