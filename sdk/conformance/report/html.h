// The parts of the HTML page.
#pragma once

#include <string>

#include "conformance/report/report.h"

namespace plugrad::conformance::html {

extern const char* const kStyle;
extern const char* const kScript;

std::string badge(Status status);
// A section with a heading; empty if the body is empty.
std::string section(std::string_view id, std::string_view title, const std::string& body);

std::string summary(const Report& report);
std::string next_steps(const Report& report);
std::string failures(const Report& report);
std::string waived(const Report& report);
std::string matrix(const Report& report);
std::string performance(const Report& report);
std::string slowest(const Report& report);
std::string unsupported(const Report& report);
std::string all_tests(const Report& report);

}  // namespace plugrad::conformance::html
