// Calls that are refused before they are started. The ranks go on after each.
#include <gmock/gmock.h>

#include "plugrad/distributed.h"
#include "plugrad/error.h"
#include "ranks.h"

namespace plugrad::distributed::test {
namespace {

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "no error";
}

std::string error_of_call(const Call& call) {
  return error_of([&] { backend()->start(call); });
}

using testing::HasSubstr;

TEST(Misuse, InitAgainIsRefused) {
  EXPECT_TRUE(is_initialized());
  EXPECT_THAT(error_of([] { init(); }),
              HasSubstr("user: [distributed::init] it was already called"));
}

TEST(Misuse, RanksAreThoseOfTheLauncher) {
  EXPECT_EQ(rank(), static_cast<int>(backend()->rank()));
  EXPECT_EQ(size(), static_cast<int>(count_of_ranks()));
  barrier();
}

TEST(Misuse, CallsThatAreNotWellFormedAreRefused) {
  float value = 1;
  auto* memory = reinterpret_cast<std::byte*>(&value);
  const Call right{
      .send = memory, .receive = memory, .counts = {1}, .group = all_ranks(), .tensor = "w"};
  const auto with = [&](auto change) {
    Call call = right;
    change(call);
    return error_of_call(call);
  };
  EXPECT_THAT(with([](Call& c) { c.group = {}; }),
              HasSubstr("user: [all-reduce] \"w\": the group [] must list ranks"));
  EXPECT_THAT(with([](Call& c) { c.group = {self(), self()}; }), HasSubstr("in ascending order"));
  EXPECT_THAT(with([](Call& c) { c.group.push_back(99); }), HasSubstr("must list ranks below"));
  EXPECT_THAT(with([](Call& c) { c.counts = {1, 1}; }), HasSubstr("it takes 1 counts, not 2"));
  EXPECT_THAT(with([](Call& c) { c.counts = {-1}; }), HasSubstr("-1 elements"));
  EXPECT_THAT(with([](Call& c) { c.counts = {INT64_MAX}; }), HasSubstr("elements in one of"));
  EXPECT_THAT(with([](Call& c) { c.dtype = DType::Index; }), HasSubstr("have no memory"));
  EXPECT_THAT(with([](Call& c) { c.send = nullptr; }), HasSubstr("no memory is given"));
  EXPECT_THAT(with([](Call& c) { c.receive = nullptr; }), HasSubstr("no memory is given"));
  EXPECT_THAT(with([](Call& c) {
                c.kind = Kind::Send;
                c.peer = self();
              }),
              HasSubstr("[send] \"w\": the other rank is"));
  EXPECT_THAT(with([](Call& c) {
                c.kind = Kind::Broadcast;
                c.peer = 99;
              }),
              HasSubstr("[broadcast] \"w\": the root 99 is not in the group"));
  backend()->run(right);
  EXPECT_EQ(value, static_cast<float>(count_of_ranks()));
}

TEST(Misuse, AForkedProcessHasNoRanks) {
  const auto report_and_exit = [] {
    const std::string error = error_of([] { barrier(); }), again = error_of([] { init(); });
    std::fprintf(stderr, "%s\n%s\n", error.c_str(), again.c_str());
    std::exit(again.find("was forked") == again.npos ? 1 : 0);
  };
  EXPECT_EXIT(report_and_exit(), testing::ExitedWithCode(0), "this process was forked");
}

}  // namespace
}  // namespace plugrad::distributed::test
