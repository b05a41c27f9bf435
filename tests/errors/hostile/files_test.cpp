// Every file reader, given a pipe without writer, an endless device, a folder, a file of 4 TiB, a
// file of zeros and a missing file: each ends at once in one error that names the file, and no
// memory is allocated for a size that a file merely announces.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"
#include "conformance/driver/replay.h"
#include "conformance/plugin/manifest.h"
#include "conformance/report/report.h"
#include "errors/hostile/largest_request.h"
#include "io/safetensors.h"
#include "nn/data/cifar.h"
#include "nn/data/idx.h"
#include "plugrad/error.h"
#include "plugrad/numpy.h"
#include "runtime/discovery/plugin_discovery.h"
#include "tuning/schedule_database.h"
#include "unit/base/temporary_directory.h"

namespace plugrad {
namespace {

namespace fs = std::filesystem;

constexpr off_t kHuge = off_t{1} << 42;
constexpr std::size_t kMostRequested = 8 << 20;  // in bytes; the readers' own tables and rooms

struct FileReader {
  const char* name;
  std::function<std::string(const std::string& path)> refusal;  // empty: it was read
};

// The error thrown by `read`, if it is a User error or an error of the suite's command.
template <class Read>
std::string refusal_of(Read read) {
  try {
    read();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::User) << error.what();
    return error.what();
  } catch (const std::bad_alloc&) {
    ADD_FAILURE() << "bad_alloc";
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// The logged refusal of an optional file.
template <class Read>
std::string log_of(Read read) {
  std::string log;
  set_log_sink([](std::string_view text, void* to) { static_cast<std::string*>(to)->append(text); },
               &log);
  read();
  set_log_sink(nullptr, nullptr);
  return log;
}

std::string text_of(const std::string& path) {
  const auto bytes = read_file(path);
  return bytes ? "" : path + ": " + file_error_text(errno);
}

std::string library_refusal(const std::string& path) {
  const runtime::LoadRecord record = runtime::examine_plugin(path, "test");
  return record.state == runtime::LoadState::Refused ? path + record.reason : "";
}

// The library is valid; the manifest file beside it is the tested input.
std::string manifest_refusal(const std::string& path) {
  const std::string library = fs::path(path).replace_extension(".so");
  fs::copy_file(PLUGRAD_SOME_PLUGIN, library, fs::copy_options::overwrite_existing);
  const runtime::LoadRecord record = runtime::examine_plugin(library, "test");
  return record.state == runtime::LoadState::Refused ? path + record.reason : "";
}

// The cache reads a file of a fixed name.
std::string cache_refusal(const std::string& path) {
  const std::string key = "key";
  DiskCache cache(path + ".cache");
  fs::create_directories(cache.directory());
  if (fs::exists(path)) fs::rename(path, cache.path());
  const auto found = cache.get(std::as_bytes(std::span(key)));
  for (const std::string& left : {cache.path(), cache.path() + ".damaged"})
    if (fs::exists(left)) fs::rename(left, path);
  fs::remove_all(cache.directory());
  return found ? "" : path;
}

const std::vector<FileReader>& readers() {
  static const std::vector<FileReader> all = {
      {"read_file", text_of},
      {"load_npy", [](const auto& p) { return refusal_of([&] { load_npy(p).realize(); }); }},
      {"load_npz", [](const auto& p) { return refusal_of([&] { load_npz(p); }); }},
      {"safetensors", [](const auto& p) { return refusal_of([&] { io::read_safetensors(p); }); }},
      {"idx", [](const auto& p) { return refusal_of([&] { nn::read_idx(p, {{2, 3}, ""}); }); }},
      {"cifar archive", [](const auto& p) { return refusal_of([&] { nn::read_cifar(p, {2}); }); }},
      {"cifar checksum",
       [](const auto& p) { return refusal_of([&] { nn::read_cifar(p, {2, "00"}); }); }},
      {"search database",
       [](const auto& p) { return log_of([&] { tuning::ScheduleDatabase(p).find({}); }); }},
      {"cache", cache_refusal},
      {"plugin", library_refusal},
      {"manifest", manifest_refusal},
      {"replay token",
       [](const auto& p) { return refusal_of([&] { conformance::decode_replay(p); }); }},
      {"waivers", [](const auto& p) { return refusal_of([&] { conformance::Waivers::read(p); }); }},
      {"suite's manifest",
       [](const auto& p) { return refusal_of([&] { conformance::manifest_inside(p); }); }},
  };
  return all;
}

// A reader that hangs ends the test.
class HostileFiles : public testing::Test {
 protected:
  HostileFiles() { alarm(100); }
  ~HostileFiles() override { alarm(0); }

  void expect_refused() {
    for (const FileReader& reader : readers()) {
      SCOPED_TRACE(std::string(reader.name) + " of " + path);
      test::take_largest_request();
      const std::string refusal = reader.refusal(path);
      EXPECT_LT(test::take_largest_request(), kMostRequested);
      EXPECT_THAT(refusal, testing::HasSubstr(path));
      EXPECT_THAT(refusal, testing::Not(testing::HasSubstr("bad_alloc")));
    }
  }

  const TemporaryDirectory directory;
  const std::string path = directory / "hostile.json";
};

TEST_F(HostileFiles, APipeThatNobodyWrites) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused();
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(HostileFiles, ADeviceWithoutEnd) {
  fs::create_symlink("/dev/zero", path);
  expect_refused();
}

TEST_F(HostileFiles, AFileOf4TiB) {
  std::ofstream(path).flush();
  ASSERT_EQ(truncate(path.c_str(), kHuge), 0) << "no sparse files here";
  expect_refused();
}

TEST_F(HostileFiles, AFolder) {
  fs::create_directory(path);
  for (const FileReader& reader : readers()) {
    if (std::string_view(reader.name).starts_with("cifar")) continue;  // which reads folders
    EXPECT_THAT(reader.refusal(path), testing::HasSubstr(path)) << reader.name;
  }
}

}  // namespace
}  // namespace plugrad
