// A plugin opened by the suite's host.
#include <dlfcn.h>

#include <filesystem>
#include <optional>

#include "conformance/plugin/calls.h"
#include "conformance/plugin/device.h"
#include "conformance/plugin/host.h"
#include "conformance/plugin/manifest.h"
#include "conformance/plugin/sdk_renderer.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {
namespace {

pgr_plugin_entry_fn find_entry(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failed(std::string("dlopen: ") + ::dlerror());
  void* symbol = ::dlsym(library, PGR_PLUGIN_ENTRY_NAME);
  if (!symbol) throw Failed(path + " exports no symbol " PGR_PLUGIN_ENTRY_NAME);
  return reinterpret_cast<pgr_plugin_entry_fn>(symbol);
}

// A table of the plugin, queried once.
template <typename Api>
class Table {
 public:
  Table(const char* name, uint32_t struct_id) : name_(name), struct_id_(struct_id) {}

  // NULL if the plugin does not offer it; with `must`: Failed.
  const Api* get(const pgr_plugin_api& plugin, bool must = false) {
    if (!asked_) ask(plugin);
    if (must && !refusal_.empty()) throw Failed(std::string(name_) + ": " + refusal_);
    return refusal_.empty() ? &own_ : nullptr;
  }

 private:
  void ask(const pgr_plugin_api& plugin) {
    asked_ = true;
    CallError error;
    const void* theirs = nullptr;
    const pgr_string name = sdk::to_pgr(name_);
    const pgr_status status =
        plugin.query_interface(plugin.plugin, &name, PGR_API_MINOR, &theirs, error.get());
    if (status != PGR_STATUS_OK)
      refusal_ = "query_interface answered " + status_name(status) + " " + error.message();
    else
      refusal_ = clamp_table(theirs, struct_id_, own_);
  }

  const char* name_;
  uint32_t struct_id_;
  bool asked_ = false;
  std::string refusal_;
  Api own_{};
};

class OpenedPlugin final : public Plugin {
 public:
  OpenedPlugin(const std::string& path, uint32_t device_index,
               std::map<std::string, std::string> device_options,
               std::map<std::string, std::string> plugin_options)
      : path_(std::filesystem::canonical(path).string()),
        manifest_(read_manifest(path_)),
        device_index_(device_index),
        device_options_(std::move(device_options)),
        plugin_options_(std::move(plugin_options)),
        entry_(find_entry(path_)) {
    enter(make_options(plugin_options_));
  }

  const std::string& path() const override { return path_; }
  const ManifestFacts& manifest() const override { return manifest_; }
  uint32_t device_index() const override { return device_index_; }
  const std::map<std::string, std::string>& device_options() const override {
    return device_options_;
  }
  const std::map<std::string, std::string>& plugin_options() const override {
    return plugin_options_;
  }
  pgr_plugin_entry_fn entry() const override { return entry_; }
  bool is_newer() const override { return minor_ > PGR_API_MINOR; }
  const pgr_host_api& host() const override { return Host::of(path_).api(); }
  const pgr_plugin_api& api() const override { return api_; }

  const pgr_device_api* device_api() override { return device_.get(api_, true); }
  const pgr_allocator_api* allocator_api() override { return allocator_.get(api_, true); }
  const pgr_runner_api* runner_api() override { return runner_.get(api_, true); }
  const pgr_compiler_api* compiler_api() override { return compiler_.get(api_); }
  const pgr_queue_api* queue_api() override { return queue_.get(api_); }
  const pgr_graph_api* graph_api() override { return graph_.get(api_); }
  const pgr_profile_api* profile_api() override { return profile_.get(api_); }
  const pgr_renderer_api* renderer_api() override {
    if (const pgr_renderer_api* own = renderer_.get(api_)) return own;
    return manifest_.renderer.empty() ? nullptr : sdk_renderer(host(), manifest_);
  }

  Device& shared_device() override {
    if (!shared_device_) shared_device_ = open_device();
    return *shared_device_;
  }
  std::unique_ptr<Device> open_device() override {
    return conformance::open_device(*this, device_index_, device_options_);
  }

 private:
  void enter(const std::vector<pgr_option>& options) {
    pgr_hello hello;
    PGR_INIT(hello, HELLO);
    hello.host = &host();
    hello.plugin_path = sdk::to_pgr(path_);
    hello.options = options.data();
    hello.option_count = static_cast<uint32_t>(options.size());
    hello.option_stride = sizeof(pgr_option);
    const pgr_plugin_api* theirs = nullptr;
    expect_ok("the entry", [&](pgr_error* error) { return entry_(&hello, &theirs, error); });
    if (hello.canary_hello_offset != offsetof(pgr_hello, plugin_minor))
      throw Failed("the entry did not answer the hello with PGR_HELLO_ANSWER");
    minor_ = hello.plugin_minor;
    if (const auto wrong = clamp_table(theirs, PGR_STRUCT_PLUGIN_API, api_); !wrong.empty())
      throw Failed("the entry's answer: " + std::string(wrong));
  }

  std::string path_;
  ManifestFacts manifest_;
  uint32_t device_index_;
  std::map<std::string, std::string> device_options_, plugin_options_;
  pgr_plugin_entry_fn entry_;
  uint32_t minor_ = 0;
  pgr_plugin_api api_{};
  Table<pgr_device_api> device_{"pgr.device", PGR_STRUCT_DEVICE_API};
  Table<pgr_allocator_api> allocator_{"pgr.allocator", PGR_STRUCT_ALLOCATOR_API};
  Table<pgr_runner_api> runner_{"pgr.runner", PGR_STRUCT_RUNNER_API};
  Table<pgr_renderer_api> renderer_{"pgr.renderer", PGR_STRUCT_RENDERER_API};
  Table<pgr_compiler_api> compiler_{"pgr.compiler", PGR_STRUCT_COMPILER_API};
  Table<pgr_queue_api> queue_{"pgr.queue", PGR_STRUCT_QUEUE_API};
  Table<pgr_graph_api> graph_{"pgr.graph", PGR_STRUCT_GRAPH_API};
  Table<pgr_profile_api> profile_{"pgr.profile", PGR_STRUCT_PROFILE_API};
  std::unique_ptr<Device> shared_device_;  // closed before the tables are destroyed
};

}  // namespace

std::unique_ptr<Plugin> Plugin::open(const std::string& path, uint32_t device_index,
                                     std::map<std::string, std::string> device_options,
                                     const std::map<std::string, std::string>& plugin_options) {
  try {
    return std::make_unique<OpenedPlugin>(path, device_index, std::move(device_options),
                                          plugin_options);
  } catch (const Failed&) {
    throw;
  } catch (const std::exception& error) {
    throw Failed(error.what());
  }
}

}  // namespace plugrad::conformance
