// Includes everything of this room that engine uses: devices and kernels.
#pragma once

#include "runtime/device/device.h"
#include "runtime/registry.h"
