// Field numbers are those of perfetto's protos/perfetto/trace/{trace,trace_packet}.proto and
// track_event/*.proto.
#include <map>
#include <tuple>

#include "trace/export.h"
#include "trace/lanes.h"
#include "trace/summary.h"

namespace plugrad::tools::trace {
namespace {

// One message of the protobuf wire format.
class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view bytes) {
    varint((field << 3) | 2);
    varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& message(uint32_t field, const Message& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

enum TracePacketField : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum SequenceFlag : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum TrackDescriptorField : uint32_t {
  kUuid = 1,
  kTrackName = 2,
  kProcess = 3,
  kParent = 5,
  kCounter = 8,
};
enum TrackEventField : uint32_t {
  kCategoryIids = 3,
  kAnnotations = 4,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kCounterValue = 30,
  kSourceLocationIid = 34,
};
enum TrackEventType : uint32_t { kSliceBegin = 1, kSliceEnd = 2, kCounterEvent = 4 };
enum InternedDataField : uint32_t {
  kCategories = 1,
  kNames = 2,
  kAnnotationNames = 3,
  kSourceLocations = 4,
};
constexpr uint32_t kUnitBytes = 3;  // CounterDescriptor.Unit

class Writer {
 public:
  explicit Writer(const Trace& trace)
      : trace_(trace), lanes_(make_lanes(trace)), names_(slice_key_count(trace)) {}

  std::string run() {
    add_tracks();
    add_interned();
    for (size_t i = 0; i < lanes_.size(); ++i) add_lane(lanes_[i], lane_uuid(i));
    add_memory();
    return std::move(out_);
  }

 private:
  // Uuids: the host's process, devices, two counters per device, lanes.
  static constexpr uint64_t kHost = 1;
  uint64_t device_uuid(size_t device) const { return kHost + 1 + device; }
  uint64_t counter_uuid(size_t device, size_t counter) const {
    return kHost + 1 + trace_.devices.size() + 2 * device + counter;
  }
  uint64_t lane_uuid(size_t lane) const { return kHost + 1 + 3 * trace_.devices.size() + lane; }

  // All packets are of one sequence, whose first one clears its state.
  void add_packet(Message packet) {
    packet.number(kSequenceId, 1);
    packet.number(kSequenceFlags, is_first_ ? kStateCleared : kNeedsState);
    is_first_ = false;
    out_ += Message().message(1, packet).bytes();
  }

  void add_track(Message descriptor) {
    add_packet(Message().message(kTrackDescriptor, descriptor));
  }

  void add_tracks() {
    const std::string& program = trace_.header.program;
    const Message process = Message()
                                .number(1, static_cast<uint64_t>(trace_.header.pid))
                                .text(6, program.empty() ? "host" : program);
    add_track(Message().number(kUuid, kHost).message(kProcess, process));
    constexpr const char* kCounterNames[] = {"memory in use", "memory kept for reuse"};
    for (size_t d = 0; d < trace_.devices.size(); ++d) {
      add_track(Message().number(kUuid, device_uuid(d)).text(kTrackName, trace_.devices[d].name));
      for (size_t c = 0; c < 2; ++c)
        add_track(Message()
                      .number(kUuid, counter_uuid(d, c))
                      .text(kTrackName, kCounterNames[c])
                      .number(kParent, device_uuid(d))
                      .message(kCounter, Message().number(3, kUnitBytes)));
    }
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const int32_t track = lanes_[i].track;
      const int32_t device =
          track == kNone ? kNone : trace_.tracks[static_cast<size_t>(track)].device;
      add_track(
          Message()
              .number(kUuid, lane_uuid(i))
              .text(kTrackName, lanes_[i].name)
              .number(kParent, device == kNone ? kHost : device_uuid(static_cast<size_t>(device))));
    }
  }

  // Numbers of what events refer to; 0: nothing.
  struct Name {
    uint64_t name = 0, category = 0, location = 0;
    std::string operations;
  };

  void add_interned() {
    Message interned;
    std::map<std::string, uint64_t> names, categories;
    std::map<std::tuple<std::string, std::string, int64_t>, uint64_t> locations;
    const auto number = [&](auto& known, const auto& key, auto describe) {
      const auto [place, is_new] = known.emplace(key, known.size() + 1);
      if (is_new) describe(place->second);
      return place->second;
    };
    for (const Lane& lane : lanes_)
      for (const Slice& slice : lane.slices) {
        Name& entry = names_[slice_key(trace_, slice)];
        if (entry.name != 0) continue;
        const auto named = [&](uint32_t field, const std::string& name) {
          return [&interned, field, &name](uint64_t iid) {
            interned.message(field, Message().number(1, iid).text(2, name));
          };
        };
        const std::string name = slice_name(trace_, slice),
                          category = slice_category(trace_, slice);
        entry.name = number(names, name, named(kNames, name));
        entry.category = number(categories, category, named(kCategories, category));
        if (slice.kind != SliceKind::Launch) continue;
        entry.operations = operations_text(trace_, trace_.launches.kernel[slice.index]);
        if (const Operation* at = first_located(trace_, trace_.launches.kernel[slice.index]))
          entry.location =
              number(locations, std::tuple(at->file, at->function, at->line), [&](uint64_t iid) {
                interned.message(kSourceLocations, Message()
                                                       .number(1, iid)
                                                       .text(2, at->file)
                                                       .text(3, at->function)
                                                       .number(4, static_cast<uint64_t>(at->line)));
              });
      }
    for (const auto& [iid, name] : {std::pair(kOperations, "operations"), {kBytes, "bytes"}})
      interned.message(kAnnotationNames, Message().number(1, iid).text(2, name));
    add_packet(Message().message(kInternedData, interned));
  }

  void add_event(int64_t time_ns, const Message& event) {
    const int64_t time = trace_.header.start_ns + time_ns;
    add_packet(Message()
                   .number(kTimestamp, static_cast<uint64_t>(std::max<int64_t>(time, 0)))
                   .message(kTrackEvent, event));
  }

  static void add_bytes(Message& event, int64_t bytes) {
    event.message(kAnnotations,
                  Message().number(1, kBytes).number(3, static_cast<uint64_t>(bytes)));
  }

  void add_lane(const Lane& lane, uint64_t uuid) {
    walk(
        lane,
        [&](const Slice& slice) {
          const Name& name = names_[slice_key(trace_, slice)];
          Message event;
          event.number(kType, kSliceBegin).number(kTrackUuid, uuid).number(kNameIid, name.name);
          event.number(kCategoryIids, name.category);
          if (name.location) event.number(kSourceLocationIid, name.location);
          if (!name.operations.empty())
            event.message(kAnnotations, Message().number(1, kOperations).text(6, name.operations));
          if (slice.kind == SliceKind::Copy) add_bytes(event, trace_.copies.bytes[slice.index]);
          if (slice.kind == SliceKind::Collective)
            add_bytes(event, trace_.collectives.bytes[slice.index]);
          add_event(slice.start, event);
        },
        [&](const Slice& slice) {
          add_event(slice.end, Message().number(kType, kSliceEnd).number(kTrackUuid, uuid));
        });
  }

  void add_memory() {
    const MemoryEvents& memory = trace_.memory;
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory.device[i] == kNone) continue;
      const auto device = static_cast<size_t>(memory.device[i]);
      for (const auto& [counter, bytes] :
           {std::pair(0, memory.used[i]), std::pair(1, memory.cached[i])})
        add_event(memory.start[i],
                  Message()
                      .number(kType, kCounterEvent)
                      .number(kTrackUuid, counter_uuid(device, static_cast<size_t>(counter)))
                      .number(kCounterValue, static_cast<uint64_t>(bytes)));
    }
  }

  static constexpr uint64_t kOperations = 1, kBytes = 2;  // annotation names

  const Trace& trace_;
  std::vector<Lane> lanes_;
  std::vector<Name> names_;
  std::string out_;
  bool is_first_ = true;
};

}  // namespace

std::string to_perfetto(const Trace& trace) {
  return Writer(trace).run();
}

}  // namespace plugrad::tools::trace
