// Why plans were made: each is compared with the last plans of the same operations.
#pragma once

#include <unordered_map>

#include "engine/causes/causes.h"
#include "engine/plan/canonical.h"
#include "engine/plan/options.h"
#include "engine/recent_cache.h"

namespace plugrad::engine {

class PlanMisses {
 public:
  /// Notes that a plan is made for the walked graph. `miss`: its number of kernels, time and place.
  void note(const CanonicalGraph& walked, const Graph& graph, Shapes& shapes,
            const DeviceTable& names, const PlanRequest& request, Miss miss);
  std::string text() const { return misses_.text(); }

 private:
  /// Says once of a line that it compiles again and again.
  void warn_if_repeated(uint64_t line, const Miss& miss);

  /// The compiles of a line of the program for other numbers, sizes or dtypes.
  struct Repeated {
    uint64_t reads = 0;  // before the last round
    uint64_t rounds = 0, kernels = 0, compile_ns = 0;
  };
  std::unordered_map<uint64_t, Repeated> repeated_;
  /// By operations, what else the last plans depended on.
  RecentCache<std::vector<std::vector<uint64_t>>> last_{{256, 16, 1 << 20}};
  Misses misses_;
};

}  // namespace plugrad::engine
