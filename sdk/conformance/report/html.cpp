// Writes the report as one self-contained HTML page.
#include "conformance/report/html.h"

#include "report_templates.h"

namespace plugrad::conformance {

std::string write_html(const Report& report) {
  const html::Verdict verdict = html::verdict(report);
  return markup::fill(templates::kReportHtml, {{"style", templates::kReportCss},
                                               {"script", templates::kReportJs},
                                               {"device", report.device},
                                               {"suite", report.suite_version},
                                               {"verdict_class", to_string(verdict.status)},
                                               {"verdict", verdict.text},
                                               {"facts", html::facts(report)},
                                               {"levels", html::levels(report)},
                                               {"failures", html::failures(report)},
                                               {"next", html::next_steps(report)},
                                               {"waived", html::waived(report)},
                                               {"matrix", html::matrix(report)},
                                               {"performance", html::performance(report)},
                                               {"unsupported", html::unsupported(report)},
                                               {"slowest", html::slowest(report)},
                                               {"families", html::families(report)}});
}

}  // namespace plugrad::conformance
