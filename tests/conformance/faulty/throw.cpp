#include <stdexcept>

#include "faulty.h"

void throw_something() {
  throw std::runtime_error("thrown by a plugin");
}
