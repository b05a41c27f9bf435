// The last error of a device, which the other ranks of a program learn if this one ends early.
#pragma once

#include <string>

namespace plugrad {

/// The message of the last Error of kind Device in this process; empty if there was none.
std::string last_device_error();

}  // namespace plugrad
