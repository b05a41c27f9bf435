// Fills templates of markup with values.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace plugrad {

/// `text` in XML and HTML, also within an attribute: no part of it becomes markup.
std::string escape_markup(std::string_view text);

using TemplateValues = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// Replaces {{name}} by the escaped value and {{{name}}} by the value itself. Errors: Internal for
/// a name without a value.
std::string fill_template(std::string_view text, TemplateValues values);

}  // namespace plugrad
