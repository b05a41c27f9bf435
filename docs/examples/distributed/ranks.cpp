#include <cstdio>

#include "plugrad/plugrad.h"

int main() {
  namespace distributed = plugrad::distributed;
  try {
    distributed::init();
    std::printf("rank %d of %d\n", distributed::rank(), distributed::size());
    std::fflush(stdout);
    distributed::barrier();
    if (distributed::rank() == 0) std::printf("all are here\n");
  } catch (const plugrad::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
