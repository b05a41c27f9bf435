// Devices that hang in a call: a log line names device, call and kernel; with
// PLUGRAD_DEVICE_TIMEOUT the call ends with an error, the device is lost, and the program continues
// on another device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "errors/fresh_process.h"
#include "plugrad/jit.h"
#include "plugrad/shutdown.h"
#include "plugrad/tensor.h"
#include "runtime/queue/call_watch.h"
#include "runtime/registry.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace {

using Floats = std::vector<float>;

Outcome run_with_limit(const std::string& layers, double seconds,
                       const std::function<void()>& body) {
  const TemporaryDirectory cache;
  return run_in_fresh_process(
      [&](Settings& s) {
        s.device = "CPU";
        s.plugin_path = PLUGRAD_PLUGIN_DIRECTORY;
        s.layers = layers;
        s.cache_dir = cache.path();
        s.device_timeout = seconds;
      },
      [&] {
        body();
        if (testing::Test::HasFailure()) throw std::runtime_error("see above");
      });
}

std::string hang_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "no error";
}

Floats use_reference() {
  const Tensor x = Tensor::from<float>({3, 4}, "REFERENCE");
  const Tensor y = (x * 2).realize();
  return (y + y.sum()).to_vector<float>();
}

}  // namespace

// Limits leave calls that do not hang the time that they take on a busy machine: the interpreter
// answers within a second, a compile of the CPU within three.
TEST(HangingDevice, EndsWithDeviceLostInWhicheverCallAndTheProgramGoesOn) {
  for (const char* call : {"alloc", "compile", "load", "launch", "copy", "synchronize"}) {
    const std::string device = std::string(call) == "compile" ? "CPU" : "REFERENCE";
    const std::string other = device == "CPU" ? "REFERENCE" : "CPU";
    const double limit = other == "CPU" ? 3 : 1;
    const Outcome o =
        run_with_limit("faults:device=" + device + ":" + call + "=1@HANG", limit, [&] {
          if (std::string(call) == "synchronize")
            runtime::Registry::instance().set_plugin_options(device, {{"withdraw", "synchrony"}});
          const auto use = [](const std::string& where) {
            const Tensor x = Tensor::from<float>({3, 4}, where);
            const Tensor y = (x * 2).realize();
            if (where == "REFERENCE")
              runtime::Registry::instance().find_device(where).synchronize();
            return (y + y.sum()).to_vector<float>();
          };
          for (int again = 0; again < 2; ++again)
            EXPECT_THAT(
                hang_error([&] { use(device); }),
                AllOf(StartsWith("device: ["), HasSubstr(device + ":0 is lost since"),
                      HasSubstr("a call did not return within the " + std::to_string(int(limit)) +
                                " s of PLUGRAD_DEVICE_TIMEOUT"),
                      HasSubstr("(DEVICE_LOST)"), HasSubstr("go on with another device")));
          EXPECT_EQ(use(other), (Floats{20, 22}));
          shutdown();
        });
    EXPECT_TRUE(o.survived) << call;
    EXPECT_EQ(o.error, "") << call;
  }
}

TEST(HangingDevice, NamesTheKernelThatHangs) {
  const Outcome o = run_with_limit("faults:device=REFERENCE:launch=2@HANG", 1, [] {
    EXPECT_THAT(hang_error([] { use_reference(); }),
                AllOf(StartsWith("device: [launch r_"), HasSubstr("(DEVICE_LOST)")));
  });
  EXPECT_EQ(o.error, "");
}

// The hanging call uses copies of its arguments and never accesses memory that its caller frees.
TEST(HangingDevice, ProgramsMayFreeEverythingThatTheCallWasGiven) {
  const Outcome o = run_with_limit("faults:device=REFERENCE:copy=1@HANG", 3, [] {
    {
      Floats host(1 << 16, 2.0f);
      EXPECT_THAT(hang_error([&] { (Tensor::from(host, "REFERENCE") + 1).realize(); }),
                  HasSubstr("(DEVICE_LOST)"));
    }
    EXPECT_EQ((Tensor::from(Floats(1 << 16, 1.0f)) + 1).to_vector<float>()[77], 2.0f);
  });
  EXPECT_EQ(o.error, "");
}

TEST(HangingDevice, IsReportedWhileItHangsWithDeviceCallAndKernel) {
  const Outcome o = run_with_limit("faults:device=REFERENCE:launch=2@HANG", 1, [] {
    runtime::report_calls_after(100ms);
    EXPECT_THAT(hang_error([] { use_reference(); }), HasSubstr("(DEVICE_LOST)"));
  });
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, AllOf(HasSubstr("plugrad: warning: [launch r_"),
                           HasSubstr("] REFERENCE:0: the call has not returned"),
                           HasSubstr("after 0.1 s; PLUGRAD_DEVICE_TIMEOUT=SECONDS")));
}

// Twice: kernels that have run before are not compiled again.
TEST(HangingDevice, WaitsForFirstLaunchesSayHowMany) {
  const Outcome o = run_with_limit("faults:device=REFERENCE:synchronize=2@HANG", 1, [] {
    runtime::Registry::instance().set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
    runtime::report_calls_after(200ms);
    const auto run = [] {
      const Tensor x = Tensor::from<float>({3, 4}, "REFERENCE");
      const Tensor y = (x * 2).realize(), z = (x + 1).realize();
      runtime::Registry::instance().find_device("REFERENCE").synchronize();
    };
    run();
    EXPECT_THAT(hang_error(run), HasSubstr("(DEVICE_LOST)"));
  });
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, Not(HasSubstr("for the first time")));
  const Outcome first = run_with_limit("faults:device=REFERENCE:synchronize=1@HANG", 1, [] {
    runtime::Registry::instance().set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
    runtime::report_calls_after(200ms);
    const Tensor x = Tensor::from<float>({3, 4}, "REFERENCE");
    const Tensor y = (x * 2).realize(), z = (x + 1).realize();
    EXPECT_THAT(
        hang_error([] { runtime::Registry::instance().find_device("REFERENCE").synchronize(); }),
        HasSubstr("(DEVICE_LOST)"));
  });
  EXPECT_EQ(first.error, "");
  EXPECT_THAT(first.log, HasSubstr("plugrad: REFERENCE:0 runs 2 kernels for the first time; its "
                                   "driver may be compiling\n"));
}

TEST(HangingDevice, CallsThatReturnAreNotReported) {
  const Outcome o = run_with_limit("", 0, [] {
    runtime::report_calls_after(1s);
    for (const auto end = std::chrono::steady_clock::now() + 1500ms;
         std::chrono::steady_clock::now() < end;)
      EXPECT_EQ(use_reference(), (Floats{20, 22}));
  });
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, Not(HasSubstr("has not returned")));
}

TEST(DeviceTimeout, AHealthyDeviceGivesTheSameValuesReplaysAndErrors) {
  const Outcome o = run_with_limit("", 60, [] {
    for (const char* device : {"CPU", "REFERENCE"}) {
      const auto step = jit([](const Tensor& x) { return ((x * 2).realize() + 1).realize(); });
      for (int i = 0; i < 5; ++i) {
        const float v = static_cast<float>(i);
        const Tensor x = Tensor::from<float>({v, v + 1}, device).realize();
        EXPECT_EQ(step(x).to_vector<float>(), (Floats{2 * v + 1, 2 * v + 3}));
      }
      EXPECT_EQ(Tensor::from<float>({}, device).to_vector<float>(), Floats());
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 10; ++i) EXPECT_EQ(use_reference(), (Floats{20, 22}));
      });
    for (std::thread& thread : threads) thread.join();
    shutdown();
  });
  EXPECT_EQ(o.error, "");
  const Outcome failing = run_with_limit("faults:launch=1@THROW", 60, [] {
    EXPECT_THAT(hang_error([] { (Tensor::from<float>({1}) + 1).realize(); }),
                HasSubstr("CPU:0: an exception left the plugin"));
  });
  EXPECT_EQ(failing.error, "");
}
