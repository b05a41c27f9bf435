// Directories of fake plugins: the library fake_plugin.cpp under names chosen by the test, with
// manifests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/registry.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::runtime {

class FakePlugins {
 public:
  /// Adds libplugrad_plugin_NAME.so; `extra` are more keys of its manifest, each after a comma.
  std::string add(const std::string& name, const std::string& extra = "",
                  const std::string& library = "fake") {
    std::string device = name;
    for (char& c : device) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string manifest = R"({"name": ")" + name + R"(", "device_name": ")" + device +
                           R"(", "abi": {"major": 1, "minor_low": 0, "minor_high": 0})" + extra +
                           "}";
    return add_with_manifest(name, manifest, library);
  }
  std::string add_with_manifest(const std::string& name, const std::string& manifest,
                                const std::string& library = "fake") {
    std::string path = directory_ / ("libplugrad_plugin_" + name + ".so");
    std::filesystem::copy_file(std::string(PLUGRAD_FAKE_PLUGINS) + "/" + library + ".so", path);
    if (!manifest.empty())
      std::ofstream(directory_ / ("libplugrad_plugin_" + name + ".json")) << manifest;
    return path;
  }

  RegistryOptions options(const std::string& selection = "",
                          const std::string& visible = "") const {
    RegistryOptions out;
    out.places = {{directory_.path(), "test"}};
    out.selection = selection;
    out.visible_devices = visible;
    return out;
  }
  const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

/// The message of the Error that f throws; "no error" when it throws none.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace plugrad::runtime
