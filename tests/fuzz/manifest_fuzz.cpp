// An arbitrary manifest is read or refused with a reason; a read manifest equals itself and differs
// from another one only in a key that the reason names.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/discovery/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad::runtime;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view first = text.substr(0, text.find('\0'));  // two texts, parted by a zero
  const std::string_view second = first.size() < size ? text.substr(first.size() + 1) : first;
  Manifest one, two;
  if (!parse_manifest(first, one).empty()) return 0;
  if (one.name.empty() || one.device_name.empty() || one.abi_minor_low > one.abi_minor_high)
    __builtin_trap();
  std::string hint;
  manifest_refusal(one, hint);
  if (!manifest_difference(first, first).empty()) __builtin_trap();
  if (parse_manifest(second, two).empty()) {
    const bool differ = !manifest_difference(first, second).empty();
    if (differ == manifest_difference(second, first).empty()) __builtin_trap();
    if (!differ && (one.name != two.name || one.priority != two.priority)) __builtin_trap();
  }
  return 0;
}
