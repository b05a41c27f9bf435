// Arbitrary textual IR is parsed or refused with an Error; a parsed graph can be verified, printed
// and read again.
#include <cstdint>
#include <string_view>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "plugrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string printed;
  try {
    Graph graph;
    const auto roots = parse(graph, text);
    if (roots.empty()) return 0;
    printed = print(graph, roots, Numbering::FromZero);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) __builtin_trap();
    return 0;
  }
  Graph again;  // what was printed must parse, and print the same
  if (print(again, parse(again, printed), Numbering::FromZero) != printed) __builtin_trap();
  return 0;
}
