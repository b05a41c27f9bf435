#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/uop.h"
#include "plugrad/error.h"

namespace plugrad {
namespace {

TEST(Printer, OneNodeALine) {
  Graph g;
  const UOp r = uop_range(g, 8, 2, AxisKind::Reduce);
  const UOp value = r.cast(DType::F32), zero = uop_constant(g, DType::F32, -0.0);
  const Id sum = reduce(Op::Add, value * zero, {r});
  EXPECT_EQ(print(g, sum, Numbering::FromZero),
            "%0 = const index 8\n"
            "%1 = range index %0 axis=2 kind=reduce\n"
            "%2 = cast f32 %1\n"
            "%3 = const f32 -0\n"
            "%4 = mul f32 %2, %3\n"
            "%5 = reduce f32 %4, %1 [add]\n"
            "return %5\n");
}

TEST(Parser, ReadsBoundsOfARange) {
  Graph g;
  const UOp i = uop_range(g, 8, 0);
  const UOp r =
      i.with(bounded_range(g, uop_range(g, 4, 1, AxisKind::Reduce), i.constant(int64_t{1}), i));
  const std::string text = print(g, r, Numbering::FromZero);
  EXPECT_THAT(text, testing::HasSubstr("range index %3, %2, %1 axis=1 kind=reduce"));
  Graph again;
  EXPECT_EQ(print(again, parse(again, text), Numbering::FromZero), text);
}

TEST(Parser, ReadsWhatThePrinterWrites) {
  Graph g;
  const Id a = g.add(Op::Buffer, DType::F32, {}, g.list({0, 1, 4, 8}));
  const Id shaped = g.add(Op::Permute, DType::F32, {a}, g.list({1, 0}));
  const Id sum =
      g.add(Op::Reduce, DType::F32, {shaped}, g.list({static_cast<int64_t>(Op::Max), 0}));
  const Id constants[] = {g.constant(DType::F64, 0.1),         g.constant(DType::F32, INFINITY),
                          g.constant(DType::F16, -INFINITY),   g.constant(DType::F32, std::nan("")),
                          g.constant(DType::U64, int64_t{-1}), g.constant(DType::I64, INT64_MIN),
                          g.constant(DType::Bool, int64_t{1}), g.constant(DType::F64, 5e-324)};
  std::vector<Id> roots{g.add(Op::Copy, DType::F32, {sum}, 3)};
  roots.insert(roots.end(), std::begin(constants), std::end(constants));
  const std::string text = print(g, roots);
  Graph again;
  const auto parsed = parse(again, text);
  EXPECT_EQ(print(again, parsed, Numbering::FromZero), print(g, roots, Numbering::FromZero));
  EXPECT_EQ(parse(g, text), roots);  // interned: the very same nodes
}

std::string error_of(std::string_view text) {
  Graph g;
  try {
    parse(g, text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    return e.what();
  }
  return "";
}

TEST(Parser, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of("%0 = const f32 1\n%1 = adt f32 %0, %0"),
            "[parse] line 2, column 6: there is no op \"adt\"");
  EXPECT_EQ(error_of("%1 = add f32 %0, %0"), "[parse] line 1, column 14: %0 is not defined above");
  EXPECT_EQ(error_of("%0 = const f33 1"), "[parse] line 1, column 12: there is no dtype \"f33\"");
  EXPECT_THAT(error_of("%0 = const i8 300"), ::testing::HasSubstr("300 does not fit into i8"));
  EXPECT_THAT(error_of("%0 = const f32 1\n%1 = add f32 %0"),
              ::testing::HasSubstr("add takes 2 to 2 sources, here are 1"));
  EXPECT_THAT(error_of("%0 = const f32 1 2"), ::testing::HasSubstr("the line goes on with \"2\""));
  EXPECT_THAT(error_of("// nothing\n"), ::testing::HasSubstr("no node was given"));
}

}  // namespace
}  // namespace plugrad
