// Writes the report as one self-contained HTML page.
#include "conformance/report/html.h"

#include <fmt/format.h>

namespace plugrad::conformance {

std::string write_html(const Report& report) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
      "<title>Conformance of {}</title><style>{}</style></head>\n<body><main>\n",
      escape_markup(report.device), html::kStyle);
  for (const auto part :
       {html::summary, html::failures, html::next_steps, html::waived, html::matrix,
        html::performance, html::unsupported, html::slowest, html::all_tests})
    page += part(report);
  return page +
         fmt::format(
             "<footer><p>Written by <code>plugrad conformance</code>, suite {}. The JSON beside "
             "this page holds the same; <code>plugrad conformance --verify-report FILE</code> "
             "tells whether it was "
             "edited.</p></footer>\n</main><script>{}</script></body></html>\n",
             escape_markup(report.suite_version), html::kScript);
}

}  // namespace plugrad::conformance
