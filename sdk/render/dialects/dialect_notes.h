// Facts about a language that are not in its tables; docs/dialects.md is generated from both.
#pragma once

#include <span>

#include "render/dialects/dialect.h"

namespace plugrad::render {

// A flag or setting of the language's compilers, and its purpose.
struct FlagRow {
  const char* flag;
  const char* purpose;
};

struct DialectNotes {
  const Dialect* dialect;
  const char* language;     // compilers that accept it
  const char* kernel;       // how a kernel is declared and called
  const char* contraction;  // how the compile option `contract` is applied
  const char* vectors;
  std::span<const FlagRow> flags;
};

// One per dialect, in the order of kDialects.
extern const std::span<const DialectNotes> kDialectNotes;

}  // namespace plugrad::render
