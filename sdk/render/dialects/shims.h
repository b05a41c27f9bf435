// What a kernel's text takes for granted of Clang, defined where another compiler reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plugrad::render {

// `definition` stands before a text in which `name` occurs.
struct Shim {
  const char* name;
  const char* definition;
};

extern const std::span<const Shim> kShimsC;

// The definitions that `text` needs, each guarded so that a recent Clang skips it.
std::string shims_for(std::span<const Shim> shims, std::string_view text);

}  // namespace plugrad::render
