// A program without a launcher, and launchers without their MPI. Each test begins as a process of
// its own, as init() can be called once.
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/settings.h"
#include "distributed/backend.h"
#include "plugrad/distributed.h"
#include "plugrad/error.h"

namespace plugrad::distributed {
namespace {

template <class Action>
void expect_error(Action action, const std::string& part) {
  try {
    action();
  } catch (const Error& e) {
    const bool is_right = std::string(e.what()).find(part) != std::string::npos;
    if (!is_right) std::fprintf(stderr, "%s\n", e.what());
    std::exit(is_right ? 0 : 2);
  }
  std::exit(3);
}

void start_as_rank_of_4(const char* mpi) {
  ::setenv("PMI_RANK", "0", 1);
  ::setenv("PMI_SIZE", "4", 1);
  change_settings([&](Settings& s) { s.mpi = mpi; });
  init();
}

void run_alone() {
  init();
  barrier();
  float sent = 3, received = 0;
  backend()->run({.send = reinterpret_cast<const std::byte*>(&sent),
                  .receive = reinterpret_cast<std::byte*>(&received),
                  .counts = {1},
                  .group = {0},
                  .tensor = "w"});
  const bool is_right = is_initialized() && rank() == 0 && size() == 1 && received == 3 &&
                        backend()->name() == "one process";
  std::exit(is_right ? 0 : 1);
}

using testing::ExitedWithCode;

TEST(Alone, AProgramWithoutALauncherIsRankZeroOfOne) {
  EXPECT_FALSE(is_initialized());
  EXPECT_EQ(backend(), nullptr);
  EXPECT_EXIT(run_alone(), ExitedWithCode(0), "");
}

TEST(Alone, RanksAreKnownAfterInit) {
  EXPECT_EXIT(expect_error([] { rank(); }, "[distributed::rank] call plugrad::distributed::init()"),
              ExitedWithCode(0), "");
  EXPECT_EXIT(expect_error([] { barrier(); }, "[distributed::barrier] call"), ExitedWithCode(0),
              "");
}

TEST(Alone, InitAgainIsRefused) {
  const auto twice = [] {
    init();
    init();
  };
  EXPECT_EXIT(expect_error(twice, "it was already called"), ExitedWithCode(0), "");
}

TEST(Alone, AnUnknownMpiIsRefused) {
  EXPECT_EXIT(expect_error([] { start_as_rank_of_4("lam"); },
                           "PLUGRAD_MPI=\"lam\" names no MPI; install the MPI that starts"),
              ExitedWithCode(0), "");
  EXPECT_EXIT(expect_error([] { start_as_rank_of_4("/lib/libmpich.so.99"); },
                           "PLUGRAD_MPI=\"/lib/libmpich.so.99\" cannot be used: "),
              ExitedWithCode(0), "");
  EXPECT_EXIT(expect_error([] { start_as_rank_of_4("/lib/libc.so.6"); },
                           "names no MPI library that there is an adapter for"),
              ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plugrad::distributed
