// Throws an exception, which C cannot.
#include <stdexcept>

extern "C" void zoo_throw() {
  throw std::runtime_error("thrown in the zoo");
}
