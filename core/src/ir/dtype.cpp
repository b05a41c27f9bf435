// Facts of dtypes, and promotion by a lattice: its edges are a table, closed at compile time.
#include "plugrad/dtype.h"

#include <array>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad {
namespace {

#define PLUGRAD_SAME_NUMBER(NAME, Pascal, number, size, text) \
  static_assert(static_cast<int>(DType::Pascal) == number, text " has another number in the ABI");
PGR_DTYPES(PLUGRAD_SAME_NUMBER)
#undef PLUGRAD_SAME_NUMBER

struct Row {
  std::string_view name;
  uint32_t size_bytes;
};

constexpr std::array<Row, PGR_DTYPE_COUNT> kRows = {{
#define PLUGRAD_DTYPE_ROW(NAME, Pascal, number, size, text) {text, size},
    PGR_DTYPES(PLUGRAD_DTYPE_ROW)
#undef PLUGRAD_DTYPE_ROW
}};

struct Alias {
  std::string_view name;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"int8", DType::I8},       {"uint8", DType::U8},    {"int16", DType::I16},
    {"uint16", DType::U16},    {"int32", DType::I32},   {"uint32", DType::U32},
    {"int64", DType::I64},     {"uint64", DType::U64},  {"float16", DType::F16},
    {"bfloat16", DType::BF16}, {"float32", DType::F32}, {"float64", DType::F64},
    {"int", DType::I32},       {"long", DType::I64},    {"half", DType::F16},
    {"float", DType::F32},     {"double", DType::F64},
};

// The lattice: each dtype's direct successors. Index and WeakFloat have the place of Python
// literals in JAX.
struct Edge {
  DType from, to;
};
constexpr Edge kEdges[] = {
    {DType::Bool, DType::Index},       {DType::Index, DType::I8},
    {DType::Index, DType::U8},         {DType::I8, DType::I16},
    {DType::I16, DType::I32},          {DType::I32, DType::I64},
    {DType::I64, DType::WeakFloat},    {DType::U8, DType::I16},
    {DType::U8, DType::U16},           {DType::U16, DType::I32},
    {DType::U16, DType::U32},          {DType::U32, DType::I64},
    {DType::U32, DType::U64},          {DType::U64, DType::WeakFloat},
    {DType::WeakFloat, DType::F8E4M3}, {DType::WeakFloat, DType::F8E5M2},
    {DType::F8E4M3, DType::F16},       {DType::F8E4M3, DType::BF16},
    {DType::F8E5M2, DType::F16},       {DType::F8E5M2, DType::BF16},
    {DType::F16, DType::F32},          {DType::BF16, DType::F32},
    {DType::F32, DType::F64},
};

constexpr int kSlots = PGR_DTYPE_COUNT + 2;
constexpr int slot(DType d) {
  return d == DType::Index       ? PGR_DTYPE_COUNT
         : d == DType::WeakFloat ? PGR_DTYPE_COUNT + 1
                                 : static_cast<int>(d);
}
constexpr DType from_slot(int s) {
  return s == PGR_DTYPE_COUNT       ? DType::Index
         : s == PGR_DTYPE_COUNT + 1 ? DType::WeakFloat
                                    : static_cast<DType>(s);
}

// kUp[s]: bit t is set if dtype t is s or reachable from it.
constexpr std::array<uint32_t, kSlots> close_lattice() {
  std::array<uint32_t, kSlots> up{};
  for (int s = 0; s < kSlots; ++s) up[s] = 1u << s;
  for (int round = 0; round < kSlots; ++round)
    for (const Edge& e : kEdges) up[slot(e.from)] |= up[slot(e.to)];
  return up;
}
constexpr auto kUp = close_lattice();

}  // namespace

std::string_view name_of(DType dtype) {
  if (dtype == DType::Index) return "index";
  if (dtype == DType::WeakFloat) return "weakfloat";
  const auto number = static_cast<size_t>(dtype);
  return number < kRows.size() ? kRows[number].name : "unknown";
}

uint32_t size_of(DType dtype) {
  return static_cast<uint8_t>(dtype) < PGR_DTYPE_COUNT
             ? kRows[static_cast<size_t>(dtype)].size_bytes
             : 0;
}

DType dtype_from_name(std::string_view name) {
  for (int s = 0; s < kSlots; ++s)
    if (name_of(from_slot(s)) == name) return from_slot(s);
  for (const Alias& alias : kAliases)
    if (alias.name == name) return alias.dtype;
  return DType::Void;
}

bool is_float(DType dtype) {
  return (dtype >= DType::F16 && dtype <= DType::F8E5M2) || dtype == DType::WeakFloat;
}

bool is_integer(DType dtype) {
  return (dtype >= DType::I8 && dtype <= DType::U64) || dtype == DType::Index;
}

bool is_unsigned(DType dtype) {
  return dtype == DType::Bool || dtype == DType::U8 || dtype == DType::U16 || dtype == DType::U32 ||
         dtype == DType::U64;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  // The least common ancestor is the one from which all other common ancestors are reachable.
  const uint32_t common = kUp[slot(a)] & kUp[slot(b)];
  for (int s = 0; s < kSlots; ++s)
    if ((common >> s & 1u) && (kUp[s] & common) == common) return from_slot(s);
  return DType::Void;
}

DType strong(DType dtype) {
  if (dtype == DType::Index) return DType::I32;
  if (dtype == DType::WeakFloat) return DType::F32;
  return dtype;
}

DType sum_dtype(DType dtype) {
  if (is_float(dtype)) return strong(dtype);
  return is_unsigned(dtype) && dtype != DType::Bool ? DType::U64 : DType::I64;
}

}  // namespace plugrad
