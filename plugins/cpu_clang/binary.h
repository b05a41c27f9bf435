// The binary format: an ELF object with a header that detects damage and code of other machines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad::cpu_clang {

enum class BinaryState { Good, Damaged, Foreign };

// `machine` is any text that identifies the features that the code uses.
std::string wrap_object(std::string_view object, std::string_view machine);

// If Good, *out_object is the object inside `binary`.
BinaryState unwrap_object(std::string_view binary, std::string_view machine,
                          std::string_view* out_object);

}  // namespace plugrad::cpu_clang
