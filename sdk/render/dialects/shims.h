// Definitions for compilers that lack a Clang builtin used in a kernel's text.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plugrad::render {

// `definition` is emitted before a text that contains `name`.
struct Shim {
  const char* name;
  const char* definition;
};

extern const std::span<const Shim> kShimsC;

// The definitions that `text` needs, each guarded so that a recent Clang skips it.
std::string shims_for(std::span<const Shim> shims, std::string_view text);

}  // namespace plugrad::render
