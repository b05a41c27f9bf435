// A plugin's JSON, beside it or inside -> Manifest. What each key means is in
// docs/plugin-manifest.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/discovery/load_record.h"

namespace plugrad::runtime {

/// More than this is no manifest.
constexpr std::uint64_t kMostManifestBytes = 1 << 20;

/// Fills `out` as far as it gets. Empty, or why the text is no manifest.
std::string parse_manifest(std::string_view json, Manifest& out);

/// Empty where two manifests hold the same; else the first key in which they do not, and how.
/// Takes texts that parse_manifest accepts.
std::string manifest_difference(std::string_view note, std::string_view file);

/// Why a plugin of another major cannot be opened by this host.
std::string major_refusal(std::uint32_t major, std::string& hint);

/// Empty, or why a plugin of this manifest cannot be opened by this host; `hint` says what would
/// help.
std::string manifest_refusal(const Manifest& manifest, std::string& hint);

/// Whether one of the paths is there, which may have wildcards; with none given, too. Tells whether
/// the driver that a plugin needs (its probes), or hardware (its default_probes), seems to be
/// there.
bool probes_pass(const std::vector<std::string>& paths);

}  // namespace plugrad::runtime
