// The values of the HTML page, by their names in templates/report.html. A part without rows is
// null.
#pragma once

#include <string>

#include "conformance/report/report.h"
#include "markup/fill.h"

namespace plugrad::conformance::html {

using markup::Values;

// {name: rows}, or null without rows.
Values part(const char* name, Values rows);
// "2 pass · 1 fail".
std::string counts(Totals totals);

struct Verdict {
  Status status;  // Pass or Fail
  std::string text;
};
Verdict verdict(const Report& report);
Values facts(const Report& report);
Values levels(const Report& report);
Values failures(const Report& report);
Values next_steps(const Report& report);
Values waived(const Report& report);
Values matrix(const Report& report);
Values performance(const Report& report);
Values unsupported(const Report& report);
Values slowest(const Report& report);
Values families(const Report& report);

}  // namespace plugrad::conformance::html
