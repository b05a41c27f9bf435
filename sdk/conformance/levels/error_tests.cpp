// L1 errors: each documented error, and the device still works afterwards.
#include "conformance/levels/error_families.h"
#include "conformance/levels/kernels.h"

namespace plugrad::conformance {
namespace {

// A valid launch; tests invalidate one field.
class GoodLaunch {
 public:
  explicit GoodLaunch(Context& context)
      : tables(context),
        kernel_(tables.device.compile(spread_kernel(4, 4, 4))),
        values_(random_ints(64, context.seed())),
        in_(make_ints(tables.device, values_)),
        out_(make_ints(tables.device, std::vector<int32_t>(64))),
        launch(*kernel_, {out_.handle(), in_.handle()}, {3}, {4, 4, 4}) {}

  // The invalid launch returns `wanted` and writes nothing; a valid launch then works.
  void expect_refused(const std::string& what, pgr_status wanted) {
    expect_status("a launch with " + what, wanted,
                  [&](pgr_error* error) { return launch.try_start(tables, error); });
    tables.device.synchronize();
    expect_ints("out of a refused launch", read_ints(out_), std::vector<int32_t>(64));
    Launch good(*kernel_, {out_.handle(), in_.handle()}, {3}, {4, 4, 4});
    good.start(tables);
    expect_ints("out of a launch behind a refused one", read_ints(out_), spread_result(values_, 3));
  }

  Tables tables;

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<int32_t> values_;
  Buffer in_, out_;

 public:
  Launch launch;
};

void check_null_kernel(Context& context) {
  GoodLaunch good(context);
  good.launch.kernel = nullptr;
  good.expect_refused("a NULL kernel", PGR_STATUS_INVALID_ARGUMENT);
}

void check_null_buffer(Context& context) {
  GoodLaunch good(context);
  good.launch.buffers[1] = nullptr;
  good.expect_refused("a NULL buffer", PGR_STATUS_INVALID_ARGUMENT);
}

void check_null_desc(Context& context) {
  GoodLaunch good(context);
  const Tables& t = good.tables;
  expect_status(
      "a launch without a description", PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
        return t.runner.launch(t.handle, nullptr, good.launch.kernel, nullptr, nullptr, error);
      });
}

void check_local_size(Context& context, size_t axis) {
  GoodLaunch good(context);
  const uint64_t over = uint64_t{good.tables.device.caps().max_local_size[axis]} + 1;
  if (over > UINT32_MAX) throw Unsupported("the device has no limit of its groups' size");
  good.launch.desc.local_size[axis] = static_cast<uint32_t>(over);
  good.expect_refused(
      "a local size of " + std::to_string(over) + " along axis " + std::to_string(axis),
      PGR_STATUS_LIMIT_EXCEEDED);
}

void check_group_count(Context& context, size_t axis) {
  GoodLaunch good(context);
  const uint64_t most = good.tables.device.caps().max_groups[axis];
  if (most == UINT64_MAX) throw Unsupported("the device has no limit of its groups' count");
  good.launch.desc.group_count[axis] = most + 1;
  good.expect_refused(std::to_string(most + 1) + " groups along axis " + std::to_string(axis),
                      PGR_STATUS_LIMIT_EXCEEDED);
}

// A failing call of each interface, by name.
struct Failure {
  const char* name;
  pgr_status status;
  std::function<pgr_status(pgr_error*)> call;
};

std::vector<Failure> failures_of(const Tables& t, const Buffer& buffer) {
  static std::byte host[32];
  static const char garbage[] = "this is no binary of anybody's compiler, and never was";
  pgr_buffer* handle = buffer.handle();
  return {{"plugin.device_open", PGR_STATUS_NOT_FOUND,
           [&t](pgr_error* error) {
             pgr_device* out = nullptr;
             return t.plugin.device_open(t.plugin.plugin, UINT32_MAX, nullptr, 0,
                                         sizeof(pgr_option), &out, error);
           }},
          {"plugin.query_interface", PGR_STATUS_UNSUPPORTED,
           [&t](pgr_error* error) {
             const pgr_string name = sdk::to_pgr("org.plugrad.nobody.has.this");
             const void* out = nullptr;
             return t.plugin.query_interface(t.plugin.plugin, &name, PGR_API_MINOR, &out, error);
           }},
          {"allocator.copy_in", PGR_STATUS_INVALID_ARGUMENT,
           [&t, handle](pgr_error* error) {
             return t.memory.copy_in(t.handle, nullptr, handle, 1, host, 16, error);
           }},
          {"runner.load", PGR_STATUS_BAD_BINARY, [&t](pgr_error* error) {
             pgr_program* out = nullptr;
             return t.runner.load(t.handle, garbage, sizeof garbage, &out, error);
           }}};
}

void check_null_error(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  for (const Failure& failure : failures_of(t, buffer)) {
    const pgr_status status = failure.call(nullptr);
    expect(status == failure.status, std::string(failure.name) + " with a NULL error answered " +
                                         status_name(status) + ", not " +
                                         status_name(failure.status));
  }
}

void check_messages(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  for (const Failure& failure : failures_of(t, buffer)) {
    CallError error;
    failure.call(error.get());
    expect(error.message().size() >= 8, std::string(failure.name) + " failed with the message \"" +
                                            error.message() + "\", which tells nobody why");
    for (unsigned char c : error.message())
      expect(c >= 0x20 || c == '\n' || c == '\t',
             std::string(failure.name) + ": a message with control characters");
  }
}

void check_code(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  for (const Failure& failure : failures_of(t, buffer))
    expect_status(failure.name, failure.status, failure.call);
}

void check_capacity(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  for (const Failure& failure : failures_of(t, buffer))
    for (uint64_t capacity : {0, 1, 2, 7, 64}) {
      std::vector<char> text(256, '\x5a');
      pgr_error error;
      PGR_INIT(error, ERROR);
      error.message = capacity ? text.data() : nullptr;
      error.message_capacity = capacity;
      failure.call(&error);
      const std::string where =
          std::string(failure.name) + " with room for " + std::to_string(capacity) + " bytes";
      for (size_t i = capacity; i < text.size(); ++i)
        expect(text[i] == '\x5a', where + " wrote behind the message buffer");
      expect(error.message_size <= capacity,
             where + " says its message has " + std::to_string(error.message_size) + " bytes");
      expect(error.message_size == capacity || capacity == 0 || text[error.message_size] == 0,
             where + " did not end its message with 0");
    }
}

}  // namespace

void add_error_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L1, "l1.error." + id, std::move(run));
  };
  add("launch.null_kernel", check_null_kernel);
  add("launch.null_buffer", check_null_buffer);
  add("launch.null_desc", check_null_desc);
  for (size_t axis : {0, 1, 2}) {
    add("launch.local_size." + std::to_string(axis),
        [axis](Context& context) { check_local_size(context, axis); });
    add("launch.group_count." + std::to_string(axis),
        [axis](Context& context) { check_group_count(context, axis); });
  }
  add("null_error", check_null_error);
  add("message", check_messages);
  add("message.capacity", check_capacity);
  add("code", check_code);
  add_launch_tests(tests);
  add_binary_tests(tests);
  add_caps_tests(tests);
}

}  // namespace plugrad::conformance
