// What the compiler hands out and the runner takes: an ELF object behind a header that tells damage
// and other machines' code apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad::cpu_clang {

enum class BinaryState { Good, Damaged, Foreign };

// `machine` is any text that says what the code may use.
std::string wrap_object(std::string_view object, std::string_view machine);

// Good: *out_object is the object inside `binary`.
BinaryState unwrap_object(std::string_view binary, std::string_view machine,
                          std::string_view* out_object);

}  // namespace plugrad::cpu_clang
