#include "plugrad/shutdown.h"

#include "runtime/registry.h"

namespace plugrad {

void shutdown() {
  runtime::Registry::instance().shut_down();
}

}  // namespace plugrad
