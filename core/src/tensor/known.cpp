#include "tensor/known.h"

#include <cstring>
#include <utility>

#include "tensor/record.h"

namespace plugrad::tensor {

namespace {

template <class T>
void check(std::string_view function, std::string_view what, std::span<const std::byte> bytes,
           int64_t low, int64_t high, std::optional<int64_t> but) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + at, sizeof(T));
    const auto place = static_cast<int64_t>(element);
    require((std::in_range<int64_t>(element) && place >= low && place < high) || place == but,
            "[{}] {} {} (element {}) is out of range: allowed are {} to {}", function, what,
            element, at / sizeof(T), low, high - 1);
  }
}

}  // namespace

void require_known_range(std::string_view function, std::string_view what, const Tensor& places,
                         int64_t low, int64_t high, std::optional<int64_t> but) {
  Recorder r(function);
  r.use(places);
  const auto bytes = r.session().peek(*places.state());
  if (!bytes) return;
  switch (strong(places.dtype())) {
    case DType::I8:
      return check<int8_t>(function, what, *bytes, low, high, but);
    case DType::I16:
      return check<int16_t>(function, what, *bytes, low, high, but);
    case DType::I32:
      return check<int32_t>(function, what, *bytes, low, high, but);
    case DType::I64:
      return check<int64_t>(function, what, *bytes, low, high, but);
    case DType::U8:
      return check<uint8_t>(function, what, *bytes, low, high, but);
    case DType::U16:
      return check<uint16_t>(function, what, *bytes, low, high, but);
    case DType::U32:
      return check<uint32_t>(function, what, *bytes, low, high, but);
    case DType::U64:
      return check<uint64_t>(function, what, *bytes, low, high, but);
    default:
      return;
  }
}

}  // namespace plugrad::tensor
