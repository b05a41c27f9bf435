// Parses a plugin's JSON, beside it or inside, to a Manifest. docs/plugin-manifest.md describes the
// keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/discovery/load_record.h"

namespace plugrad::runtime {

/// Size limit of a manifest in bytes.
constexpr std::uint64_t kMostManifestBytes = 1 << 20;

/// Fills `out` as far as possible. Empty, or why the text is no manifest.
std::string parse_manifest(std::string_view json, Manifest& out);

/// Empty if two manifests are equal; else their first difference. Both texts must be valid for
/// parse_manifest.
std::string manifest_difference(std::string_view note, std::string_view file);

/// Why this host cannot open a plugin of another major.
std::string major_refusal(std::uint32_t major, std::string& hint);

/// Empty, or why this host cannot open a plugin with this manifest; `hint` is the advice.
std::string manifest_refusal(const Manifest& manifest, std::string& hint);

/// Whether one of the paths, which may have wildcards, exists; true for an empty list. Indicates
/// that the driver (a plugin's probes) or hardware (its default_probes) is present.
bool probes_pass(const std::vector<std::string>& paths);

}  // namespace plugrad::runtime
