// Moves elements between memory and slots.
#include <cstring>

#include "program.h"
#include "values.h"

namespace plugrad::sdk {
namespace {

// A bool in memory is 0 or 1; any other value reads as true.
uint64_t load_bool(const std::byte* at) {
  return *at != std::byte{0};
}

template <typename Raw>
uint64_t load_raw(const std::byte* at) {
  Raw value;
  std::memcpy(&value, at, sizeof value);
  return IntNumber<Raw>::put(value);
}

template <typename Raw>
void store_raw(std::byte* at, uint64_t bits) {
  const Raw value = static_cast<Raw>(bits);
  std::memcpy(at, &value, sizeof value);
}

struct Access {
  LoadFn load;
  StoreFn store;
};

template <typename Raw>
constexpr Access access() {
  return {load_raw<Raw>, store_raw<Raw>};
}

Access find_access(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_BOOL:
      return {load_bool, store_raw<uint8_t>};
    case PGR_DTYPE_I8:
      return access<int8_t>();
    case PGR_DTYPE_U8:
    case PGR_DTYPE_F8E4M3:
    case PGR_DTYPE_F8E5M2:
      return access<uint8_t>();
    case PGR_DTYPE_I16:
      return access<int16_t>();
    case PGR_DTYPE_U16:
    case PGR_DTYPE_F16:
    case PGR_DTYPE_BF16:
      return access<uint16_t>();
    case PGR_DTYPE_I32:
      return access<int32_t>();
    case PGR_DTYPE_U32:
    case PGR_DTYPE_F32:
      return access<uint32_t>();
    case PGR_DTYPE_I64:
    case PGR_DTYPE_U64:
    case PGR_DTYPE_F64:
      return access<uint64_t>();
    default:
      return {nullptr, nullptr};
  }
}

}  // namespace

LoadFn find_load(uint32_t dtype) {
  return find_access(dtype).load;
}
StoreFn find_store(uint32_t dtype) {
  return find_access(dtype).store;
}

}  // namespace plugrad::sdk
