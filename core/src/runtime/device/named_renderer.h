// A plugin that names a dialect of the SDK's renderer instead of having a renderer of its own.
#pragma once

#include <vector>

#include "plugrad/plugin_api/plugin.h"
#include "runtime/discovery/load_record.h"

namespace plugrad::runtime {

struct DeviceState;

/// Gives a device whose plugin has no renderer that of the SDK, where its manifest names one.
/// Errors: Device, with what is missing.
void adopt_named_renderer(DeviceState& s);

/// What the SDK's renderer is told: the dialect, then the manifest's options, whose texts it
/// borrows.
std::vector<pgr_option> renderer_options(const Manifest& manifest);

}  // namespace plugrad::runtime
