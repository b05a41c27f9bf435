#include "tensor/sizes/sizes.h"

#include <algorithm>

#include "base/check.h"
#include "base/host_memory.h"
#include "ir/facts.h"
#include "tensor/lazy_text.h"

namespace plugrad::tensor {
namespace {

[[noreturn]] void refuse(std::string_view function, const Shape& shape) {
  require(shape.size() <= kMostAxes, "[{}] a tensor has at most {} axes, not {}", function,
          kMostAxes, shape.size());
  for (int64_t size : shape)
    require(size >= 0, "[{}] size {} in {} is negative", function, size, lazy_text(shape));
  fail(ErrorKind::User, "[{}] a tensor of shape {} has more than 2^60 elements", function,
       to_string(shape));
}

}  // namespace

// Every recorded function calls this: only an error formats text.
int64_t checked_count(std::string_view function, const Shape& shape) {
  int64_t count = 1;
  bool is_empty = false, is_negative = false, overflows = false;
  for (int64_t size : shape) {
    is_negative |= size < 0;
    is_empty |= size == 0;
    overflows |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  }
  if (shape.size() > kMostAxes || is_negative ||
      (!is_empty && (overflows || count > kMostElements)))
    refuse(called(function), shape);
  return is_empty ? 0 : count;
}

void require_host_memory(std::string_view function, const Shape& shape, uint64_t element_bytes) {
  const auto count = static_cast<uint64_t>(checked_count(function, shape));
  const uint64_t host_bytes = host_memory_bytes();
  require(count <= host_bytes / std::max<uint64_t>(element_bytes, 1),
          "[{}] the {} elements of shape {} do not fit the host's memory of {} bytes; read a part "
          "of them",
          function, count, lazy_text(shape), host_bytes);
}

}  // namespace plugrad::tensor
