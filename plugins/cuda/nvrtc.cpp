#include "nvrtc.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "plugrad/sdk/dynamic_library.h"

namespace plugrad::cuda {
namespace {

// A text returned by the library: queries its size, including the NUL, then its content.
template <typename Program, typename Size, typename Write>
std::string text_of(Program program, Size size_of, Write write) {
  size_t size = 0;
  if (size_of(program, &size) != 0 || size == 0) return {};
  std::string text(size, '\0');
  if (write(program, text.data()) != 0) return {};
  return text;
}

void drop_end(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
}

}  // namespace

const Nvrtc* Nvrtc::open(const std::string& path, std::string& reason) {
  struct Opened {
    std::unique_ptr<Nvrtc> table;
    std::string reason;
  };
  static std::mutex mutex;
  static std::map<std::string, Opened> by_path;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = by_path.try_emplace(path);
  Opened& opened = at->second;
  if (is_new) {
    const sdk::DynamicLibrary library =
        path.empty() ? sdk::DynamicLibrary(
                           {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"})
                     : sdk::DynamicLibrary({path.c_str()});
    auto table = std::make_unique<Nvrtc>();
    opened.reason = library.reason();
    bool is_whole = bool{library};
#define PLUGRAD_FIND(member, symbol, arguments)              \
  if (is_whole && !library.find(symbol, table->member)) {    \
    opened.reason = "libnvrtc is too old: it lacks " symbol; \
    is_whole = false;                                        \
  }
    PLUGRAD_NVRTC_FUNCTIONS(PLUGRAD_FIND)
#undef PLUGRAD_FIND
    if (is_whole) opened.table = std::move(table);
  }
  reason = opened.reason;
  return opened.table.get();
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  version_(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

int Nvrtc::target_for(unsigned compute_capability) const {
  int count = 0, best = 0;
  if (arch_count_(&count) != 0 || count <= 0) return 0;
  std::vector<int> archs(static_cast<size_t>(count));
  if (archs_(archs.data()) != 0) return 0;
  for (int arch : archs)
    if (arch <= static_cast<int>(compute_capability)) best = std::max(best, arch);
  return best;
}

bool Nvrtc::compile(const std::string& source, const std::string& name,
                    const std::vector<std::string>& options, bool is_ptx, std::string& code,
                    std::string& log) const {
  Program program = nullptr;
  const std::string file = name + ".cu";
  if (create_(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr) != 0) return false;
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const bool ok = compile_(program, static_cast<int>(pointers.size()), pointers.data()) == 0;
  log = text_of(program, log_size_, log_);
  drop_end(log);
  if (ok) code = is_ptx ? text_of(program, ptx_size_, ptx_) : text_of(program, cubin_size_, cubin_);
  if (is_ptx) drop_end(code);
  destroy_(&program);
  return ok && !code.empty();
}

}  // namespace plugrad::cuda
