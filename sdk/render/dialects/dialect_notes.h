// What a vendor has to know of a language besides its tables: docs/dialects.md is made of both.
#pragma once

#include <span>

#include "render/dialects/dialect.h"

namespace plugrad::render {

// A flag or setting of compilers of the language, and what it is for.
struct FlagRow {
  const char* flag;
  const char* purpose;
};

struct DialectNotes {
  const Dialect* dialect;
  const char* language;     // which compilers take it
  const char* kernel;       // how a kernel is declared and called
  const char* contraction;  // how the compile option `contract` reaches the text
  const char* vectors;
  std::span<const FlagRow> flags;
};

// One for each of kDialects, in the same order.
extern const std::span<const DialectNotes> kDialectNotes;

}  // namespace plugrad::render
