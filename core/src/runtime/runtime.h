// Where kernels run: everything of this room that engine uses.
#pragma once

#include "runtime/device/device.h"
#include "runtime/registry.h"
