// Tables made from the X-macros of plugin_api, so that an op is listed in one place only.
#include "plugrad/sdk/op_info.h"

#include <algorithm>
#include <array>

namespace plugrad::sdk {
namespace {

#define OP_ROW(NAME, Pascal, number, lo, hi, op_class, meaning) \
  OpInfo{#NAME, #Pascal, number, lo, hi, op_class, meaning},
constexpr OpInfo kOps[] = {PGR_KERNEL_OPS(OP_ROW)};
#undef OP_ROW

constexpr DtypeInfo make_dtype(uint32_t number, uint32_t size, std::string_view name) {
  const bool is_int = number >= PGR_DTYPE_I8 && number <= PGR_DTYPE_U64;
  const bool is_float = number >= PGR_DTYPE_F16;
  return {name, size, is_float, is_int, is_float || (is_int && number % 2 == 0)};
}

#define DTYPE_ROW(NAME, Pascal, number, size, text) make_dtype(number, size, text),
constexpr DtypeInfo kDtypes[] = {PGR_DTYPES(DTYPE_ROW)};
#undef DTYPE_ROW

constexpr size_t kOpNumbers =
    std::max_element(std::begin(kOps), std::end(kOps),
                     [](const OpInfo& a, const OpInfo& b) { return a.number < b.number; })
        ->number +
    1;

constexpr auto kOpByNumber = [] {
  std::array<const OpInfo*, kOpNumbers> table{};
  for (const OpInfo& op : kOps) table[op.number] = &op;
  return table;
}();

}  // namespace

std::span<const OpInfo> all_ops() {
  return kOps;
}

const OpInfo* op_info(uint32_t number) {
  return number < kOpNumbers ? kOpByNumber[number] : nullptr;
}

const DtypeInfo* dtype_info(uint32_t number) {
  return number < std::size(kDtypes) ? &kDtypes[number] : nullptr;
}

uint32_t dtype_size(uint32_t number) {
  const DtypeInfo* info = dtype_info(number);
  return info ? info->size_bytes : 0;
}

std::string_view dtype_name(uint32_t number) {
  const DtypeInfo* info = dtype_info(number);
  return info ? info->name : "unknown dtype";
}

}  // namespace plugrad::sdk
