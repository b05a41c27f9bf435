// Seconds of an all-reduce of f32 between all ranks by core's backend: by_plugrad MEGABYTES ROUNDS.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "distributed/backend.h"
#include "plugrad/distributed.h"

int main(int, char** argv) {
  namespace distributed = plugrad::distributed;
  distributed::init();
  const auto count = static_cast<std::size_t>(std::atof(argv[1]) * 1e6) / sizeof(float);
  std::vector<float> values(count, 1), sums(count);
  std::vector<std::uint32_t> ranks(distributed::backend()->size());
  std::iota(ranks.begin(), ranks.end(), 0);
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    distributed::barrier();
    const std::uint64_t start = plugrad::monotonic_ns();
    distributed::backend()->run({.send = reinterpret_cast<const std::byte*>(values.data()),
                                 .receive = reinterpret_cast<std::byte*>(sums.data()),
                                 .counts = {static_cast<std::int64_t>(count)},
                                 .group = ranks,
                                 .tensor = "values"});
    if (distributed::rank() == 0)
      std::printf("%.9f\n", static_cast<double>(plugrad::monotonic_ns() - start) * 1e-9);
  }
  return sums[count - 1] == static_cast<float>(ranks.size()) ? 0 : 1;
}
