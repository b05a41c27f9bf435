// libcurl is opened at the first download: it brings some thirty libraries, which would take most of
// the start of every process.
#include "io/fetch.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "base/file.h"

namespace plugrad::io {
namespace {

constexpr const char* kLibcurl = "libcurl.so.4";

struct Libcurl {
  decltype(::curl_easy_init)* easy_init = nullptr;
  decltype(::curl_easy_setopt)* easy_setopt = nullptr;
  decltype(::curl_easy_perform)* easy_perform = nullptr;
  decltype(::curl_easy_strerror)* easy_strerror = nullptr;
  decltype(::curl_easy_cleanup)* easy_cleanup = nullptr;
  std::string failure;  // reason why it cannot be used

  Libcurl() {
    void* library = dlopen(kLibcurl, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      failure = dlerror();
      return;
    }
    const auto find = [&]<class Function>(const char* name, Function*& function) {
      function = reinterpret_cast<Function*>(dlsym(library, name));
      if (!function) failure = fmt::format("{} exports no symbol {}", kLibcurl, name);
    };
    decltype(::curl_global_init)* global_init = nullptr;
    find("curl_global_init", global_init);
    find("curl_easy_init", easy_init);
    find("curl_easy_setopt", easy_setopt);
    find("curl_easy_perform", easy_perform);
    find("curl_easy_strerror", easy_strerror);
    find("curl_easy_cleanup", easy_cleanup);
    if (failure.empty() && global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      failure = "libcurl cannot start";
  }
};

const Libcurl& libcurl() {
  static const Libcurl opened;
  return opened;
}

struct Body {
  std::string bytes;
  size_t most_bytes;
};

// Checks the size here too: a server that announces none may send without end.
size_t store(char* bytes, size_t, size_t count, void* context) {
  auto& body = *static_cast<Body*>(context);
  if (count > body.most_bytes - body.bytes.size()) return CURL_WRITEFUNC_ERROR;
  body.bytes.append(bytes, count);
  return count;
}

void configure(CURL* curl, const std::string& url, const FetchLimits& limits, Body* body) {
  const auto set = [curl](CURLoption option, auto value) {
    libcurl().easy_setopt(curl, option, value);
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 5L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);  // required in programs with threads
  set(CURLOPT_CONNECTTIMEOUT, limits.connect_seconds);
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.size_bytes));
  set(CURLOPT_LOW_SPEED_LIMIT, 1024L);
  set(CURLOPT_LOW_SPEED_TIME, limits.idle_seconds);
  set(CURLOPT_WRITEFUNCTION, &store);
  set(CURLOPT_WRITEDATA, body);
}

// Fills `body`. Returns an empty text, or the reason of the failure.
std::string transfer(const std::string& url, const FetchLimits& limits, Body& body) {
  const Libcurl& library = libcurl();
  if (!library.failure.empty()) return library.failure;
  std::unique_ptr<CURL, void (*)(CURL*)> curl(library.easy_init(), library.easy_cleanup);
  if (!curl) return "libcurl cannot start";
  char detail[CURL_ERROR_SIZE] = "";
  library.easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, detail);
  configure(curl.get(), url, limits, &body);
  CURLcode code = library.easy_perform(curl.get());
  if (code == CURLE_OK) return {};
  if (code == CURLE_WRITE_ERROR) return fmt::format("more than {} bytes came", limits.size_bytes);
  return *detail ? detail : library.easy_strerror(code);
}

}  // namespace

std::string fetch(const std::string& url, const std::filesystem::path& path,
                  const FetchLimits& limits) {
  Body body{.bytes = {}, .most_bytes = static_cast<size_t>(limits.size_bytes)};
  if (std::string failure = transfer(url, limits, body); !failure.empty()) return failure;
  std::error_code no_folder;
  std::filesystem::create_directories(path.parent_path(), no_folder);
  std::span<const std::byte> parts[] = {std::as_bytes(std::span(body.bytes))};
  int error = no_folder ? no_folder.value() : replace_file(path.string(), parts);
  return error ? fmt::format("cannot write {}: {}", path.string(), file_error_text(error)) : "";
}

}  // namespace plugrad::io
