// The line of the Python program that records a tensor operation.
#pragma once

namespace plugrad::python {

/// While it lives, a trace names the calling Python line. Costs one test when no trace is on.
class Place {};

}  // namespace plugrad::python
