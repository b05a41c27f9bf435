// What a plugin may do to its host inside of a call: change the state of floating-point arithmetic,
// end the process, fork it, give impossible sizes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstring>
#include <functional>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/thread_pool.h"
#include "runtime/device/host_api.h"
#include "runtime/float_state.h"
#include "runtime/status.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad;
using namespace plugrad::runtime;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

namespace {

class HostileCalls : public testing::Test {
 protected:
  void SetUp() override { plugins.add("good"); }
  void launch(Device& device, const std::string& kernel, std::shared_ptr<Buffer> buffer) {
    Buffer* const buffers[] = {buffer.get()};
    device.launch(*device.compile(as_bytes(kernel), kernel), {.buffers = buffers, .scalars = {}});
  }
  FakePlugins plugins;
  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
};

// The exit code of a child that runs `body`; ends it after 20 s.
int code_of_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const pgr_host_api& host() {
  return *host_api_for("/nowhere/libplugrad_plugin_some.so");
}

void append(std::string_view text, void* context) {
  static_cast<std::string*>(context)->append(text);
}

}  // namespace

TEST_F(HostileCalls, RoundingOfTheHostStays) {
  Registry registry(plugins.options());
  Device& device = registry.find_device("good");
  launch(device, "rounds_up", device.allocate(8));
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  std::fesetround(FE_DOWNWARD);  // the program's own choice
  launch(device, "rounds_up", device.allocate(8));
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

#ifdef __x86_64__
TEST(FloatMode, AnyChangeOfRoundingOrDenormalsIsUndone) {
  constexpr unsigned kFlush = 0x8000, kDenormalsAreZero = 0x40, kFlags = 0x3f;
  const unsigned usual = _mm_getcsr() & ~kFlags;
  const auto state = [] { return std::pair(_mm_getcsr() & ~kFlags, std::fegetround()); };
  for (const int own : {FE_TONEAREST, FE_UPWARD, FE_TOWARDZERO})
    for (const unsigned own_bits : {0u, kFlush, kFlush | kDenormalsAreZero}) {
      std::fesetround(own);
      _mm_setcsr(_mm_getcsr() | own_bits);
      const auto before = state();
      for (const int round : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
        for (const unsigned bits : {0u, kFlush, kDenormalsAreZero, kFlush | kDenormalsAreZero}) {
          // Which of the two flushes is not seen where both states flush.
          if ((own_bits != 0) == (bits != 0) && own == round) continue;
          {
            const FloatModeScope mode;
            std::fesetround(round);
            _mm_setcsr((_mm_getcsr() & ~(kFlush | kDenormalsAreZero)) | bits);
          }
          EXPECT_EQ(state(), before) << own << " " << own_bits << " " << round << " " << bits;
        }
      std::fesetround(FE_TONEAREST);
      _mm_setcsr(usual);
    }
}
#endif

TEST_F(HostileCalls, RoundingOfThePoolsThreadsStays) {
  struct Seen {
    std::atomic<int> others{0};
  } seen;
  const auto all = [&](pgr_span_fn span) { host().parallel_for(host().host, 64, 1, span, &seen); };
  all([](void*, uint64_t, uint64_t, uint32_t) {
    std::fesetround(FE_UPWARD);
    usleep(1000);
  });
  all([](void* context, uint64_t, uint64_t, uint32_t) {
    static_cast<Seen*>(context)->others += std::fegetround() != FE_TONEAREST;
    usleep(1000);
  });
  EXPECT_EQ(seen.others, 0);
}

TEST_F(HostileCalls, AnExitInsideOfACallIsAFailureThatNamesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Registry registry(plugins.options());
        Device& device = registry.find_device("good");
        launch(device, "exits", device.allocate(8));
      },
      testing::ExitedWithCode(EXIT_FAILURE),
      "\\[launch exits\\] GOOD:0: exit\\(0\\) was called inside of this call");
  EXPECT_EXIT(exit(0), testing::ExitedWithCode(0), "") << "outside of calls it is the program's";
}

TEST_F(HostileCalls, AChildForkedInALaunchGoesOnWithoutTheDevice) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot make threads in a forked child";
#endif
  const int code = code_of_child([&] {
    Registry registry(plugins.options());
    Device& device = registry.find_device("good");
    auto buffer = device.allocate(8);
    const pid_t parent = getpid();
    launch(device, "forks", buffer);
    pid_t child = 0;
    const std::string error = message_of([&] { buffer->copy_out(&child, sizeof child); });
    if (getpid() != parent) _exit(error.starts_with("[fork] GOOD:0 was opened before") ? 7 : 8);
    int status = 0;
    if (waitpid(child, &status, 0) != child) _exit(9);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 10);
  });
  EXPECT_EQ(code, 7);
}

TEST(HostApi, RefusesNullAndImpossibleSizes) {
  const pgr_host_api& h = host();
  const pgr_string key = c_string("key"), endless = {"key", uint64_t{1} << 40}, none = {nullptr, 3};
  const auto refused = [](const auto& call) {
    CallError error;
    return call(error.get()) == PGR_STATUS_INVALID_ARGUMENT ? error.message() : "accepted";
  };
  for (const pgr_string* bad : {static_cast<const pgr_string*>(nullptr), &endless, &none}) {
    EXPECT_THAT(refused([&](auto* e) { return h.cache_put(h.host, bad, "x", 1, e); }),
                StartsWith("the key is NULL or longer"));
    pgr_blob blob;
    PGR_INIT(blob, BLOB);
    EXPECT_THAT(refused([&](auto* e) { return h.cache_get(h.host, bad, &blob, e); }),
                StartsWith("the key is NULL or longer"));
    const void* table = nullptr;
    EXPECT_THAT(refused([&](auto* e) { return h.open_component(h.host, bad, &key, 0, &table, e); }),
                StartsWith("the component's name is NULL"));
    EXPECT_THAT(refused([&](auto* e) { return h.open_component(h.host, &key, bad, 0, &table, e); }),
                StartsWith("the interface's name is NULL"));
  }
  EXPECT_THAT(refused([&](auto* e) { return h.cache_put(h.host, &key, nullptr, 4, e); }),
              HasSubstr("4 bytes at NULL"));
  EXPECT_THAT(
      refused([&](auto* e) { return h.cache_put(h.host, &key, "x", uint64_t{1} << 40, e); }),
      HasSubstr("at most 1073741824"));
  EXPECT_THAT(refused([&](auto* e) { return h.cache_get(h.host, &key, nullptr, e); }),
              HasSubstr("no blob"));
  EXPECT_THAT(refused([&](auto* e) { return h.open_component(h.host, &key, &key, 0, nullptr, e); }),
              HasSubstr("no place"));
  EXPECT_THAT(refused([&](auto* e) { return h.cache_put(nullptr, &key, "x", 1, e); }),
              Not(HasSubstr("accepted")));
}

TEST(HostApi, ALongLogTextIsCutAndSaysSo) {
  const std::string text(80 << 20, 'x');
  const pgr_string given = c_string(text), null = {nullptr, 5};
  std::string log;
  set_log_sink(append, &log);
  host().log(host().host, PGR_LOG_ERROR, &given);
  host().log(host().host, PGR_LOG_ERROR, &null);
  host().log(host().host, PGR_LOG_ERROR, nullptr);
  set_log_sink(nullptr, nullptr);
  EXPECT_THAT(log, SizeIs(testing::Lt(70000u)));
  EXPECT_THAT(log, HasSubstr("(the first 65536 of 83886080 bytes)"));
  EXPECT_THAT(beginning_of(text), HasSubstr("(the first 65536 of 83886080 bytes)"));
}

TEST(CallError, ShowsOnlyWhatTheCalleeWrote) {
  {
    CallError error;
    std::memset(error.get()->message, 'A', 1000);
    error.get()->message_size = 1000;
    EXPECT_EQ(error.message(), std::string(1000, 'A'));
  }
  for (const uint64_t size : {uint64_t{12}, uint64_t{900}, UINT64_MAX}) {
    CallError error;
    std::memcpy(error.get()->message, "two", 3);
    error.get()->message_size = size;
    EXPECT_EQ(error.message(), "two");
    CallError inner;
    inner.get()->message_size = size;
    EXPECT_EQ(inner.message(), "");
  }
}

TEST(Log, AFileSizeLimitLosesLinesAndNothingElse) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/log";
  EXPECT_EQ(code_of_child([&] {
              const rlimit limit{100, 100};
              setrlimit(RLIMIT_FSIZE, &limit);
              if (dup2(open(path.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO) < 0) _exit(5);
              for (int i = 0; i < 20; ++i) log_line(LogLevel::Warning, "twenty of these lines");
            }),
            0);
  EXPECT_EQ(std::filesystem::file_size(path), 100u);
}
