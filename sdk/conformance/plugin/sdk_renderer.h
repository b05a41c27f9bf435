// The SDK's renderer as a table, for plugins whose manifest names it.
#pragma once

#include "conformance/plugin/device.h"

namespace plugrad::conformance {

// Opened on first use and kept; one dialect per process. Throws Failed if it is not installed.
const pgr_renderer_api* sdk_renderer(const pgr_host_api& host, const ManifestFacts& manifest);

}  // namespace plugrad::conformance
