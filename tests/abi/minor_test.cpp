// Tests hosts of every minor with plugins of every minor: today's plugins, plugins built with the
// frozen headers and with those of the next minor, and released binaries. Each computes, and
// neither side accesses fields that the other's structs lack.
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "abi/minor_host.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::abi {
namespace {

constexpr uint64_t kElems = 64;
constexpr const char* kKernel = "add_64";

// out[i] = a[i] + b[i], written by the next minor's builder for every imitated minor: its records
// are longer than those of today's plugins.
std::vector<std::byte> addition() {
  sdk::IrBuilder b(kKernel);
  b.set_groups(kElems);
  const auto out = b.buffer(PGR_DTYPE_I32, kElems, PGR_PARAM_WRITE);
  const auto x = b.buffer(PGR_DTYPE_I32, kElems, PGR_PARAM_READ);
  const auto y = b.buffer(PGR_DTYPE_I32, kElems, PGR_PARAM_READ);
  const auto i = b.group_id(0);
  b.store(out, i, b.alu(PGR_OP_ADD, {b.load(x, i), b.load(y, i)}));
  return b.finish();
}

struct Plugin {
  std::string path;
  uint32_t minor;        // of its headers
  std::string renderer;  // the SDK's dialect in its manifest; empty: its own renderer
};

void PrintTo(const Plugin& plugin, std::ostream* out) {
  *out << plugin.path;
}

std::string renderer_in_manifest_of(std::filesystem::path plugin) {
  std::ifstream manifest(plugin.replace_extension(".json"));
  return nlohmann::json::parse(manifest).value("renderer", "");
}

// kept/1.0/…
uint32_t minor_of(const std::filesystem::path& kept) {
  const std::string release = kept.parent_path().filename();
  return static_cast<uint32_t>(std::stoul(release.substr(release.find('.') + 1)));
}

std::vector<Plugin> plugins() {
  std::vector<Plugin> out = {{FROZEN_PLUGIN, PGR_API_MINOR - 1, "c"},
                             {NEXT_PLUGIN, PGR_API_MINOR, "c"}};
  for (const auto& entry : std::filesystem::directory_iterator(PLUGIN_DIRECTORY))
    if (entry.path().extension() == ".so")
      out.push_back({entry.path(), PGR_API_MINOR - 1, renderer_in_manifest_of(entry.path())});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KEPT_PLUGINS))
    if (entry.path().extension() == ".so")
      out.push_back({entry.path(), minor_of(entry.path()), "c"});
  return out;
}

// One plugin with one host: from the hello to a result.
class Session {
 public:
  Session(const Plugin& plugin, uint32_t minor)
      : plugin_(plugin), minor_(minor), host_(*new MinorHost(minor)), error_(minor) {
    error_->message = text_;
    error_->message_capacity = sizeof text_;
  }

  void run() {
    if (!begin()) return;
    read_facts();
    std::vector<int32_t> a(kElems), b(kElems), out(kElems);
    for (uint32_t i = 0; i < kElems; ++i) {
      a[i] = static_cast<int32_t>(i);
      b[i] = 1000 - 3 * static_cast<int32_t>(i);
    }
    pgr_buffer* buffers[3] = {alloc(out), alloc(a), alloc(b)};
    pgr_program* program = load();
    launch(program, buffers);
    ok(memory_.copy_out(device_, nullptr, out.data(), buffers[0], 0, kElems * 4, error_.get()));
    for (uint32_t i = 0; i < kElems; ++i) EXPECT_EQ(out[i], a[i] + b[i]) << i;
    runner_.unload(device_, program);
    for (pgr_buffer* buffer : buffers) memory_.free(device_, buffer);
    api_.device_close(api_.plugin, device_);
  }

 private:
  void ok(pgr_status status) {
    ASSERT_EQ(status, PGR_STATUS_OK) << std::string(text_, error_->message_size);
  }

  bool begin() {
    void* library = dlopen(plugin_.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    if (!library) return false;
    const auto entry = reinterpret_cast<pgr_plugin_entry_fn>(dlsym(library, PGR_PLUGIN_ENTRY_NAME));
    Cut_HELLO hello(minor_);
    hello->host = host_.table();
    hello->plugin_path = to_pgr(plugin_.path);
    const pgr_plugin_api* theirs = nullptr;
    const pgr_status status = entry(hello.get(), &theirs, error_.get());
    if (status == PGR_STATUS_NEED_NEWER_HOST) {
      EXPECT_GT(hello->need_host_minor, minor_) << "an answer with a reason";
      EXPECT_GT(error_->message_size, 0u);
      ADD_FAILURE() << "these plugins use nothing of the next minor and need nothing newer";
      return false;
    }
    EXPECT_EQ(status, PGR_STATUS_OK) << std::string(text_, error_->message_size);
    if (status != PGR_STATUS_OK) return false;
    EXPECT_EQ(hello->plugin_minor, plugin_.minor);
    EXPECT_EQ(hello->canary_hello_offset, offsetof(pgr_hello, plugin_minor));
    EXPECT_EQ(hello->canary_error_size,
              size_at(hello->plugin_minor, PGR_STRUCT_ERROR, sizeof(pgr_error)));
    api_ = known_part<pgr_plugin_api>(minor_, PGR_STRUCT_PLUGIN_API, theirs);
    query("pgr.device", PGR_STRUCT_DEVICE_API, devices_);
    query("pgr.allocator", PGR_STRUCT_ALLOCATOR_API, memory_);
    query("pgr.runner", PGR_STRUCT_RUNNER_API, runner_);
    query("pgr.compiler", PGR_STRUCT_COMPILER_API, compiler_);
    find_renderer();
    uint32_t count = 0;
    ok(api_.device_count(api_.plugin, &count, error_.get()));
    if (count == 0) {  // missing hardware is not an error, but has a reason
      EXPECT_GT(error_->message_size, 0u);
      return false;
    }
    ok(api_.device_open(api_.plugin, 0, nullptr, 0, 0, &device_, error_.get()));
    return device_ != nullptr;
  }

  template <class Table>
  void query(const char* name, uint32_t id, Table& out) {
    const pgr_string text = to_pgr(name);
    const void* theirs = nullptr;
    ok(api_.query_interface(api_.plugin, &text, minor_, &theirs, error_.get()));
    if (theirs) out = known_part<Table>(minor_, id, theirs);
  }

  void find_renderer() {
    const pgr_string name = to_pgr("pgr.renderer"), library = to_pgr("plugrad_render");
    const void* theirs = nullptr;
    if (!plugin_.renderer.empty())
      ok(MinorHost::open_component(host_.table()->host, &library, &name, minor_, &theirs,
                                   error_.get()));
    else
      api_.query_interface(api_.plugin, &name, minor_, &theirs, error_.get());
    if (theirs) renderer_ = known_part<pgr_renderer_api>(minor_, PGR_STRUCT_RENDERER_API, theirs);
  }

  void read_facts() {
    Cut_PLUGIN_INFO info(minor_);
    ok(api_.info(api_.plugin, info.get(), error_.get()));
    EXPECT_GT(info->device_name.size, 0u);
    Cut_DEVICE_INFO device(minor_);
    ok(devices_.info(device_, device.get(), error_.get()));
    EXPECT_GT(device->stable_id.size, 0u);
    Cut_DEVICE_CAPS caps(minor_);
    ok(devices_.caps(device_, caps.get(), error_.get()));
    EXPECT_NE(caps->op_dtypes[PGR_OP_ADD] & (1u << PGR_DTYPE_I32), 0u);
    Cut_MEMORY_STATS stats(minor_);
    if (devices_.memory_stats) ok(devices_.memory_stats(device_, stats.get(), error_.get()));
  }

  pgr_buffer* alloc(const std::vector<int32_t>& values) {
    Cut_ALLOC_DESC desc(minor_);
    desc->size_bytes = kElems * 4;
    pgr_buffer* out = nullptr;
    ok(memory_.alloc(device_, desc.get(), &out, error_.get()));
    ok(memory_.copy_in(device_, nullptr, out, 0, values.data(), kElems * 4, error_.get()));
    return out;
  }

  std::string source_of(const std::vector<std::byte>& ir) {
    if (!renderer_.render) return {reinterpret_cast<const char*>(ir.data()), ir.size()};
    Cut_RENDER_DESC desc(minor_);
    desc->ir = ir.data();
    desc->ir_bytes = ir.size();
    Cut_OPTION dialect(minor_);
    dialect->key = to_pgr("dialect");
    dialect->value = to_pgr(plugin_.renderer);
    if (!plugin_.renderer.empty()) {
      desc->options = dialect.get();
      desc->option_count = 1;
    }
    desc->option_stride = dialect->struct_size;
    Cut_BLOB source(minor_);
    ok(renderer_.render(plugin_.renderer.empty() ? device_ : nullptr, desc.get(), source.get(),
                        error_.get()));
    std::string out(static_cast<const char*>(source->data), source->size);
    if (source->release) source->release(source.get());
    return out;
  }

  pgr_program* load() {
    const std::string input = source_of(addition());
    Cut_COMPILE_DESC desc(minor_);
    desc->input = input.data();
    desc->input_bytes = input.size();
    desc->name = to_pgr(kKernel);
    desc->option_stride = size_at(minor_, PGR_STRUCT_OPTION, sizeof(pgr_option));
    desc->optimize = 1;
    Cut_BLOB binary(minor_), log(minor_);
    ok(compiler_.compile(device_, desc.get(), binary.get(), log.get(), error_.get()));
    pgr_program* out = nullptr;
    ok(runner_.load(device_, binary->data, binary->size, &out, error_.get()));
    for (const Cut_BLOB* blob : {&binary, &log})
      if ((*blob)->release) (*blob)->release(blob->get());
    return out;
  }

  void launch(pgr_program* program, pgr_buffer* const* buffers) {
    const pgr_string name = to_pgr(kKernel);
    pgr_kernel* kernel = nullptr;
    ok(runner_.kernel(device_, program, &name, &kernel, error_.get()));
    Cut_KERNEL_LIMITS limits(minor_);
    if (runner_.limits) ok(runner_.limits(device_, kernel, limits.get(), error_.get()));
    Cut_LAUNCH_DESC desc(minor_);
    desc->buffers = buffers;
    desc->buffer_count = 3;
    desc->group_count[0] = kElems;
    desc->group_count[1] = desc->group_count[2] = 1;
    for (uint32_t& size : desc->local_size) size = 1;
    uint64_t time_ns = 0;
    ok(runner_.launch(device_, nullptr, kernel, desc.get(), &time_ns, error_.get()));
  }

  const Plugin plugin_;
  const uint32_t minor_;
  MinorHost& host_;  // lives until the process ends, as a host's table does
  Cut_ERROR error_;
  char text_[512] = {};
  pgr_plugin_api api_{};
  pgr_device_api devices_{};
  pgr_allocator_api memory_{};
  pgr_compiler_api compiler_{};
  pgr_renderer_api renderer_{};
  pgr_runner_api runner_{};
  pgr_device* device_ = nullptr;
};

class Minors : public testing::TestWithParam<std::tuple<Plugin, uint32_t>> {};

// Each in a fresh process: a plugin's entry runs once per process, with one host.
TEST_P(Minors, APluginComputesUnderAHostOfThatMinor) {
  const pid_t child = fork();
  if (child == 0) {
    const auto& [plugin, minor] = GetParam();
    Session(plugin, minor).run();
    std::fflush(stdout);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "see above";
}

std::string name_of(const testing::TestParamInfo<std::tuple<Plugin, uint32_t>>& row) {
  const std::filesystem::path path = std::get<0>(row.param).path;
  return path.stem().string().substr(std::strlen("libplugrad_plugin_")) + "_0_" +
         std::to_string(std::get<1>(row.param));
}

INSTANTIATE_TEST_SUITE_P(Hosts, Minors,
                         testing::Combine(testing::ValuesIn(plugins()),
                                          testing::ValuesIn(all_minors())),
                         name_of);

TEST(MinorHeaders, TheNextMinorIsLongerEverywhere) {
  size_t structs = 0;
#define PGR_ROW(NAME, type, number)                                             \
  EXPECT_EQ(sizeof(type), size_at(PGR_API_MINOR - 1, number, 0) + 8u) << #type; \
  ++structs;
  PGR_STRUCTS(PGR_ROW)
#undef PGR_ROW
  EXPECT_GE(structs, 27u);
}

}  // namespace
}  // namespace plugrad::abi
