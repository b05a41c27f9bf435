// Fills the template of a report with values.
//
//   template: <ul>{{#tests}}<li>{{name}}</li>{{/tests}}</ul>
//   values:   {"tests": [{"name": "a"}, {"name": "b < c"}]}
//   result:   <ul><li>a</li><li>b &lt; c</li></ul>
//
// Values never become markup, unless the template asks for it with three braces.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace plugrad::markup {

using Values = nlohmann::ordered_json;

// Templates are written in a subset of Mustache (https://mustache.github.io/mustache.5.html):
//   {{name}}             a text or an integer, escaped
//   {{{name}}}           the same, not escaped: for values that are markup
//   {{#name}}…{{/name}}  once for each element of an array; once for another value that is not empty
//   {{^name}}…{{/name}}  once if the value is absent or empty: null, false, "", [] or {}
//   {{.}}                the current element
//   {{!…}}               a comment; it may span lines, and so joins them
// A line that holds only a section tag or a comment is removed. A name is looked up in the current
// element, then in the enclosing ones. Throws std::logic_error if the template is malformed or a
// value outside section tags is absent.
std::string fill(std::string_view text, const Values& values);

}  // namespace plugrad::markup
