// Tests the roofline plot: one point for each row below a roof; names never become markup.
#include "bench/roofline/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace plugrad::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Result row(const char* name, double flops) {
  Result result;
  result.name = name;
  result.threads = 1;
  result.flops = flops;
  result.bytes = 1e6;
  result.seconds = 1e-3;
  return result;
}

TEST(Roofline, has_a_point_for_each_row_with_known_work) {
  const std::string svg =
      roofline_svg("a machine", {{1, 5e10, 1e10}}, {row("sgemm/256", 1e7), row("copy", 0)});
  EXPECT_THAT(svg, HasSubstr(">Roofline: a machine</text>"));
  EXPECT_THAT(svg, HasSubstr(">1 thread: 50 GFLOP/s, 10.0 GB/s</text>"));
  EXPECT_THAT(svg, HasSubstr("><title>sgemm/256</title></circle>"));
  EXPECT_THAT(svg, HasSubstr(">20%</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("copy")));
}

TEST(Roofline, names_never_become_markup) {
  const std::string svg = roofline_svg("<b>{{top}}", {{1, 5e10, 1e10}}, {row("<b>&", 1e7)});
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("Roofline: &lt;b&gt;{{top}}"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;b&gt;&amp;</title>"));
}

}  // namespace
}  // namespace plugrad::bench
