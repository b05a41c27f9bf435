#include "base/internal.h"

#include "base/check.h"

namespace plugrad {

void require_core_release(std::string_view library, std::string_view release) {
  require(release == PLUGRAD_RELEASE,
          "[load] {} is of plugrad {}, and libplugrad_core.so of {}: both must be of one release",
          library, release, PLUGRAD_RELEASE);
}

}  // namespace plugrad
