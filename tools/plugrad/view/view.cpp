// plugrad view: shows traces in a browser, as one page that is written or served, or converts a
// trace for other viewers.
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "base/check.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "command.h"
#include "trace/export.h"
#include "trace/page.h"
#include "trace/trace.h"
#include "view/server.h"

namespace plugrad::tools {
namespace {

void write(const std::string& path, const std::string& text) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  if (const int error = replace_file(path, parts))
    fail(ErrorKind::User, "[view] {} cannot be written: {}", path, file_error_text(error));
  fmt::print("wrote {}\n", path);
}

void warn(const std::string& warning) {
  if (!warning.empty()) log_warning("{}", warning);
}

std::string empty_page() {
  const std::string path = program_beside("../share/plugrad/viewer.html");
  const auto bytes = read_file(path);
  require(bytes.has_value(),
          "[view] the viewer's page {} cannot be read ({}): a build without Node.js has none. "
          "Install Node.js 20 or later and npm, configure and build again; `plugrad profile TRACE` "
          "and `plugrad view TRACE --export` need no page",
          path, file_error_text(errno));
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

std::string page_of(const Arguments& paths) {
  const std::string empty = empty_page();
  std::vector<trace::PageTrace> traces;
  for (const std::string& path : paths) {
    traces.push_back(trace::read_page_trace(path));
    warn(traces.back().warning);
  }
  return trace::fill_page(empty, traces);
}

int export_to(const std::string& format, const std::string& from, const std::string& to) {
  const trace::Trace trace = trace::read_trace(from);
  warn(trace.warning);
  write(to, format == "chrome"     ? trace::to_chrome(trace)
            : format == "perfetto" ? trace::to_perfetto(trace)
                                   : trace::to_speedscope(trace));
  return kSuccess;
}

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"})
    if (!environment_variable(name).value_or("").empty()) return true;
  return false;
}

// The shell leaves xdg-open, which may become the browser itself, in the background.
bool open_browser(const std::string& address) {
  constexpr char kScript[] =
      "command -v xdg-open || exit 1\n"
      "xdg-open \"$0\" &";
  try {
    ChildProcess shell({.program = "sh",
                        .arguments = {"-c", kScript, address},
                        .descriptors = {{-1, 0}, {-1, 1}, {-1, 2}}});
    return shell.wait() == 0;
  } catch (const std::system_error&) {
    return false;
  }
}

// "ssh -L 4000:127.0.0.1:4000 user@10.0.0.2"; empty outside of SSH.
std::string forwarding_command(const std::string& address) {
  std::istringstream connection(environment_variable("SSH_CONNECTION").value_or(""));
  std::string client, client_port, server, server_port;
  if (!(connection >> client >> client_port >> server >> server_port)) return "";
  const size_t begin = address.rfind(':') + 1;
  const std::string port = address.substr(begin, address.find('/', begin) - begin);
  const std::string user = environment_variable("USER").value_or("");
  return fmt::format("ssh -N -L {0}:127.0.0.1:{0} {1}{2}{3}{4}", port,
                     server_port == "22" ? "" : fmt::format("-p {} ", server_port), user,
                     user.empty() ? "" : "@", server);
}

void announce(const std::string& address, bool opens) {
  fmt::print("{}\n", address);
  const std::string forwarding = forwarding_command(address);
  if (opens && has_display()) {
    if (!open_browser(address)) fmt::print("xdg-open is missing: open the address in a browser\n");
  } else if (!forwarding.empty()) {
    fmt::print("run this where the browser is, then open the address there:\n  {}\n", forwarding);
  } else {
    fmt::print("open the address in a browser on this machine\n");
  }
  fmt::print("Ctrl-C ends\n");
  std::fflush(stdout);
}

void check_usage(const Parsed& parsed, const Arguments& paths, const Syntax& syntax) {
  const bool exports = parsed.has("export"), writes = parsed.has("output");
  std::string wrong;
  if (paths.empty() || paths.size() > 2)
    wrong = "name one trace, or two to compare";
  else if (exports && paths.size() > 1)
    wrong = "--export takes one trace";
  else if (exports && !writes)
    wrong = "--export needs -o FILE";
  else if (writes && parsed.has("port"))
    wrong = "-o and --port do not go together: a page that is written is not served";
  if (!wrong.empty()) throw UsageError(fmt::format("{}\nusage: {}", wrong, syntax.usage));
  if (exports)
    require_choice("format", parsed.get<std::string>("export"), syntax.choices.at("export"),
                   syntax.usage);
}

}  // namespace

int run_view(const Arguments& arguments) {
  const Syntax syntax = view_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto paths = parsed.get<Arguments>("trace");
  check_usage(parsed, paths, syntax);
  if (parsed.has("output")) {
    const auto to = parsed.get<std::string>("output");
    if (const int error = check_replaceable(to))
      fail(ErrorKind::User, "[view] {} cannot be written: {}", to, file_error_text(error));
    if (parsed.has("export")) return export_to(parsed.get<std::string>("export"), paths[0], to);
    write(to, page_of(paths));
    return kSuccess;
  }
  const bool opens = !parsed.has("no-open");
  serve_page(page_of(paths), parsed.has("port") ? parsed.get<uint16_t>("port") : uint16_t{0},
             [opens](const std::string& address) { announce(address, opens); });
  return kSuccess;
}

}  // namespace plugrad::tools
