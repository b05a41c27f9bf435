// Files that are not libraries or unsafe to open: the host executes none of them, and none blocks
// it.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "abi/zoo/zoo.h"
#include "unit/runtime/elf_file.h"

using namespace plugrad::runtime;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

constexpr LoadStage kFound = LoadStage::Found, kPermissions = LoadStage::Permissions,
                    kLibrary = LoadStage::Library, kManifest = LoadStage::Manifest;

const std::string kName = "/libplugrad_plugin_bad";

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Adds a valid plugin, then lets `damage` modify its library (.so) and manifest (.json).
LoadRecord record_after(const std::function<void(const std::string& base)>& damage) {
  FakePlugins plugins;
  plugins.add("bad", "", "zoo");
  damage(plugins.path() + kName);
  return Registry(plugins.options()).records().at(0);
}

void replace(const std::string& base, const std::string& bytes) {
  write(base + ".so", bytes);
}

std::string patched(const std::string& base, std::size_t at, char value) {
  std::string bytes = bytes_of(base + ".so");
  bytes[at] = value;
  return bytes;
}

void expect(const Expected& expected, const std::function<void(const std::string& base)>& damage) {
  expect_record(record_after(damage), expected);
}

}  // namespace

TEST(ZooFiles, WhatIsNoFile) {
  const auto remove = [](const std::string& base) { fs::remove(base + ".so"); };
  expect({kFound, LoadState::Refused, "it is a directory, not a file"}, [&](auto& base) {
    remove(base);
    fs::create_directory(base + ".so");
  });
  expect({kFound, LoadState::Refused, "it is a link to a file that is not there: /nowhere.so"},
         [&](auto& base) {
           remove(base);
           fs::create_symlink("/nowhere.so", base + ".so");
         });
  expect({kFound, LoadState::Refused, "Too many levels of symbolic links"}, [&](auto& base) {
    remove(base);
    fs::create_symlink(base + ".so", base + ".so");
  });
  expect({kFound, LoadState::Refused, "it is not a regular file"}, [&](auto& base) {
    remove(base);
    ASSERT_EQ(mkfifo((base + ".so").c_str(), 0644), 0);
  });
  expect({kFound, LoadState::Refused, "it is not a regular file"}, [&](auto& base) {
    remove(base);
    fs::create_symlink("/dev/zero", base + ".so");
  });
  if (geteuid() != 0)
    expect({kFound, LoadState::Refused, "Permission denied"},
           [&](auto& base) { ASSERT_EQ(chmod((base + ".so").c_str(), 0), 0); });
}

TEST(ZooFiles, WhatIsNoLibrary) {
  expect({kLibrary, LoadState::Refused, "it is no ELF file"},
         [](auto& base) { replace(base, ""); });
  expect({kLibrary, LoadState::Refused, "it is no ELF file"},
         [](auto& base) { replace(base, "INPUT(libevil.so)\n"); });
  expect({kLibrary, LoadState::Refused, "it is truncated: 4 bytes"},
         [](auto& base) { replace(base, "\177ELF"); });
  expect({kLibrary, LoadState::Refused, "it is a 32-bit library"},
         [](auto& base) { replace(base, patched(base, EI_CLASS, ELFCLASS32)); });
  expect({kLibrary, LoadState::Refused, "none of 64 bits and little endian"},
         [](auto& base) { replace(base, patched(base, EI_DATA, ELFDATA2MSB)); });
  expect({kLibrary, LoadState::Refused, "it is built for ELF machine 243"}, [](auto& base) {
    replace(base, patched(base, offsetof(Elf64_Ehdr, e_machine), char(243)));
  });
  expect({kLibrary, LoadState::Refused, "not a shared library"},
         [](auto& base) { replace(base, patched(base, offsetof(Elf64_Ehdr, e_type), ET_REL)); });
}

// Touching the missing part of a mapped truncated file would kill the process.
TEST(ZooFiles, WhatIsCutShort) {
  std::uint64_t needed = 0;
  const std::string whole = bytes_of(std::string(PLUGRAD_FAKE_PLUGINS) + "/zoo.so");
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, whole.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  for (std::uint64_t size : {sizeof header, needed / 10, needed / 2, needed - 1})
    expect({kLibrary, LoadState::Refused, "it is truncated"},
           [&](auto& base) { fs::resize_file(base + ".so", size); });
  expect({LoadStage::Probes, LoadState::Available, ""},
         [&](auto& base) { fs::resize_file(base + ".so", needed); });
}

TEST(ZooFiles, WhatEverybodyCanWrite) {
  for (const char* part : {"/libplugrad_plugin_bad.so", "/libplugrad_plugin_bad.json", ""})
    expect({kPermissions, LoadState::Refused, "can be written by everybody"}, [&](auto& base) {
      ASSERT_EQ(chmod((fs::path(base).parent_path().string() + part).c_str(), 0777), 0);
      // the sticky bit is not sufficient
      if (!*part) chmod(fs::path(base).parent_path().c_str(), 01777);
    });
}

// A link in a world-writable directory may point anywhere.
TEST(ZooFiles, ALinkCountsWhereItStands) {
  Zoo safe, open;
  std::string target = safe.plugins.add("bad", "", "zoo");
  fs::create_symlink(target, open.plugins.path() + "/libplugrad_plugin_bad.so");
  ASSERT_EQ(chmod(open.plugins.path().c_str(), 0777), 0);
  Registry registry(open.plugins.options());
  expect_record(registry.records()[0],
                {kPermissions, LoadState::Refused, "can be written by everybody"});
  ASSERT_EQ(chmod(open.plugins.path().c_str(), 0755), 0);
  EXPECT_EQ(Registry(open.plugins.options()).find_device("bad").name(), "BAD:0");
}

TEST(ZooFiles, WhatEverybodyCanWriteIsOpenedWhereItIsTrusted) {
  Zoo zoo;
  std::string library = zoo.plugins.add("bad", "", "zoo");
  ASSERT_EQ(chmod(zoo.plugins.path().c_str(), 0777), 0);
  for (const std::string& trusted : {library, zoo.plugins.path(), "/nowhere:" + library}) {
    plugrad::SettingScope scope([&](plugrad::Settings& s) { s.trust_plugins = trusted; });
    EXPECT_EQ(Registry(zoo.plugins.options()).find_device("bad").name(), "BAD:0") << trusted;
  }
  for (const char* other : {"/tmp", "/", "libplugrad_plugin_bad.so", ":", "/nowhere"}) {
    plugrad::SettingScope scope([&](plugrad::Settings& s) { s.trust_plugins = other; });
    EXPECT_EQ(Registry(zoo.plugins.options()).records()[0].stage, kPermissions) << other;
  }
}

TEST(ZooFiles, AManifestThatIsNoFile) {
  const auto manifest = [](const std::string& base) { return base + ".json"; };
  expect({kManifest, LoadState::Refused, "it is a directory, not a file"}, [&](auto& base) {
    fs::remove(manifest(base));
    fs::create_directory(manifest(base));
  });
  expect({kManifest, LoadState::Refused, "it is not a regular file"}, [&](auto& base) {
    fs::remove(manifest(base));
    ASSERT_EQ(mkfifo(manifest(base).c_str(), 0644), 0);
  });
  expect({kManifest, LoadState::Refused, "it has no manifest: no note inside it, and no file"},
         [&](auto& base) { fs::remove(manifest(base)); });
  expect({kManifest, LoadState::Refused, "No such file"}, [&](auto& base) {
    fs::remove(manifest(base));
    fs::create_symlink("/nowhere.json", manifest(base));
  });
}

TEST(ZooFiles, PlacesThatTheUserNamedAndThatAreNotThere) {
  RegistryOptions options;
  options.places = {{"/nowhere/plugins", "PLUGRAD_PLUGIN_PATH", false, true},
                    {"plugins", "PLUGRAD_PLUGIN_PATH", false, true},
                    {"libplugrad_plugin_x.so", "PLUGRAD_PLUGIN_FILES", true},
                    {"/nowhere/lib.so", "PLUGRAD_PLUGIN_FILES", true},
                    {"/nowhere/silent", "system directory"}};
  Registry registry(options);
  std::vector<LoadRecord> records = registry.records();
  ASSERT_EQ(records.size(), 4u);
  expect_record(records[0], {kFound, LoadState::Refused, "No such file"});
  expect_record(records[1], {kFound, LoadState::Refused, "it is a bare name"});
  expect_record(records[2], {kFound, LoadState::Refused, "it is a bare name"});
  expect_record(records[3], {kFound, LoadState::Refused, "No such file"});
}
