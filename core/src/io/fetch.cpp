#include "io/fetch.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "base/file.h"

namespace plugrad::io {
namespace {

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
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // required in programs with threads
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, limits.connect_seconds);
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.size_bytes));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1024L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, limits.idle_seconds);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, store);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
}

// Fills `body`. Returns an empty text, or the reason of the failure.
std::string transfer(const std::string& url, const FetchLimits& limits, Body& body) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) return "libcurl cannot start";
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, detail);
  configure(curl.get(), url, limits, &body);
  CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_OK) return {};
  if (code == CURLE_WRITE_ERROR) return fmt::format("more than {} bytes came", limits.size_bytes);
  return *detail ? detail : curl_easy_strerror(code);
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
