// Devices that fail while a program runs: lost, out of memory, broken calls. Each error names
// device, kernel and remedy, and the program continues on another device, or once memory is
// available.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "errors/fresh_process.h"
#include "plugrad/jit.h"
#include "plugrad/optim.h"
#include "plugrad/shutdown.h"
#include "plugrad/tensor.h"
#include "runtime/registry.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

using Floats = std::vector<float>;

// Runs `body` with CPU as the default device and REFERENCE as a second device, behind `layers`.
Outcome run_behind(const std::string& layers, const std::function<void()>& body) {
  return run_in_fresh_process(
      [&](Settings& s) {
        s.device = "CPU";
        s.plugin_path = PLUGRAD_PLUGIN_DIRECTORY;
        s.layers = layers;
      },
      [&] {
        body();
        if (testing::Test::HasFailure()) throw std::runtime_error("see above");
      });
}

// Returns "kind: message" of the error thrown by f.
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "no error";
}

// A training step on two parameters, with momentum.
struct Training {
  Tensor weight = Tensor::from<float>({1, 2, 3}).requires_grad_();
  Tensor bias = Tensor::from<float>({0.5f}).requires_grad_();
  optim::SGD sgd{{weight, bias}, {.lr = 0.125, .momentum = 0.5}};

  void step() {
    sgd.zero_grad();
    ((weight * weight + bias).sum() * 0.5).backward();
    sgd.step();
  }
  Floats values() const {
    Floats out = weight.to_vector<float>();
    out.push_back(bias.item<float>());
    return out;
  }
};

}  // namespace

TEST(LostDevice, IsNamedWithKernelAndRemedyAndTheProgramGoesOnElsewhere) {
  Outcome o = run_behind("faults:device=REFERENCE:launch=2+@DEVICE_LOST", [] {
    Tensor here = (Tensor::from<float>({1, 2}) * 2).realize();
    Tensor there = (Tensor::from<float>({3, 4}, "REFERENCE") * 2).realize();
    const std::string lost = error_of([&] { (there + 1).realize(); });
    EXPECT_THAT(lost, AllOf(StartsWith("device: [launch "),
                            HasSubstr("] REFERENCE:0 is lost since"), HasSubstr("DEVICE_LOST"),
                            HasSubstr("go on with another device (DEV, Tensor::to)")));
    const std::string kernel =
        lost.substr(lost.find("launch"), lost.find(']') - lost.find("launch"));
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { there.to_vector<float>(); }, [&] { (there * 3).realize(); },
             [&] { there.to("CPU").realize(); },
             [&] { (Tensor::from<float>({1}, "REFERENCE") + 1).realize(); }})
      EXPECT_THAT(error_of(use), AllOf(StartsWith("device: ["),
                                       HasSubstr("REFERENCE:0 is lost since"), HasSubstr(kernel)));
    EXPECT_EQ(here.to_vector<float>(), (Floats{2, 4}));
    EXPECT_EQ((here + 1).to_vector<float>(), (Floats{3, 5}));
  });
  EXPECT_TRUE(o.survived);
  EXPECT_EQ(o.error, "");
}

TEST(LostDevice, AtEachCallInTurnTheProgramSurvivesAndGoesOn) {
  for (int call = 1; call <= 12; ++call) {
    Outcome o = run_behind("faults:device=REFERENCE:lost=" + std::to_string(call), [] {
      Tensor here = (Tensor::from<float>({1, 2}) * 2).realize();
      std::string said;
      for (int i = 0; i < 3; ++i)
        said = error_of([] {
          Tensor x = Tensor::from<float>({3, 4}, "REFERENCE");
          (x * 2 + x.sum()).to_vector<float>();
        });
      EXPECT_THAT(said, AllOf(StartsWith("device: "), HasSubstr("REFERENCE:0 is lost since")));
      EXPECT_EQ((here + 1).to_vector<float>(), (Floats{3, 5}));
    });
    EXPECT_TRUE(o.survived) << call;
    EXPECT_EQ(o.error, "") << call;
  }
}

TEST(Shutdown, GivesEverythingBackAndTensorsLiveOn) {
  Outcome o = run_behind("validate", [] {
    Training training;
    training.step();
    Tensor there = (Tensor::from<float>({3, 4}, "REFERENCE") * 2).realize();
    const Floats read = there.to_vector<float>();
    shutdown();
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { there.to_vector<float>(); }, [&] { training.values(); },
             [&] { (Tensor::from<float>({1}) + 1).realize(); }})
      EXPECT_THAT(error_of(use), AllOf(StartsWith("user: ["), HasSubstr("was shut down")));
    EXPECT_EQ(read, (Floats{6, 8}));
    shutdown();
  });
  EXPECT_TRUE(o.survived);
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, testing::Not(HasSubstr("validate:"))) << "nothing is left when it is closed";
}

TEST(BrokenDevice, WhatItThrowsAndUnknownCodesAreErrorsThatNameIt) {
  Outcome o = run_behind("faults:launch=1@THROW:copy=2@4711:synchronize=1@THROW", [] {
    Tensor x = Tensor::from<float>({1, 2});
    EXPECT_THAT(error_of([&] { (x * 2).realize(); }),
                AllOf(StartsWith("device: [launch "),
                      HasSubstr("CPU:0: an exception left the plugin"), HasSubstr("(INTERNAL)")));
    EXPECT_THAT(error_of([&] { (x * 2).to_vector<float>(); }),
                AllOf(StartsWith("device: [copy_out"), HasSubstr("(INTERNAL)")));
    EXPECT_EQ((x * 2).to_vector<float>(), (Floats{2, 4}));
  });
  EXPECT_EQ(o.error, "");
}

TEST(BrokenDevice, ASourceThatItsCompilerRefusesIsShownWithItsIr) {
  TemporaryDirectory cache;
  Outcome o = run_in_fresh_process(
      [&](Settings& s) {
        s.device = "CPU";
        s.cache_dir = cache.path();
        s.layers = "faults:compile=1";
      },
      [] { (Tensor::from<float>({1, 2}) * 2.5).realize(); });
  EXPECT_THAT(o.error, AllOf(HasSubstr("[compile] CPU:0: the compiler refused kernel E_2"),
                             HasSubstr("1 | "), HasSubstr("its kernel IR is in ")));
  const std::string path = o.error.substr(o.error.find(cache.path()));
  std::ifstream block(path.substr(0, path.find(" (")));
  EXPECT_TRUE(block.good()) << path;
}

// Freed memory may be reusable only after the device has finished its work on the memory.
TEST(BrokenDevice, AnAsynchronousDeviceIsWaitedForBeforeMemoryIsAskedForAgain) {
  Outcome o = run_behind("faults:device=REFERENCE:alloc=4:synchronize=1+", [] {
    runtime::Registry::instance().set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
    runtime::Device& device = runtime::Registry::instance().find_device("REFERENCE");
    for (int i = 0; i < 6; ++i) {
      Tensor x = Tensor::full({100 + 100 * i}, 1.0f, DType::F32, "REFERENCE").contiguous();
      (x + 1).realize();
    }
    EXPECT_GT(device.memory_stats().allocations, 4u);
    EXPECT_THAT(error_of([&] { device.synchronize(); }), HasSubstr("synchronize number 2 fails"))
        << "the first was within the allocation that failed, and is of no consequence there";
  });
  EXPECT_EQ(o.error, "");
}

TEST(BrokenDevice, AnAllocationThatFailsForOnceIsTriedAgain) {
  for (int call = 1; call <= 4; ++call) {
    Outcome o = run_behind("faults:alloc=" + std::to_string(call), [] {
      Training training;
      for (int i = 0; i < 3; ++i) training.step();
      EXPECT_EQ(training.values().size(), 4u);
    });
    EXPECT_EQ(o.error, "") << call;
  }
}

// A replay that updates a tensor in place: the value is the old one, the new one, or lost,
// whichever launch fails.
TEST(BrokenDevice, AReplayThatFailsMidwayLeavesNoTensorWithOtherNumbers) {
  int gone = 0, kept = 0;
  for (int launch = 4; launch <= 12; ++launch) {
    const Outcome o = run_behind("faults:device=REFERENCE:launch=" + std::to_string(launch), [] {
      constexpr int64_t kRows = 130;  // of more than 64 KiB
      const auto full = [](double value) {
        return Tensor::full({kRows, kRows}, value, DType::F32, "REFERENCE").contiguous().realize();
      };
      Tensor m = full(8), w = full(16);
      const Tensor g = full(2);
      const auto step = jit([&] {
        m.assign(m * 0.5 + g);                                 // 8, 6, 5, 4.5, …
        w.assign(w.transpose().flip(0) * 0.5 + m.sum(0) * 0);  // 16, 8, 4, …
      });
      int calls = 0;
      std::string failed = "no error";
      for (; calls < 6 && failed == "no error"; ++calls) failed = error_of([&] { step(); });
      const auto look = [](const Tensor& t) {
        float first = 0;
        const std::string error = error_of([&] {
          const Floats all = t.to_vector<float>();
          for (float v : all) EXPECT_EQ(v, all[0]);
          first = all[0];
        });
        return std::pair(first, error);
      };
      const auto [m_now, m_error] = look(m);
      const auto [w_now, w_error] = look(w);
      // An assignment that is only recorded may still be computed when it is looked at.
      const auto is_one = [&](float now, double start, double halves_to) {
        const auto after = [&](int steps) {
          return static_cast<float>((start - halves_to) * std::pow(0.5, steps) + halves_to);
        };
        return now == after(calls) || (failed != "no error" && now == after(calls - 1));
      };
      EXPECT_TRUE(m_error != "no error" || is_one(m_now, 8, 4)) << m_now << " after " << calls;
      EXPECT_TRUE(w_error != "no error" || is_one(w_now, 16, 0)) << w_now << " after " << calls;
      for (const std::string& error : {m_error, w_error}) {
        if (error == "no error") continue;
        EXPECT_THAT(error, HasSubstr("elements of f32 are gone: a step began to overwrite them"));
      }
      m.assign(full(1));
      EXPECT_EQ(m.to_vector<float>()[0], 1);
      log_warning("{}", m_error == "no error" ? "kept" : "gone");
    });
    EXPECT_EQ(o.error, "") << launch;
    gone += o.log.find("gone") != std::string::npos;
    kept += o.log.find("kept") != std::string::npos;
  }
  EXPECT_GT(gone, 0);
  EXPECT_GT(kept, 0);
}

TEST(Unsupported, NamesDeviceOpDtypeAndRemedyAndOtherDevicesGoOn) {
  Outcome o = run_behind("", [] {
    runtime::Registry::instance().set_plugin_options("REFERENCE", {{"withdraw", "add:f64"}});
    Tensor there = Tensor::from<double>({1, 2}, "REFERENCE");
    EXPECT_THAT(
        error_of([&] { (there + there.flip({0})).realize(); }),
        AllOf(StartsWith("unsupported: "), HasSubstr("no Add for f64"),
              HasSubstr("cast to f32, or use a device that has it"), HasSubstr("REFERENCE:0")));
    EXPECT_EQ((there.to("CPU") + there.to("CPU").flip({0})).to_vector<double>(),
              (std::vector<double>{3, 3}));
    EXPECT_EQ((there.cast(DType::F32) + 1).to_vector<float>(), (Floats{2, 3}));
  });
  EXPECT_EQ(o.error, "");
}

TEST(Unsupported, NamesTheLargestBufferAndOtherDevicesGoOn) {
  Outcome o = run_behind("", [] {
    runtime::Registry::instance().set_plugin_options("REFERENCE", {{"shape", "gpu"}});
    const Tensor large = Tensor::from<float>({1, 2}, "REFERENCE").reshape({2, 1});
    EXPECT_THAT(error_of([&] { (large.expand({2, 20'000'000}) + 1).realize(); }),
                AllOf(StartsWith("unsupported: [alloc] REFERENCE:0: a buffer of 152.6 MiB"),
                      HasSubstr("the device's largest is 128.0 MiB; use smaller tensors")));
    EXPECT_EQ((large + 1).to_vector<float>(), (Floats{2, 3}));
  });
  EXPECT_EQ(o.error, "");
}

TEST(OutOfMemory, NamesDeviceSizeUseAndWhatTheMemoryWasFor) {
  Outcome o = run_behind("faults:alloc=2+", [] {
    Tensor x = Tensor::from<float>({1, 2, 3});
    EXPECT_THAT(error_of([&] { (x.reshape({3, 1}).expand({3, 1000}) + 1).realize(); }),
                AllOf(StartsWith("device: [alloc] CPU:0 is out of memory: 12.0 KiB wanted"),
                      HasSubstr("in use"), HasSubstr("for 3000 elements of f32"),
                      HasSubstr("free tensors or use smaller batches")));
  });
  EXPECT_EQ(o.error, "");
}

TEST(OutOfMemory, AStepThatFailsLeavesParametersAndStateAsTheyWere) {
  Outcome o = run_behind("", [] {
    Training plain, disturbed;
    for (int i = 0; i < 2; ++i) {
      plain.step();
      disturbed.step();
    }
    const Floats before = disturbed.values();
    EXPECT_EQ(before, plain.values());
    {
      SettingScope scope([](Settings& s) { s.memory_limit_bytes = 1; });
      EXPECT_THAT(error_of([&] { disturbed.step(); }), HasSubstr("out of memory"));
      EXPECT_THAT(error_of([&] { disturbed.step(); }), HasSubstr("out of memory"));
    }
    EXPECT_EQ(disturbed.values(), before);
    for (int i = 0; i < 2; ++i) {
      plain.step();
      disturbed.step();
    }
    EXPECT_EQ(disturbed.values(), plain.values());
  });
  EXPECT_EQ(o.error, "");
}

TEST(OutOfMemory, AnAssignmentThatDoesNotFitStaysAndHindersNobody) {
  Outcome o = run_behind("", [] {
    Training plain, training;
    plain.step();
    plain.step();
    training.step();
    Tensor large = Tensor::from(Floats(1 << 20, 4.0f)).realize();
    {
      SettingScope scope([](Settings& s) { s.memory_limit_bytes = 5 << 20; });
      large.assign(large * 3 + 2);
      EXPECT_THAT(error_of([&] { large.realize(); }), HasSubstr("out of memory"));
      EXPECT_EQ((Tensor::from<float>({1}) + 1).to_vector<float>(), (Floats{2}));
      training.step();
      EXPECT_EQ(training.values(), plain.values());
    }
    EXPECT_EQ(large.to_vector<float>()[12345], 14.0f) << "when there is memory, it is done";
  });
  EXPECT_EQ(o.error, "");
}
