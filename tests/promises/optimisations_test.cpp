// docs/optimisations.md: a printed list can be passed back, for the kernels it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GivenLists : public testing::Test {
 protected:
  // Small whole numbers: sums are exact in every order. New each time, so that nothing is there
  // yet.
  static Tensor whole(const Shape& shape) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
      values.push_back(static_cast<float>(i * 37 % 11 - 5));
    return Tensor::from(values, shape, "CPU");
  }
  static Tensor product() { return matmul(whole({96, 64}), whole({64, 80})); }
  static Tensor doubled() { return whole({64, 64}) * 2 + 1; }
  std::string error_of(const std::string& lists) {
    try {
      const OptimisationScope scope(lists);
      product().realize();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::User);
      return e.what();
    }
    return "";
  }

  const std::string product_name_ = product().kernelize()[0].name();
};

TEST_F(GivenLists, make_the_kernel_that_they_were_printed_for) {
  const Kernel chosen = product().schedule()[0];
  const std::vector<float> values = product().to_vector<float>();
  const OptimisationScope scope(product_name_ + ": " + chosen.optimisations());
  const Kernel again = product().schedule()[0];
  EXPECT_EQ(again.source(), chosen.source());
  EXPECT_NE(again.optimisations(), "");
  EXPECT_EQ(product().to_vector<float>(), values);
}

// Borders are separate stores with their own loops, which the schedule refers to.
TEST_F(GivenLists, are_for_kernels_with_borders_too) {
  const auto padded = [] { return whole({3, 2048}).pad({{0, 0}, {70, 30}}) * 3; };
  const Kernel chosen = padded().schedule()[0];
  EXPECT_THAT(chosen.optimisations(), HasSubstr(") ")) << "more than one loop";
  const std::vector<float> values = padded().to_vector<float>();
  {
    const OptimisationScope scope(chosen.optimisations());
    EXPECT_EQ(padded().schedule()[0].source(), chosen.source());
  }
  const SearchScope search(1, 0.2);
  EXPECT_EQ(padded().to_vector<float>(), values);
}

TEST_F(GivenLists, count_instead_of_what_would_be_chosen) {
  const std::string chosen = product().schedule()[0].optimisations();
  const std::vector<float> values = product().to_vector<float>();
  for (const std::string list : {"upcast(0, 2)", "block(2, 16) unroll(3, 4) thread(0, 0)", ""}) {
    ASSERT_NE(list, chosen);
    const OptimisationScope scope(product_name_ + ": " + list);
    EXPECT_EQ(product().schedule()[0].optimisations(), list);
    EXPECT_EQ(product().to_vector<float>(), values) << list;
  }
  EXPECT_EQ(product().schedule()[0].optimisations(), chosen) << "the scope has ended";
}

TEST_F(GivenLists, are_for_the_kernel_that_they_name_or_for_all_others) {
  const std::string chosen = doubled().schedule()[0].optimisations();
  {
    const OptimisationScope scope(" " + product_name_ + " : upcast(0, 2) ; ");
    EXPECT_EQ(product().schedule()[0].optimisations(), "upcast(0, 2)");
    EXPECT_EQ(doubled().schedule()[0].optimisations(), chosen);
  }
  const OptimisationScope scope("vectorize(0, 8); " + product_name_ + ": upcast(0, 2)");
  EXPECT_EQ(product().schedule()[0].optimisations(), "upcast(0, 2)");
  EXPECT_EQ(doubled().schedule()[0].optimisations(), "vectorize(0, 8)");
}

TEST_F(GivenLists, for_kernels_that_are_never_made_are_a_warning) {
  const auto warning_of = [&](const std::string& lists) {
    testing::internal::CaptureStderr();
    {
      const OptimisationScope scope(lists);
      product().realize();
    }
    return testing::internal::GetCapturedStderr();
  };
  const std::string named = product_name_ + ": upcast(0, 2)";
  EXPECT_EQ(warning_of(named), "");
  EXPECT_EQ(warning_of(named), "") << "the kernel is there already";
  EXPECT_THAT(warning_of(named + "; r_9_9_9: upcast(0, 3); E_77:"),
              AllOf(HasSubstr("not made: E_77, r_9_9_9. Made were " + product_name_ + ";")));
  EXPECT_THAT(warning_of("upcast(0, 2)"), "") << "for every kernel";
}

// The work of the processes that the next test starts.
TEST(GivenListsOfAProcess, make_no_kernel) {
  EXPECT_EQ(Tensor(3).shape(), Shape{});
}
TEST(GivenListsOfAProcess, make_a_kernel_in_a_scope_and_one_behind_it) {
  const char* const lists = std::getenv("PLUGRAD_OPTIMISATIONS");
  const Tensor x = Tensor::from<float>({1, 2, 3}, "CPU");
  {
    const OptimisationScope scope(lists ? lists : "");
    EXPECT_EQ((x + 1).sum().item<float>(), 9);
  }
  EXPECT_EQ((x * 2).sum().item<float>(), 12);
}

TEST_F(GivenLists, of_the_environment_are_looked_at_when_the_process_ends) {
  const auto run = [&](const char* lists, const std::string& test = "GivenLists.make_the_kernel*") {
    setenv("PLUGRAD_OPTIMISATIONS", lists, 1);
    std::string command =
        "\"" + testing::internal::GetArgvs()[0] + "\" --gtest_filter=" + test + " 2>&1 >/dev/null";
    std::string text;
    FILE* const out = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, out)) > 0;) text.append(buffer, got);
    EXPECT_EQ(pclose(out), 0) << text;
    unsetenv("PLUGRAD_OPTIMISATIONS");
    return text;
  };
  EXPECT_THAT(run("r_9_9_9: upcast(0, 3)"),
              HasSubstr("not made: r_9_9_9. Made were " + product_name_));
  EXPECT_THAT(run((product_name_ + ": upcast(0, 2)").c_str()), Not(HasSubstr("not made")));
  EXPECT_THAT(run("r_9_9_9: upcast(0, 3)", "GivenListsOfAProcess.make_no_kernel"),
              HasSubstr("not made: r_9_9_9. None were made"));
  EXPECT_THAT(run("r_9_9_9: upcast(", "GivenListsOfAProcess.make_no_kernel"), HasSubstr("upcast("));
  // A scope of the same text looks at its own part alone.
  const std::string twice = run("r_9_9_9: upcast(0, 3)", "GivenListsOfAProcess.make_a_kernel_*");
  const size_t first = twice.find("not made: r_9_9_9");
  ASSERT_NE(first, twice.npos) << twice;
  EXPECT_NE(twice.find("not made: r_9_9_9", first + 1), twice.npos) << twice;
}

TEST_F(GivenLists, that_are_not_legal_are_an_error_that_says_why) {
  EXPECT_THAT(error_of(product_name_ + ": upcast(0, 2) unroll(7, 2)"),
              AllOf(HasSubstr(product_name_), HasSubstr("CPU:0"), HasSubstr("unroll(7, 2)")));
  EXPECT_THAT(error_of("upcast(0, 96) upcast(0, 80)"), HasSubstr("more code"));
  EXPECT_THAT(error_of("upcast(0, 0)"), HasSubstr("upcast"));
  EXPECT_THAT(error_of("upcast(0, -4)"), HasSubstr("upcast"));
  std::string long_list;
  for (int i = 0; i < 40; ++i) long_list += "swap(0, 1) ";
  EXPECT_THAT(error_of(long_list), HasSubstr("at most 32 changes"));
  EXPECT_EQ(product().to_vector<float>().size(), 96u * 80) << "nothing is lost";
}

TEST_F(GivenLists, whose_text_is_none_are_an_error_at_once) {
  for (const char* text :
       {"upcast", "upcast(0", "upcast(0, 2", "upcast(a, 2)", "fly(0, 2)", ": upcast(0, 2)",
        "r_1: upcast(0, 2) or so", "upcast(99999999999999999999, 2)"})
    EXPECT_THROW(OptimisationScope scope(text), Error) << text;
}

}  // namespace
}  // namespace plugrad
