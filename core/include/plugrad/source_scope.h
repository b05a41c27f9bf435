/// Where the tensor operations of a trace come from.
#pragma once

#include <source_location>
#include <string_view>

#include "plugrad/export.h"

namespace plugrad {

/// While it lives, a trace (PLUGRAD_TRACE, VIZ) names this place as the source of the thread's
/// tensor operations. Without one the trace finds the caller's line in the program's debug
/// information (-g). For programs without it, and for bindings of other languages. Scopes nest; the
/// innermost counts. Costs two assignments.
class PLUGRAD_API SourceScope {
 public:
  explicit SourceScope(std::source_location place = std::source_location::current())
      : SourceScope(place.file_name(), place.line(), place.function_name()) {}
  /// The texts must outlive the scope.
  SourceScope(std::string_view file, unsigned line, std::string_view function);
  ~SourceScope();
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

  std::string_view file() const { return file_; }
  unsigned line() const { return line_; }
  std::string_view function() const { return function_; }

 private:
  std::string_view file_, function_;
  unsigned line_;
  const SourceScope* outer_;
};

/// Whether a trace records the sources of operations, so that a SourceScope is of use.
PLUGRAD_API bool records_sources();

}  // namespace plugrad
