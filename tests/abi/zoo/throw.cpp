// What C cannot do: leave by an exception.
#include <stdexcept>

extern "C" void zoo_throw() {
  throw std::runtime_error("thrown in the zoo");
}
