#include "runtime/device/kernel.h"

#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "base/trace/trace.h"
#include "runtime/device/named_renderer.h"
#include "runtime/device/plugin.h"

namespace plugrad::runtime {
namespace {

std::vector<std::byte> bytes_of(const Blob& blob) {
  auto* from = static_cast<const std::byte*>(blob.data());
  return {from, from + blob.size()};
}

std::string numbered(const std::string& source) {
  std::string out;
  int line = 1;
  for (std::size_t begin = 0; begin < source.size(); ++line) {
    std::size_t end = std::min(source.find('\n', begin), source.size());
    out += fmt::format("{:5} | {}\n", line, std::string_view(source).substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// Saves the block in the cache directory. Returns the path; empty if it is no block or cannot be
// written.
std::string keep_refused(std::span<const std::byte> ir, const std::string& name) {
  pgr_ir_header header;
  const std::string& cache = disk_cache().directory();
  if (cache.empty() || ir.size() < sizeof header) return "";
  std::memcpy(&header, ir.data(), sizeof header);
  if (header.magic != PGR_IR_MAGIC) return "";
  std::error_code failed;
  std::filesystem::create_directories(cache + "/refused", failed);
  const std::string path = fmt::format("{}/refused/{}-{:016x}.ir", cache, name, hash128(ir).low);
  const std::span<const std::byte> parts[] = {ir};
  return replace_file(path, parts, {.follow_links = false, .sync = false}) == 0 ? path : "";
}

// A kernel being made.
class Maker {
 public:
  Maker(Device& device, std::span<const std::byte> ir, std::string_view name,
        const CompileOptions& options)
      : device_(device), d_(device.state()), ir_(ir), options_(options) {
    kernel_.device = &device;
    kernel_.name = name;
    kernel_.source = options.source;
  }

  std::shared_ptr<Kernel> make_of(std::string_view source) {
    kernel_.source = source;
    return make();
  }

  std::shared_ptr<Kernel> make() {
    const KernelIrScope scope(ir_);
    std::uint64_t start = monotonic_ns();
    if (kernel_.source.empty()) kernel_.source = render(d_, ir_);
    DiskCache& disk = disk_cache();
    std::string key = cache_key();
    if (!take_from(disk, key)) {
      compile();
      load_fresh();
      if (d_.has_compiler) disk.put(as_bytes(key), kernel_.binary);
    }
    kernel_.compile_ns = monotonic_ns() - start;
    d_.kernels.compile_ns.fetch_add(kernel_.compile_ns);
    if (tracing())
      trace::span(trace::Category::Compile, kernel_.name, start, kernel_.from_disk ? 1 : 0);
    auto made = std::make_shared<Kernel>(std::make_unique<Kernel::State>(std::move(kernel_)));
    kernel_.program = nullptr;  // the kernel unloads it
    return made;
  }

  ~Maker() {
    if (kernel_.program)
      d_.calls.quietly("unload", [&] { d_.runner.unload(d_.handle, kernel_.program); });
  }

 private:
  // The compiler's input.
  std::span<const std::byte> input() const {
    return d_.has_renderer ? as_bytes(kernel_.source) : ir_;
  }

  // Everything on which the binary depends.
  std::string cache_key() {
    std::string key =
        fmt::format("kernel/{}/{}/{}/contract {}/optimize {}/{}", d_.plugin_name, d_.info.arch,
                    compiler_identity(d_), options_.contract, options_.optimize, kernel_.name);
    key += '\0';
    key.append(reinterpret_cast<const char*>(input().data()), input().size());
    return key;
  }

  // Loads a cached binary if it is valid; removes it from the cache otherwise.
  bool take_from(DiskCache& disk, const std::string& key) {
    if (!d_.has_compiler) return false;
    auto found = disk.get(as_bytes(key));
    if (!found) return false;
    kernel_.binary = std::move(*found);
    std::string reason;
    if (validated() && load(reason)) {
      kernel_.from_disk = true;
      d_.kernels.from_disk.fetch_add(1);
      return true;
    }
    if (load_status_ == PGR_STATUS_DEVICE_LOST)
      d_.calls.fail("load", kernel_.name, load_status_, reason);
    d_.kernels.rejected.fetch_add(1);
    disk.remove(as_bytes(key));
    log_line(LogLevel::Info,
             fmt::format("{}: cached binary of {} is not usable, compiling anew{}{}", d_.name,
                         kernel_.name, reason.empty() ? "" : ": ", reason));
    return false;
  }

  bool validated() const {
    if (!offered(d_.compiler.validate)) return true;
    std::uint32_t verdict = PGR_BINARY_RECOMPILE;
    CallError error;
    std::string escaped;
    const WatchedCall watched(d_.calls, "validate", kernel_.name);
    pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
      return d_.compiler.validate(d_.handle, kernel_.binary.data(), kernel_.binary.size(), &verdict,
                                  e);
    });
    return status == PGR_STATUS_OK && verdict == PGR_BINARY_GOOD;
  }

  void compile() {
    d_.kernels.compiled.fetch_add(1);
    if (!d_.has_compiler) {  // the runner takes the source or IR as it is
      kernel_.binary.assign(input().begin(), input().end());
      return;
    }
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = input().data();
    desc.input_bytes = input().size();
    desc.name = c_string(kernel_.name);
    desc.option_stride = sizeof(pgr_option);
    desc.contract = options_.contract ? PGR_CONTRACT_ALLOWED : PGR_CONTRACT_OFF;
    desc.optimize = options_.optimize;
    Blob binary, log;
    CallError error;
    std::string escaped;
    const WatchedCall watched(d_.calls, "compile", kernel_.name);
    pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
      return d_.compiler.compile(d_.handle, &desc, binary.get(), log.get(), e);
    });
    std::string said = escaped.empty() ? error.message() : escaped;
    log.check(d_.name, "compile");
    if (status == PGR_STATUS_COMPILE_FAILED) throw_compile_error(said, beginning_of(log.text()));
    if (status != PGR_STATUS_OK) d_.calls.fail("compile", kernel_.name, status, said);
    binary.check(d_.name, "compile");
    kernel_.binary = bytes_of(binary);
  }

  [[noreturn]] void throw_compile_error(const std::string& said, const std::string& log) const {
    std::string source =
        kernel_.source.empty() ? "(kernel IR, no source text)\n" : numbered(kernel_.source);
    if (const std::string path = keep_refused(ir_, kernel_.name); !path.empty())
      source += fmt::format("its kernel IR is in {} (plugrad explain prints it)\n", path);
    throw CompileError(fmt::format("[compile] {}: the compiler refused kernel {}{}{}\n{}{}{}",
                                   d_.name, kernel_.name, said.empty() ? "" : ": ", said, log,
                                   log.empty() || log.ends_with('\n') ? "" : "\n", source),
                       kernel_.source, log);
  }

  // Loads kernel_.binary and looks the kernel up; false with a reason.
  bool load(std::string& reason) {
    CallError error;
    std::string escaped;
    const WatchedCall watched(d_.calls, "load", kernel_.name);
    pgr_program* program = nullptr;
    pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
      return d_.runner.load(d_.handle, kernel_.binary.data(), kernel_.binary.size(), &program, e);
    });
    if (status == PGR_STATUS_OK) {
      pgr_string name = c_string(kernel_.name);
      status = guarded(error, escaped, [&](pgr_error* e) {
        return d_.runner.kernel(d_.handle, program, &name, &kernel_.handle, e);
      });
    }
    if (status == PGR_STATUS_OK) {
      kernel_.program = program;
      return true;
    }
    d_.calls.quietly("unload", [&] { d_.runner.unload(d_.handle, program); });
    load_status_ = status;
    reason = escaped.empty() ? error.message() : escaped;
    return false;
  }

  void load_fresh() {
    std::string reason;
    if (!load(reason)) d_.calls.fail("load", kernel_.name, load_status_, reason);
  }

  Device& device_;
  DeviceState& d_;
  std::span<const std::byte> ir_;
  CompileOptions options_;
  Kernel::State kernel_;
  pgr_status load_status_ = PGR_STATUS_OK;
};

}  // namespace

std::string render(DeviceState& device, std::span<const std::byte> kernel_ir) {
  if (!device.has_renderer) return "";
  pgr_render_desc desc;
  PGR_INIT(desc, RENDER_DESC);
  desc.ir = kernel_ir.data();
  desc.ir_bytes = kernel_ir.size();
  desc.option_stride = sizeof(pgr_option);
  std::vector<pgr_option> options;
  if (device.renders_by_component) options = renderer_options(device.plugin->manifest());
  desc.options = options.data();
  desc.option_count = static_cast<std::uint32_t>(options.size());
  Blob source;
  device.calls.check("render", [&](pgr_error* e) {
    return device.renderer.render(device.renderer_handle, &desc, source.get(), e);
  });
  source.check(device.name, "render");
  return std::string(source.text());
}

std::string compiler_identity(DeviceState& device) {
  if (!device.has_compiler) return "";
  Blob identity;
  device.calls.check("cache_identity", [&](pgr_error* e) {
    return device.compiler.cache_identity(device.handle, identity.get(), e);
  });
  identity.check(device.name, "cache_identity");
  return std::string(identity.text());
}

std::shared_ptr<Kernel> make_kernel(Device& device, std::span<const std::byte> kernel_ir,
                                    std::string_view name, const CompileOptions& options) {
  return Maker(device, kernel_ir, name, options).make();
}

std::shared_ptr<Kernel> make_kernel_of_source(Device& device, std::string_view source,
                                              std::string_view name,
                                              const CompileOptions& options) {
  return Maker(device, {}, name, options).make_of(source);
}

Kernel::Kernel(std::unique_ptr<State> state) : handle_(state->handle), state_(std::move(state)) {
  state_->device->state().loaded.add(*this);
}

pgr_program* Kernel::program() const {
  return state_->program;
}

Kernel::~Kernel() {
  DeviceState& d = state_->device->state();
  d.loaded.remove(*this);
  if (d.calls.is_reachable())
    d.calls.quietly("unload", [&] { d.runner.unload(d.handle, state_->program); });
}

const std::string& Kernel::name() const {
  return state_->name;
}
Device& Kernel::device() const {
  return *state_->device;
}
const std::string& Kernel::source() const {
  return state_->source;
}
std::span<const std::byte> Kernel::binary() const {
  return state_->binary;
}
bool Kernel::from_disk_cache() const {
  return state_->from_disk;
}
std::uint64_t Kernel::compile_ns() const {
  return state_->compile_ns;
}

std::string Kernel::disassemble() const {
  DeviceState& d = state_->device->state();
  if (!d.has_compiler || !offered(d.compiler.disassemble)) return "";
  Blob text;
  d.calls.check("disassemble", [&](pgr_error* e) {
    return d.compiler.disassemble(d.handle, state_->binary.data(), state_->binary.size(),
                                  text.get(), e);
  });
  text.check(d.name, "disassemble");
  return std::string(text.text());
}

}  // namespace plugrad::runtime
