#include "render/dialects/shims.h"

namespace plugrad::render {
namespace {

#define PLUGRAD_STDBOOL                                     \
  "#if !defined(__clang__) || __STDC_VERSION__ < 202000L\n" \
  "#include <stdbool.h>\n"                                  \
  "#endif\n"

// Calls the libm function with the suffix of the argument's type.
#define PLUGRAD_ELEMENTWISE(name, arguments)                     \
  "#if !__has_builtin(__builtin_elementwise_" #name              \
  ")\n"                                                          \
  "#define __builtin_elementwise_" #name arguments               \
  " _Generic((x), float: __builtin_" PLUGRAD_LIBM_##name         \
      "f, default: __builtin_" PLUGRAD_LIBM_##name ")" arguments \
                                                   "\n"          \
                                                   "#endif\n"
#define PLUGRAD_LIBM_sqrt "sqrt"
#define PLUGRAD_LIBM_fma "fma"
#define PLUGRAD_LIBM_trunc "trunc"
#define PLUGRAD_LIBM_abs "fabs"

constexpr Shim kShims[] = {
    {"bool", PLUGRAD_STDBOOL},
    {"true", PLUGRAD_STDBOOL},
    {"false", PLUGRAD_STDBOOL},
    {"__builtin_bit_cast",
     "#if !__has_builtin(__builtin_bit_cast)\n"
     "#define __builtin_bit_cast(type, value) __extension__({ \\\n"
     "  const __typeof__(value) from_ = (value); type to_; \\\n"
     "  __builtin_memcpy(&to_, &from_, sizeof to_); to_; })\n"
     "#endif\n"},
    {"__builtin_assume(",
     "#if !__has_builtin(__builtin_assume)\n"
     "#define __builtin_assume(fact) ((fact) ? (void)0 : __builtin_unreachable())\n"
     "#endif\n"},
    {"__builtin_elementwise_sqrt", PLUGRAD_ELEMENTWISE(sqrt, "(x)")},
    {"__builtin_elementwise_fma", PLUGRAD_ELEMENTWISE(fma, "(x, y, z)")},
    {"__builtin_elementwise_trunc", PLUGRAD_ELEMENTWISE(trunc, "(x)")},
    {"__builtin_elementwise_abs", PLUGRAD_ELEMENTWISE(abs, "(x)")},
    // Clang's builtin also accepts floats.
    {"__atomic_fetch_add",
     "#ifndef __clang__\n"
     "#define __atomic_fetch_add(pointer, value, order) __extension__({ \\\n"
     "  __typeof__(pointer) at_ = (pointer); \\\n"
     "  __typeof__(*at_) old_ = *at_, new_; \\\n"
     "  do new_ = old_ + (value); \\\n"
     "  while (!__atomic_compare_exchange(at_, &old_, &new_, 1, order, order)); old_; })\n"
     "#endif\n"},
};

}  // namespace

constinit const std::span<const Shim> kShimsC = kShims;

std::string shims_for(std::span<const Shim> shims, std::string_view text) {
  std::string out;
  for (const Shim& shim : shims)
    if (text.find(shim.name) != std::string_view::npos && out.find(shim.definition) == out.npos)
      out += shim.definition;
  return out;
}

}  // namespace plugrad::render
