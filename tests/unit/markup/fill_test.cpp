// Tests the filling of templates: escaping by default, sections, removed lines, refusals.
#include "markup/fill.h"

#include <gtest/gtest.h>

namespace plugrad::markup {
namespace {

std::string refusal(std::string_view text, const Values& values) {
  try {
    return "accepted: " + fill(text, values);
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

TEST(Fill, values_never_become_markup) {
  const Values values = {{"name", "<b a=\"1\" b='2'>&{{other}}{{{other}}}"}, {"other", "secret"}};
  EXPECT_EQ(fill("<p>{{name}}</p>", values),
            "<p>&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;{{other}}{{{other}}}</p>");
  EXPECT_EQ(fill("{{name}}", {{"name", "a\x01\xff"}}), "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Fill, three_braces_take_markup_as_it_is) {
  EXPECT_EQ(fill("<style>{{{style}}}</style>", {{"style", "a>b{{x}}"}}), "<style>a>b{{x}}</style>");
}

TEST(Fill, integers_are_values) {
  EXPECT_EQ(fill("{{ a }} {{b}}", {{"a", -3}, {"b", UINT64_MAX}}), "-3 18446744073709551615");
}

TEST(Fill, a_section_is_repeated_for_each_element) {
  const Values values = {{"device", "D"}, {"tests", {{{"name", "a"}}, {{"name", "<"}}}}};
  EXPECT_EQ(fill("{{#tests}}{{device}}.{{name}} {{/tests}}", values), "D.a D.&lt; ");
  EXPECT_EQ(fill("{{#list}}[{{.}}]{{/list}}", {{"list", {"a", "&"}}}), "[a][&amp;]");
  EXPECT_EQ(fill("{{#list}}{{#.}}{{.}}{{/.}};{{/list}}", {{"list", {{1, 2}, {3}}}}), "12;3;");
}

TEST(Fill, a_section_of_another_value_is_a_condition) {
  constexpr std::string_view kText = "{{#a}}yes {{name}}{{/a}}{{^a}}no{{/a}}";
  const auto filled = [&](const Values& a) { return fill(kText, {{"a", a}, {"name", "x"}}); };
  EXPECT_EQ(filled("text"), "yes x");
  EXPECT_EQ(filled(true), "yes x");
  EXPECT_EQ(filled({{"name", "inner"}}), "yes inner");
  EXPECT_EQ(filled(nullptr), "no");
  EXPECT_EQ(filled(false), "no");
  EXPECT_EQ(filled(""), "no");
  EXPECT_EQ(filled(Values::array()), "no");
  EXPECT_EQ(filled(Values::object()), "no");
  EXPECT_EQ(fill(kText, Values::object()), "no");
}

TEST(Fill, lines_of_a_section_tag_or_a_comment_are_removed) {
  EXPECT_EQ(fill("{{! comment }}\na\n  {{#list}}  \n- {{.}}\n  {{/list}}\nb {{#x}}\n{{/x}}",
                 {{"list", {1, 2}}, {"x", true}}),
            "a\n- 1\n- 2\nb \n");
  EXPECT_EQ(fill("{{#a}}\n{{/a}}", {{"a", true}}), "");
}

TEST(Fill, a_comment_joins_lines) {
  EXPECT_EQ(fill("a{{!\n  }}b{{! and\nmore }}c\n", Values::object()), "abc\n");
}

TEST(Fill, refuses_what_it_cannot_fill) {
  EXPECT_EQ(refusal("{{name}}", {{"nam", "x"}}), "template: no value of {{name}}");
  EXPECT_EQ(refusal("{{a}}", {{"a", 0.5}}), "template: neither text nor integer: {{a}}");
  EXPECT_EQ(refusal("{{#a}}x", {{"a", 1}}), "template: unclosed section {{a}}");
  EXPECT_EQ(refusal("{{#a}}{{#b}}{{/a}}{{/b}}", {{"a", 1}}), "template: unopened section {{a}}");
  EXPECT_EQ(refusal("x{{/a}}", {{"a", 1}}), "template: unopened section {{a}}");
  EXPECT_EQ(refusal("{{a", {{"a", 1}}), "template: unclosed tag {{a}}");
  EXPECT_EQ(refusal("{{ }}", {{"a", 1}}), "template: no name in {{}}");
}

}  // namespace
}  // namespace plugrad::markup
