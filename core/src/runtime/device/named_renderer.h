// Supports plugins that name a dialect of the SDK's renderer instead of having their own.
#pragma once

#include <vector>

#include "plugrad/plugin_api/plugin.h"
#include "runtime/discovery/load_record.h"

namespace plugrad::runtime {

struct DeviceState;

/// If the plugin has no renderer and its manifest names one of the SDK, installs that. Errors:
/// Device, naming what is missing.
void adopt_named_renderer(DeviceState& s);

/// The options for the SDK's renderer: the dialect, then the manifest's options, whose texts it
/// borrows.
std::vector<pgr_option> renderer_options(const Manifest& manifest);

}  // namespace plugrad::runtime
