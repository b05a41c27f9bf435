// Fills the viewer's page with traces.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "trace/lines.h"

namespace plugrad::tools::trace {

/// A trace as the page holds it.
struct PageTrace {
  std::string title;
  std::string base64;   ///< of one gzip member with all readable lines
  std::string warning;  ///< why a part is missing; empty: nothing is missing
};

/// Checks and recompresses the lines of a file. Errors: User, as parse_trace().
PageTrace make_page_trace(std::span<const std::byte> file, const std::string& path,
                          const Limits& limits = {});

/// Reads a file.
PageTrace read_page_trace(const std::string& path);

/// `page` with the first traces in its places for data. Errors: User, if it has no such places.
std::string fill_page(const std::string& page, std::span<const PageTrace> traces);

std::string to_base64(std::span<const std::byte> bytes);

}  // namespace plugrad::tools::trace
