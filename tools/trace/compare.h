// Compares the kernels of two traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/summary.h"

namespace plugrad::tools::trace {

/// Launches of the same kernels in one of the traces.
struct ComparedLaunches {
  int64_t launches = 0, total_ns = 0;
  double mean_ns() const {
    return launches ? static_cast<double>(total_ns) / static_cast<double>(launches) : 0;
  }
};

struct KernelChange {
  std::string name;  ///< "before -> after" if they differ
  std::string operations, source;
  ComparedLaunches before, after;  ///< without launches: only in the other trace

  bool is_in_both() const { return before.launches > 0 && after.launches > 0; }
  /// Time of a launch, after over before; above 1 is slower. 0 unless in both.
  double ratio() const { return is_in_both() ? after.mean_ns() / before.mean_ns() : 0; }
  /// The time that the slower launches add to the second trace; negative for faster ones.
  double added_ns() const {
    const double per_launch = after.mean_ns() - before.mean_ns();
    return per_launch * static_cast<double>(after.launches ? after.launches : before.launches);
  }
};

/// Kernels are the same if they agree in name and operations, else in name, else in operations. The
/// largest change first.
std::vector<KernelChange> compare(const Trace& before, const Summary& before_summary,
                                  const Trace& after, const Summary& after_summary);

}  // namespace plugrad::tools::trace
