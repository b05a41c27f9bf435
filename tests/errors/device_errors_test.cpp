// Error messages for faulty devices, plugins, memory and caches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "errors/fresh_process.h"
#include "plugrad/tensor.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

namespace {

const std::string kPlugins = PLUGRAD_PLUGIN_DIRECTORY;

// A program that needs a device, and whose numbers are right when it gets one.
void use_the_default_device() {
  Tensor x = Tensor::from<float>({1, 2, 3});
  EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7}));
  if (testing::Test::HasFailure()) throw std::runtime_error("wrong numbers");
}

Outcome run_with_device(const std::string& device) {
  return run_in_fresh_process([&](Settings& s) { s.device = device; }, use_the_default_device);
}

Outcome run_with_cache(const std::string& directory, const std::function<void()>& before = [] {}) {
  return run_in_fresh_process([&](Settings& s) { s.cache_dir = directory; },
                              [&] {
                                before();
                                use_the_default_device();
                              });
}

std::vector<std::string> cache_files(const std::string& directory) {
  std::vector<std::string> out;
  for (auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) out.push_back(entry.path().string());
  return out;
}

std::string copy_plugin(const std::string& name, const std::string& directory) {
  std::string file = "libplugrad_plugin_" + name;
  for (const char* suffix : {".so", ".json"})
    fs::copy_file(kPlugins + "/" + file + suffix, directory + "/" + file + suffix);
  return directory + "/" + file + ".so";
}

}  // namespace

TEST(DeviceErrors, AnUnknownDeviceShowsThePlaceTheNearestNameAndWhatWasFound) {
  Outcome o = run_with_device("cpuu");
  EXPECT_TRUE(o.survived);
  EXPECT_THAT(o.error, StartsWith("user: unknown device \"cpuu\" in DEV\n"
                                  "       cpuu\n"
                                  "       ^~~~ did you mean CPU? plugins found: "));
  EXPECT_THAT(o.error, HasSubstr("REFERENCE"));
  EXPECT_THAT(o.error, testing::Not(HasSubstr("libplugrad_plugin_cpu_clang.so")))
      << "paths are long: plugrad devices --why has them";
}

TEST(DeviceErrors, AMalformedSelectionShowsThePlace) {
  EXPECT_THAT(run_with_device("cpu:one").error,
              StartsWith("user: \"one\" is neither a number, name=... nor uuid=... in DEV\n"
                         "       cpu:one\n"
                         "           ^~~ "));
  EXPECT_THAT(run_with_device("cpu,,cuda").error, StartsWith("user: an empty item in DEV"));
}

TEST(DeviceErrors, ADeviceNumberThatIsTooLargeSaysHowManyThereAre) {
  EXPECT_THAT(run_with_device("cpu:5").error, HasSubstr("CPU has 1 device"));
}

TEST(DeviceErrors, ANumberThatDoesNotExistIsToldWhereItIsNamed) {
  Outcome o = run_in_fresh_process([](Settings&) {}, [] { Tensor::from<float>({1}, "cpu:7"); });
  EXPECT_THAT(o.error, StartsWith("user: no device CPU:7 in device\n"
                                  "       cpu:7\n"
                                  "           ^ CPU has 1 device: 0"));
}

TEST(DeviceErrors, NoPluginFoundSaysWhereToLook) {
  TemporaryDirectory empty;
  Outcome o =
      run_in_fresh_process([&](Settings& s) { s.plugin_files = empty / "libplugrad_plugin_x.so"; },
                           use_the_default_device);
  EXPECT_THAT(o.error, StartsWith("user: no device can be the default"));
  EXPECT_THAT(o.error, HasSubstr("libplugrad_plugin_x.so"));
  EXPECT_THAT(o.error, HasSubstr("No such file"));
}

TEST(DeviceErrors, ARefusedPluginIsShownWithItsRecord) {
  TemporaryDirectory directory;
  std::string library = copy_plugin("cpu_clang", directory.path());
  chmod(library.c_str(), 0777);
  Outcome o = run_in_fresh_process(
      [&](Settings& s) {
        s.plugin_files = library;
        s.device = "cpu";
      },
      use_the_default_device);
  EXPECT_THAT(o.error, StartsWith("user: no device is available for \"cpu\" in DEV"));
  EXPECT_THAT(o.error, HasSubstr("refused: " + library +
                                 " can be written by everybody; take the right to write"));
}

TEST(DeviceErrors, APluginFromAnywhereFindsItsComponentsBesideTheLibrary) {
  TemporaryDirectory directory;
  std::string library = copy_plugin("cpu_clang", directory.path());
  auto only_it = [&](Settings& s) { s.plugin_files = library; };
  EXPECT_EQ(run_in_fresh_process(only_it, use_the_default_device).error, "");
}

TEST(DeviceErrors, OutOfMemoryNamesSizeUseAndLimitAndHarmsNothing) {
  Outcome o = run_in_fresh_process(
      [](Settings& s) { s.memory_limit_bytes = 8 << 20; },
      [] {
        Tensor kept = Tensor::from<float>({1, 2, 3}) * 2;
        kept.realize();
        std::string message;
        try {
          (kept.reshape({3, 1}).expand({3, 16 << 20}) + 1).realize();
        } catch (const OutOfMemoryError& e) {
          message = e.what();
          EXPECT_GE(e.size_bytes(), 192u << 20);
        }
        EXPECT_EQ(kept.to_vector<float>(), (std::vector<float>{2, 4, 6}));
        EXPECT_EQ((kept + 1).to_vector<float>(), (std::vector<float>{3, 5, 7}));
        if (testing::Test::HasFailure()) throw std::runtime_error("a tensor was harmed");
        throw OutOfMemoryError(0, message);
      });
  EXPECT_THAT(o.error, HasSubstr("out of memory: 192.0 MiB wanted"));
  EXPECT_THAT(o.error, HasSubstr("limit 8.0 MiB (PLUGRAD_MEMORY_LIMIT)"));
}

TEST(CacheErrors, ADirectoryThatCannotBeMadeCostsOneWarning) {
  TemporaryDirectory directory;
  std::ofstream(directory / "file") << "in the way";
  Outcome o = run_with_cache(directory / "file/cache");
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, HasSubstr("Not a directory; kernels are compiled anew in each process"));
  EXPECT_EQ(o.log.find("warning"), o.log.rfind("warning")) << o.log;
}

TEST(CacheErrors, AFullDiskCostsOneWarning) {
  TemporaryDirectory directory;
  Outcome o = run_with_cache(directory.path(), [] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{64, 64};
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, HasSubstr("kernels are compiled anew in each process"));
  EXPECT_EQ(o.log.find("warning"), o.log.rfind("warning")) << o.log;
  for (const std::string& file : cache_files(directory.path())) EXPECT_EQ(fs::file_size(file), 0u);
}

TEST(CacheErrors, NumbersStayRightWhereFilesAreDamaged) {
  TemporaryDirectory directory;
  EXPECT_EQ(run_with_cache(directory.path()).error, "");
  std::vector<std::string> files = cache_files(directory.path());
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    auto middle = static_cast<std::streamoff>(fs::file_size(file) / 2);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(middle) << "damage";
  }
  EXPECT_EQ(run_with_cache(directory.path()).error, "");
  for (const std::string& file : files) fs::resize_file(file, fs::file_size(file) / 3);
  EXPECT_EQ(run_with_cache(directory.path()).error, "");
}
