// The only file that includes Boost.DLL.
#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/device/host_api.h"
#include "runtime/float_state.h"

namespace plugrad::runtime {
namespace {

// Extracts the reason from "… (dlerror system message: libx.so: cannot open …)".
std::string dlerror_of(const std::string& what) {
  constexpr std::string_view kMark = "dlerror system message: ";
  std::size_t at = what.find(kMark);
  if (at == what.npos) return what;
  std::string reason = what.substr(at + kMark.size());
  if (std::size_t end = reason.rfind(')'); end != reason.npos) reason.resize(end);
  return reason;
}

// Libraries are never unloaded: their threads, handlers and static objects may outlive known uses.
void keep_open(std::unique_ptr<boost::dll::shared_library> library) {
  static std::mutex mutex;
  static auto* open = new std::vector<std::unique_ptr<boost::dll::shared_library>>;
  std::lock_guard lock(mutex);
  open->push_back(std::move(library));
}

}  // namespace

void* open_library_symbol(const std::string& path, const char* symbol, std::string& reason) {
  namespace dll = boost::dll;
  auto library = std::make_unique<dll::shared_library>();
  const FloatStateScope float_state;  // constructors may change it, as those of gcc -Ofast do
  try {
    library->load(path, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& e) {
    reason = dlerror_of(e.what());
    return nullptr;
  }
  void* address = nullptr;
  if (library->has(symbol))
    address = reinterpret_cast<void*>(&library->get<char>(symbol));
  else
    reason = std::string("it exports no symbol ") + symbol;
  keep_open(std::move(library));
  return address;
}

}  // namespace plugrad::runtime
