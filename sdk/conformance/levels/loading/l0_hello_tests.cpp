// L0: the hello for every host minor version, each in a fresh process: the entry is called once per
// process.
#include <dlfcn.h>

#include "conformance/levels/expect.h"
#include "conformance/levels/loading/guarded_bytes.h"
#include "conformance/levels/loading/l0_families.h"
#include "conformance/plugin/host.h"

namespace plugrad::conformance {
namespace {

pgr_plugin_entry_fn entry_of(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failed(std::string("dlopen: ") + ::dlerror());
  void* symbol = ::dlsym(library, PGR_PLUGIN_ENTRY_NAME);
  expect(symbol != nullptr, "no symbol " PGR_PLUGIN_ENTRY_NAME);
  return reinterpret_cast<pgr_plugin_entry_fn>(symbol);
}

// A hello from a host of any minor version, possibly with longer structs than today's.
class Hello {
 public:
  Hello(const FreshTarget& target, uint32_t minor, size_t more_bytes = 0,
        const void* next = nullptr)
      : path_(target.plugin_path),
        table_(Host::of(path_).api(), sizeof(pgr_host_api) + more_bytes),
        hello_(sizeof(pgr_hello) + more_bytes) {
    pgr_host_api* table = table_.as<pgr_host_api>();
    table->struct_size = static_cast<uint32_t>(table_.size());
    table->api_minor = minor;
    pgr_hello own;
    PGR_INIT(own, HELLO);
    own.struct_size = static_cast<uint32_t>(hello_.size());
    own.next = next;
    own.host = table;
    own.plugin_path = sdk::to_pgr(path_);
    own.option_stride = sizeof(pgr_option);
    std::memset(hello_.data(), kTail, hello_.size());
    std::memcpy(hello_.data(), &own, sizeof own);
  }

  pgr_status say(CallError& error) {
    const pgr_status status = entry_of(path_)(hello(), &api, error.get());
    for (size_t i = sizeof(pgr_hello); i < hello_.size(); ++i)
      expect(hello_.data()[i] == kTail, "the entry wrote into a field of a newer hello");
    expect(hello()->struct_size == hello_.size(), "the entry changed the hello's struct_size");
    return status;
  }
  void expect_accepted(const std::string& what) {
    CallError error;
    const pgr_status status = say(error);
    if (status != PGR_STATUS_OK) fail_call("the entry, called with " + what + ",", status, error);
    check_answer();
    check_table();
  }
  void check_answer() {
    expect(hello()->canary_hello_offset == offsetof(pgr_hello, plugin_minor) &&
               hello()->canary_error_size >= sizeof(pgr_error),
           "the entry did not answer the hello with PGR_HELLO_ANSWER");
    expect(hello()->need_host_minor <= hello()->plugin_minor,
           "the plugin needs a host that is newer than the headers it was built with");
  }
  pgr_hello* hello() { return hello_.as<pgr_hello>(); }

  const pgr_plugin_api* api = nullptr;

 private:
  static constexpr char kTail = 0x5a;

  void check_table() {
    expect(api != nullptr, "the entry answered OK without a table");
    expect(api->struct_id == PGR_STRUCT_PLUGIN_API, "the plugin's table has a wrong struct_id");
    expect(api->struct_size >= offsetof(pgr_plugin_api, shutdown),
           "the plugin's table ends before its mandatory functions");
    expect(api->info && api->device_count && api->device_open && api->device_close &&
               api->query_interface,
           "a mandatory function of the plugin's table is NULL");
    uint32_t count = 0;
    expect_ok("plugin.device_count",
              [&](pgr_error* error) { return api->device_count(api->plugin, &count, error); });
  }

  std::string path_;
  GuardedBytes table_, hello_;
};

void hello_current(const FreshTarget& target) {
  Hello hello(target, PGR_API_MINOR);
  hello.expect_accepted("a hello of its own minor");
}

void hello_older(const FreshTarget& target) {
  const uint32_t minor = static_cast<uint32_t>(std::stoul(target.argument));
  Hello hello(target, minor);
  CallError error;
  const pgr_status status = hello.say(error);
  hello.check_answer();
  if (status == PGR_STATUS_OK) {
    expect(hello.hello()->need_host_minor <= minor,
           "the plugin answers OK to a host of minor " + target.argument + ", and says it needs " +
               std::to_string(hello.hello()->need_host_minor));
    return;
  }
  expect(status == PGR_STATUS_NEED_NEWER_HOST,
         "the entry answered a host of minor " + target.argument + " with " + status_name(status));
  expect(hello.hello()->need_host_minor > minor,
         "the plugin needs a newer host than minor " + target.argument +
             ", but says that this one is new enough (need_host_minor)");
  expect(!error.message().empty(), "NEED_NEWER_HOST comes without a message that says which");
}

void hello_newer(const FreshTarget& target) {
  const uint32_t more = static_cast<uint32_t>(std::stoul(target.argument));
  Hello hello(target, PGR_API_MINOR + more, 8 * size_t{std::min(more, 64u)});
  hello.expect_accepted("a hello of a newer host");
  expect(hello.hello()->plugin_minor <= PGR_API_MINOR + more, "the plugin claims a newer minor");
}

void hello_must_understand(const FreshTarget& target) {
  pgr_struct_header extension{sizeof extension, PGR_STRUCT_MUST_UNDERSTAND | 0x3fffu, nullptr};
  Hello hello(target, PGR_API_MINOR, 0, &extension);
  CallError error;
  const pgr_status status = hello.say(error);
  expect(status == PGR_STATUS_INCOMPATIBLE,
         "a hello with an unknown extension that must be understood was answered with " +
             status_name(status));
}

void hello_unknown_extension(const FreshTarget& target) {
  pgr_struct_header second{sizeof second, 0x3ffeu, nullptr};
  pgr_struct_header first{sizeof first, 0x3fffu, &second};
  Hello hello(target, PGR_API_MINOR, 0, &first);
  hello.expect_accepted("an unknown extension that may be skipped");
}

void hello_null_error(const FreshTarget& target) {
  Hello hello(target, 0);
  const pgr_status status = entry_of(target.plugin_path)(hello.hello(), &hello.api, nullptr);
  expect(status == PGR_STATUS_OK || status == PGR_STATUS_NEED_NEWER_HOST,
         "the entry answered a host of minor 0 with " + status_name(status));
}

constexpr FreshCheck kHelloChecks[] = {{"hello.current", hello_current},
                                       {"hello.older", hello_older},
                                       {"hello.newer", hello_newer},
                                       {"hello.must_understand", hello_must_understand},
                                       {"hello.unknown_extension", hello_unknown_extension},
                                       {"hello.null_error", hello_null_error}};

}  // namespace

std::span<const FreshCheck> hello_checks() {
  return kHelloChecks;
}

void add_hello_tests(Tests& tests) {
  auto add = [&](const std::string& id, const char* check, const std::string& argument = "") {
    add_test(tests, Level::L0, "l0.hello." + id,
             [check, argument](Context& context) { run_fresh(context, check, argument); });
  };
  add("current", "hello.current");
  for (uint32_t minor = PGR_API_MINOR; minor-- > 0;)
    add("older_minor." + std::to_string(minor), "hello.older", std::to_string(minor));
  add("newer_minor.next", "hello.newer", "1");
  add("newer_minor.far", "hello.newer", "1000");
  add("must_understand", "hello.must_understand");
  add("unknown_extension", "hello.unknown_extension");
  add("null_error", "hello.null_error");
}

}  // namespace plugrad::conformance
