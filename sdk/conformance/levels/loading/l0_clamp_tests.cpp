// L0: structs of every size, from older and newer hosts, with an inaccessible page behind them;
// extension chains.
#include "conformance/levels/kernels.h"
#include "conformance/levels/loading/guarded_bytes.h"
#include "conformance/levels/loading/l0_families.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kHeader = sizeof(pgr_struct_header);
constexpr char kUntouched = 0x5a;

template <typename Struct>
using FillCall = std::function<pgr_status(Struct* out, pgr_error* error)>;

template <typename Struct>
void expect_fill(const std::string& name, const FillCall<Struct>& call, Struct* out) {
  expect_ok_or_unsupported(
      name + " with a struct of " + std::to_string(out->struct_size) + " bytes",
      [&](pgr_error* error) { return call(out, error); });
}

// Calls with the struct at every size from its header on. The filled fields are equal at each size;
// nothing behind the struct is written, nor its first three fields. Only newer plugins may fill
// fields unknown to the suite.
template <typename Struct>
void check_fill_sizes(const std::string& name, uint32_t id, const FillCall<Struct>& call,
                      bool is_newer) {
  Struct full{};
  full.struct_size = sizeof full;
  full.struct_id = id;
  expect_fill(name, call, &full);
  for (size_t size = kHeader; size <= sizeof(Struct) + 64; size += 8) {
    GuardedBytes bytes(size);
    std::memset(bytes.data(), kUntouched, size);
    pgr_struct_header header{static_cast<uint32_t>(size), id, nullptr};
    std::memcpy(bytes.data(), &header, sizeof header);
    expect_fill(name, call, bytes.as<Struct>());
    const std::string where = name + " with a struct of " + std::to_string(size) + " bytes";
    expect(std::memcmp(bytes.data(), &header, sizeof header) == 0,
           where + " changed the struct's header");
    const size_t known = std::min(size, sizeof(Struct));
    expect(std::memcmp(bytes.data() + kHeader, reinterpret_cast<const char*>(&full) + kHeader,
                       known - kHeader) == 0,
           where + " filled other values than into the whole struct");
    for (size_t i = known; i < size && !is_newer; ++i)
      expect(bytes.data()[i] == kUntouched, where + " wrote into fields that it does not know");
  }
}

// An unknown optional extension is skipped; an unknown required one is refused.
template <typename Struct>
void check_fill_chain(const std::string& name, uint32_t id, const FillCall<Struct>& call) {
  pgr_struct_header second{kHeader, PGR_STRUCT_MUST_UNDERSTAND | 0x3ffeu, nullptr};
  pgr_struct_header first{kHeader, 0x3fffu, nullptr};
  Struct out{};
  out.struct_size = sizeof out;
  out.struct_id = id;
  out.next = &first;
  expect_fill(name, call, &out);
  expect(out.next == &first, name + " changed the struct's chain");
  first.next = &second;  // behind an optional one
  expect_status(name + " with an extension that must be understood", PGR_STATUS_INCOMPATIBLE,
                [&](pgr_error* error) { return call(&out, error); });
}

// Each struct filled by a plugin, with the call that fills it.
void with_fills(Context& context, const std::string& which, const auto& use) {
  Tables t(context);
  if (which == "plugin_info")
    use("plugin.info", PGR_STRUCT_PLUGIN_INFO,
        FillCall<pgr_plugin_info>([&](auto* out, pgr_error* error) {
          return t.plugin.info(t.plugin.plugin, out, error);
        }));
  if (which == "device_info")
    use("device.info", PGR_STRUCT_DEVICE_INFO,
        FillCall<pgr_device_info>(
            [&](auto* out, pgr_error* error) { return t.devices.info(t.handle, out, error); }));
  if (which == "device_caps")
    use("device.caps", PGR_STRUCT_DEVICE_CAPS,
        FillCall<pgr_device_caps>(
            [&](auto* out, pgr_error* error) { return t.devices.caps(t.handle, out, error); }));
  if (which == "memory_stats")
    use("device.memory_stats", PGR_STRUCT_MEMORY_STATS,
        FillCall<pgr_memory_stats>([&](auto* out, pgr_error* error) {
          const pgr_status status = t.devices.memory_stats(t.handle, out, error);
          // Free memory on the machine varies.
          if (out->struct_size >= offsetof(pgr_memory_stats, used_bytes)) out->free_bytes = 0;
          return status;
        }));
  if (which == "kernel_limits") {
    require_offered(t.runner.limits, "pgr.runner limits");
    const auto kernel = t.device.compile(spread_kernel(4));
    use("runner.limits", PGR_STRUCT_KERNEL_LIMITS,
        FillCall<pgr_kernel_limits>([&](auto* out, pgr_error* error) {
          return t.runner.limits(t.handle, kernel->handle(), out, error);
        }));
  }
  if (which == "counter") {
    const pgr_profile_api* profile = context.plugin().profile_api();
    if (!profile) throw Unsupported("the plugin does not offer pgr.profile");
    require_offered(profile->counter, "pgr.profile counter");
    use("profile.counter", PGR_STRUCT_COUNTER,
        FillCall<pgr_counter>([&](auto* out, pgr_error* error) {
          return profile->counter(t.handle, 0, out, error);
        }));
  }
}

void check_sizes(Context& context, const std::string& which) {
  const bool is_newer = context.plugin().is_newer();
  with_fills(context, which, [&](const char* name, uint32_t id, const auto& call) {
    check_fill_sizes(name, id, call, is_newer);
  });
}

void check_chains(Context& context, const std::string& which) {
  with_fills(context, which, [](const char* name, uint32_t id, const auto& call) {
    check_fill_chain(name, id, call);
  });
}

// A description in front of an inaccessible page: truncated, and with additional bytes.
template <typename Struct, typename Call>
void check_read(const std::string& name, const Struct& desc, size_t least, const Call& call) {
  for (size_t size = least; size <= sizeof(Struct) + 32; size += 8) {
    GuardedBytes bytes(desc, size);
    if (size > sizeof(Struct))
      std::memset(bytes.data() + sizeof(Struct), 0xff, size - sizeof(Struct));
    bytes.template as<Struct>()->struct_size = static_cast<uint32_t>(size);
    expect_ok(name + " with a description of " + std::to_string(size) + " bytes",
              [&](pgr_error* error) { return call(bytes.template as<Struct>(), error); });
  }
  pgr_struct_header second{kHeader, PGR_STRUCT_MUST_UNDERSTAND | 0x3ffeu, nullptr};
  pgr_struct_header first{kHeader, 0x3fffu, nullptr};
  Struct chained = desc;
  chained.next = &first;
  expect_ok(name + " with an extension that may be skipped",
            [&](pgr_error* error) { return call(&chained, error); });
  first.next = &second;
  expect_status(name + " with an extension that must be understood", PGR_STATUS_INCOMPATIBLE,
                [&](pgr_error* error) { return call(&chained, error); });
}

void check_alloc_desc(Context& context) {
  Tables t(context);
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = 100;
  check_read("alloc", desc, offsetof(pgr_alloc_desc, align_bytes),
             [&](const pgr_alloc_desc* given, pgr_error* error) {
               pgr_buffer* buffer = nullptr;
               const pgr_status status = t.memory.alloc(t.handle, given, &buffer, error);
               if (status == PGR_STATUS_OK) t.memory.free(t.handle, buffer);
               return status;
             });
}

void check_launch_desc(Context& context) {
  Tables t(context);
  const auto kernel = t.device.compile(spread_kernel(4));
  const auto in = random_ints(4, context.seed());
  Buffer source = make_ints(t.device, in), out = t.device.allocate(16);
  Launch launch(*kernel, {out.handle(), source.handle()}, {3}, {4, 1, 1});
  check_read("launch", launch.desc, offsetof(pgr_launch_desc, timing) + 4,
             [&](const pgr_launch_desc* given, pgr_error* error) {
               return t.runner.launch(t.handle, nullptr, kernel->handle(), given, nullptr, error);
             });
  expect_ints("out", read_ints(out), spread_result(in, 3));
}

void check_render_desc(Context& context) {
  Tables t(context);
  const pgr_renderer_api* renderer = context.plugin().renderer_api();
  if (!renderer) throw Unsupported("the plugin has no renderer");
  const auto block = spread_kernel(4);
  pgr_render_desc desc;
  PGR_INIT(desc, RENDER_DESC);
  desc.ir = block.data();
  desc.ir_bytes = block.size();
  check_read("render", desc, offsetof(pgr_render_desc, options),
             [&](const pgr_render_desc* given, pgr_error* error) {
               Blob source;
               return renderer->render(t.handle, given, source.get(), error);
             });
}

void check_compile_desc(Context& context) {
  Tables t(context);
  const pgr_compiler_api* compiler = context.plugin().compiler_api();
  if (!compiler) throw Unsupported("the plugin has no compiler");
  const auto block = spread_kernel(4);
  const auto kernel = t.device.compile(block);
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  const bool takes_source = context.plugin().renderer_api() != nullptr;
  desc.input = takes_source ? static_cast<const void*>(kernel->source().data()) : block.data();
  desc.input_bytes = takes_source ? kernel->source().size() : block.size();
  check_read("compile", desc, sizeof desc - 8,
             [&](const pgr_compile_desc* given, pgr_error* error) {
               Blob binary, log;
               return compiler->compile(t.handle, given, binary.get(), log.get(), error);
             });
}

void check_error_struct(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  for (size_t size = kHeader; size <= sizeof(pgr_error) + 32; size += 8)
    for (uint64_t capacity : {0, 1, 5, 200}) {
      GuardedBytes bytes(size), text(capacity);
      std::memset(bytes.data(), kUntouched, size);
      pgr_struct_header header{static_cast<uint32_t>(size), PGR_STRUCT_ERROR, nullptr};
      std::memcpy(bytes.data(), &header, sizeof header);
      auto* error = bytes.as<pgr_error>();
      if (size > offsetof(pgr_error, message)) error->message = text.data();
      if (size > offsetof(pgr_error, message_capacity)) error->message_capacity = capacity;
      pgr_device* device = nullptr;
      const pgr_status status =
          api.device_open(api.plugin, UINT32_MAX, nullptr, 0, sizeof(pgr_option), &device, error);
      const std::string where = "a failing call with an error struct of " + std::to_string(size) +
                                " bytes and room for " + std::to_string(capacity);
      expect(status == PGR_STATUS_NOT_FOUND, where + " answered " + status_name(status));
      expect(std::memcmp(bytes.data(), &header, sizeof header) == 0, where + " changed its header");
      if (size > offsetof(pgr_error, message_size))
        expect(error->message_size <= capacity, where + " gave a longer message");
      for (size_t i = sizeof(pgr_error); i < size; ++i)
        expect(bytes.data()[i] == kUntouched, where + " wrote into unknown fields");
    }
}

// A newer host's blob is longer.
void check_blob(Context& context) {
  Tables t(context);
  const pgr_compiler_api* compiler = context.plugin().compiler_api();
  if (!compiler) throw Unsupported("the plugin has no compiler");
  constexpr size_t kSize = sizeof(pgr_blob) + 24;
  GuardedBytes bytes(kSize);
  std::memset(bytes.data(), kUntouched, kSize);
  pgr_blob own;
  PGR_INIT(own, BLOB);
  own.struct_size = kSize;
  std::memcpy(bytes.data(), &own, sizeof own);
  auto* blob = bytes.as<pgr_blob>();
  expect_ok("compiler.cache_identity",
            [&](pgr_error* error) { return compiler->cache_identity(t.handle, blob, error); });
  expect(blob->struct_size == kSize && blob->struct_id == PGR_STRUCT_BLOB,
         "cache_identity changed the blob's header");
  for (size_t i = sizeof own; i < kSize && !context.plugin().is_newer(); ++i)
    expect(bytes.data()[i] == kUntouched, "cache_identity wrote into unknown fields of the blob");
  if (!blob->release) return;
  blob->release(blob);
  if (blob->release) blob->release(blob);  // harmless after release
}

}  // namespace

void add_clamp_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L0, "l0.clamp." + id, std::move(run));
  };
  for (const char* which :
       {"plugin_info", "device_info", "device_caps", "memory_stats", "kernel_limits", "counter"}) {
    add(std::string(which) + ".sizes", [which](Context& context) { check_sizes(context, which); });
    add(std::string(which) + ".chain", [which](Context& context) { check_chains(context, which); });
  }
  add("error.sizes", check_error_struct);
  add("blob", check_blob);
  add("alloc_desc", check_alloc_desc);
  add("launch_desc", check_launch_desc);
  add("render_desc", check_render_desc);
  add("compile_desc", check_compile_desc);
}

}  // namespace plugrad::conformance
