// Every reader of foreign text and bytes, given excessive sizes: each size is refused with one
// precise error before memory is allocated, or is a number that the format allows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/hash.h"
#include "base/settings.h"
#include "base/storage/disk_cache.h"
#include "codegen/codegen.h"
#include "conformance/plugin/manifest.h"
#include "cost/calibration_text.h"
#include "engine/kernels/program_cache.h"
#include "errors/hostile/largest_request.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/zip.h"
#include "ir/text/parser.h"
#include "ir/verifier.h"
#include "nn/data/cifar.h"
#include "nn/data/idx.h"
#include "plugrad/error.h"
#include "plugrad/numpy.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/ir_view.h"
#include "runtime/device/kernel_facts.h"
#include "runtime/discovery/manifest.h"
#include "tuning/schedule_database.h"
#include "unit/base/temporary_directory.h"

namespace plugrad {
namespace {

constexpr std::size_t kMostOfSizes = 8 << 20;

// Beyond 31, 49, 62, 63 and 64 bits, and below 0.
const std::vector<std::string> kSizes = {"-1",
                                         "-9223372036854775808",
                                         "2147483648",
                                         "1125899906842624",
                                         "1125899906842625",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "99999999999999999999999"};

struct SizeReader {
  const char* name;
  std::function<std::string(const std::string& size)> refusal;  // empty: it was read
  std::vector<std::string> legal = {};  // sizes that the form allows; "*": every one
};

template <class Read>
std::string size_refusal(Read read) {
  try {
    read();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::User) << error.what();
    return error.what();
  } catch (const sdk::StatusError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    ADD_FAILURE() << "bad_alloc";
    return "";
  } catch (const std::length_error&) {
    ADD_FAILURE() << "length_error";
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// The low 64 bits of a size.
uint64_t number_in(const std::string& size) {
  uint64_t value = UINT64_MAX;
  if (size.starts_with('-')) return static_cast<uint64_t>(std::strtoll(size.c_str(), nullptr, 10));
  std::from_chars(size.data(), size.data() + size.size(), value);
  return value;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string refusal_of_file(const std::string& content,
                            const std::function<void(const std::string&)>& read) {
  const TemporaryDirectory directory;
  const std::string path = directory / "hostile";
  std::ofstream(path, std::ios::binary) << content;
  const std::string refusal = size_refusal([&] { read(path); });
  EXPECT_TRUE(refusal.empty() || refusal.find(path) != refusal.npos) << refusal;
  return refusal;
}

std::string npy(const std::string& shape) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + ",), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + raw(static_cast<uint16_t>(text.size())) + text;
}

std::function<std::string(const std::string&)> npy_of(const std::string& before,
                                                      const std::string& after = "") {
  return [=](const std::string& size) {
    return refusal_of_file(npy(before + size + after), [](const auto& path) { load_npy(path); });
  };
}

std::vector<std::byte> as_vector(const std::string& text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

// An archive of one deflated array, which announces other sizes in 64 bits.
std::string refusal_of_zip(uint64_t size_bytes, uint64_t packed_bytes, uint64_t offset) {
  io::ZipWriter writer;
  writer.add("a.npy", as_vector(npy("0")), true);
  const auto bytes = writer.finish();
  std::string archive(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t central = archive.find("PK\x01\x02");
  const uint32_t wide = UINT32_MAX;
  for (const std::size_t at : {20u, 24u, 42u}) std::memcpy(&archive[central + at], &wide, 4);
  const std::string extra =
      raw(uint16_t{1}) + raw(uint16_t{24}) + raw(size_bytes) + raw(packed_bytes) + raw(offset);
  const auto extra_bytes = static_cast<uint16_t>(extra.size());
  std::memcpy(&archive[central + 30], &extra_bytes, 2);
  archive.insert(central + 46 + 5, extra);
  return refusal_of_file(archive, [](const auto& path) { load_npz(path); });
}

// Stored bytes are as many as are announced.
std::string refusal_of_stored(uint64_t size_bytes) {
  io::ZipWriter writer;
  writer.add("a.npy", as_vector(npy("0")), false);
  const auto bytes = writer.finish();
  std::string archive(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto size = static_cast<uint32_t>(size_bytes);
  std::memcpy(&archive[archive.find("PK\x01\x02") + 24], &size, sizeof size);
  return refusal_of_file(archive, [](const auto& path) { load_npz(path); });
}

uint64_t packed_bytes() {
  io::ZipWriter writer;
  writer.add("a.npy", as_vector(npy("0")), true);
  const auto archive = writer.finish();
  return io::ZipReader(archive, "archive").entries()[0].packed_bytes;
}

std::string refusal_of_header(const std::string& header) {
  const std::string file = raw(uint64_t{header.size()}) + header;
  return refusal_of_file(file, [](const auto& path) { io::read_safetensors(path); });
}

std::function<std::string(const std::string&)> safetensors_of(const std::string& before,
                                                              const std::string& after) {
  return [=](const std::string& size) { return refusal_of_header(before + size + after); };
}

std::string refusal_of_program(const std::string& size) {
  const TemporaryDirectory directory;
  const SettingScope scope([&](Settings& s) { s.cache_dir = directory.path(); });
  disk_cache().put(bytes_of("program"), bytes_of(raw(number_in(size)) + std::string(4096, 'x')));
  return engine::find_program("program") ? "" : "a miss";
}

std::string refusal_of_record(const std::string& sizes, const std::string& width) {
  const std::string line = "plugrad-search-1\t1\tCPU\tclang\tkernel\tfamily\t" + sizes + "\t" +
                           width + "\t0.001\t0.002\tupcast(0, 4)\t1";
  const std::string sum = fmt::format("{:016x}", hash64(bytes_of(line)));
  return tuning::parse_record(line + "\t" + sum) ? "" : "a damaged line";
}

std::string refusal_of_figure(const std::string& name, const std::string& value) {
  std::string text = cost::to_text(cost::Machine(), "me");
  text.resize(text.rfind("checksum "));
  const std::size_t begin = text.find("\n" + name + " ") + 1, end = text.find('\n', begin);
  text.replace(begin, end - begin, name + " " + value);
  text += fmt::format("checksum {:016x}\n", hash64(bytes_of(text)));
  std::string problem;
  return cost::parse_calibration(text, "me", cost::Machine(), problem) ? "" : problem;
}

std::string refusal_of_ir(const std::string& text) {
  return size_refusal([&] {
    Graph graph;
    const auto roots = parse(graph, text);
    try {
      verify(graph, roots, Spec::Tensor);
    } catch (const Error& error) {  // of graphs of our own it is a bug
      throw std::runtime_error(error.what());
    }
  });
}

std::string refusal_of_setting(const std::string& row, const std::string& value) {
  return size_refusal([&] {
    read_settings(
        [&](const char* name) { return name == row ? std::optional(value) : std::nullopt; });
  });
}

// A field of a kernel's header, as the host and as the SDK read it.
std::string refusal_of_block(std::size_t at, std::size_t width, const std::string& size) {
  sdk::IrBuilder builder("kernel");
  builder.buffer(PGR_DTYPE_F32, 16);
  builder.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 16);
  std::vector<std::byte> block = builder.finish();
  const uint64_t hostile = number_in(size);
  std::memcpy(block.data() + at, &hostile, width);
  const bool has_facts = runtime::read_kernel_facts(block).has_value();
  const std::string refusal = size_refusal([&] { sdk::decode_ir(block); });
  return has_facts && refusal.empty() ? "" : refusal + " or no facts";
}

std::string refusal_of_manifest(const std::string& text) {
  runtime::Manifest manifest;
  return runtime::parse_manifest(text, manifest);
}

std::string with_number(const std::string& key, const std::string& value) {
  std::string abi = R"({"major": 1, "minor_low": 0, "minor_high": 0})";
  return R"({"name": "a", "device_name": "A", "abi": )" + abi + R"(, ")" + key + "\": " + value +
         "}";
}

std::string refusal_of_idx(const std::string& size) {
  const auto extent = static_cast<uint32_t>(std::min<uint64_t>(number_in(size), UINT32_MAX));
  std::string header("\x00\x00\x08\x01", 4);
  for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(extent >> shift);
  return refusal_of_file(header, [](const auto& path) { nn::read_idx(path, {{3}, ""}); });
}

std::string refusal_of_tar(const std::string& size) {
  std::string header(512, '\0');
  header.replace(0, 16, "data_batch_1.bin");
  const std::string digits = fmt::format("{:012o}", number_in(size));
  header.replace(124, 12, digits.substr(digits.size() - 12));
  header.replace(257, 5, "ustar");
  return refusal_of_file(header, [](const auto& path) { nn::read_cifar(path, {2}); });
}

std::function<std::string(const std::string&)> header_at(std::size_t at, std::size_t width) {
  return [=](const std::string& size) { return refusal_of_block(at, width, size); };
}

const SizeReader kReaders[] = {
    {"npy size", npy_of("")},
    {"npy product", npy_of("4611686018427387904, ", ", 4")},
    {"npy empty product", npy_of("0, 4611686018427387904, ", ", 4"), {"*"}},
    {"npz unpacked size",
     [](const auto& s) { return refusal_of_zip(number_in(s), packed_bytes(), 0); }},
    {"npz stored size", [](const auto& s) { return refusal_of_stored(number_in(s)); }},
    {"npz packed size", [](const auto& s) { return refusal_of_zip(128, number_in(s), 0); }},
    {"npz offset", [](const auto& s) { return refusal_of_zip(128, packed_bytes(), number_in(s)); }},
    {"safetensors header size",
     [](const auto& s) {
       return refusal_of_file(raw(number_in(s)) + "{}",
                              [](const auto& path) { io::read_safetensors(path); });
     }},
    {"safetensors shape",
     safetensors_of(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": [)", "]}}")},
    {"safetensors product",
     safetensors_of(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": [)",
                    ", 4611686018427387904]}}")},
    {"safetensors offsets",
     safetensors_of(R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, )", "]}}")},
    {"idx extent", refusal_of_idx},
    {"cifar file size", refusal_of_tar},
    {"cached program", refusal_of_program},
    {"search record's sizes",
     [](const auto& s) { return refusal_of_record("64," + s, "2"); },
     {"2147483648", "1125899906842624", "1125899906842625", "4611686018427387904",
      "9223372036854775807"}},
    {"search record's width",
     [](const auto& s) { return refusal_of_record("64", s); },
     {"2147483648"}},
    {"calibration", [](const auto& s) { return refusal_of_figure("latency", s); }},
    {"schedule step's amount",
     [](const auto& s) {
       return size_refusal([&] { codegen::parse_schedule("upcast(0, " + s + ")"); });
     },
     {"*"}},
    {"schedule step's axis",
     [](const auto& s) {
       return size_refusal([&] { codegen::parse_schedule("upcast(" + s + ", 4)"); });
     },
     {"2147483648"}},
    {"manifest's priority",
     [](const auto& s) { return refusal_of_manifest(with_number("priority", s)); }},
    {"suite's manifest",
     [](const auto& s) {
       return size_refusal([&] { conformance::parse_manifest(with_number("priority", s)); });
     },
     {"*"}},
    {"IR: buffer",
     [](const auto& s) { return refusal_of_ir("%0 = buffer f32 [0, 1, " + s + "]"); },
     {"2147483648", "1125899906842624", "1125899906842625"}},
    {"IR: buffer without a device",
     [](const auto& s) { return refusal_of_ir("%0 = buffer f32 [" + s + "]"); }},
    {"IR: product",
     [](const auto& s) {
       return refusal_of_ir("%0 = buffer f32 [0, 1, " + s + ", 4611686018427387904]");
     }},
    {"IR: node",
     [](const auto& s) { return refusal_of_ir("%" + s + " = iota i32 #4"); },
     {"2147483648"}},
    {"IR: iota",
     [](const auto& s) { return refusal_of_ir("%0 = iota i64 #" + s); },
     {"2147483648", "1125899906842624", "1125899906842625"}},
    {"IR: expand",
     [](const auto& s) {
       return refusal_of_ir("%0 = buffer f32 [0, 1, 1]\n%1 = expand f32 %0 [" + s + "]");
     },
     {"2147483648", "1125899906842624", "1125899906842625"}},
    {"IR: pad",
     [](const auto& s) {
       return refusal_of_ir("%0 = buffer f32 [0, 1, 4]\n%1 = pad f32 %0 [" + s + ", 1]");
     },
     {"2147483648", "1125899906842624", "1125899906842625"}},
    {"IR: shrink",
     [](const auto& s) {
       return refusal_of_ir("%0 = buffer f32 [0, 1, 4]\n%1 = shrink f32 %0 [" + s + ", 1]");
     }},
    {"setting BEAM", [](const auto& s) { return refusal_of_setting("BEAM", s); }},
    {"setting PLUGRAD_THREADS",
     [](const auto& s) { return refusal_of_setting("PLUGRAD_THREADS", s); }},
    {"setting PLUGRAD_MEMORY_LIMIT",
     [](const auto& s) { return refusal_of_setting("PLUGRAD_MEMORY_LIMIT", s + "T"); }},
    {"kernel's block bytes", header_at(offsetof(pgr_ir_header, total_bytes), 8)},
    {"kernel's name", header_at(offsetof(pgr_ir_header, name_bytes), 4), {"*"}},
    {"kernel's parameters", header_at(offsetof(pgr_ir_header, param_count), 4), {"*"}},
    {"kernel's instructions", header_at(offsetof(pgr_ir_header, inst_count), 4), {"*"}},
};

TEST(HostileSizes, EachReaderRefusesThemBeforeItAllocates) {
  for (const SizeReader& reader : kReaders)
    for (const std::string& size : kSizes) {
      SCOPED_TRACE(std::string(reader.name) + " of " + size);
      test::take_largest_request();
      const std::string refusal = reader.refusal(size);
      EXPECT_LT(test::take_largest_request(), kMostOfSizes);
      EXPECT_THAT(refusal, testing::Not(testing::HasSubstr("bad_alloc")));
      if (reader.legal == std::vector<std::string>{"*"}) continue;
      EXPECT_EQ(refusal.empty(), std::ranges::count(reader.legal, size) > 0) << refusal;
    }
}

// The file is sparse: its bytes exist as zeros without disk blocks, so its header is truthful.
TEST(HostileSizes, AnArrayThatNoMemoryHolds) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.npy";
  const int64_t elements = int64_t{1} << 40;
  for (const char* order : {"<", ">"}) {
    std::string header = npy(fmt::format("{}", elements));
    header[header.find('<')] = *order;
    std::ofstream(path, std::ios::binary) << header;
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(header.size()) + elements * 4), 0);
    std::string message;
    try {
      (load_npy(path) + 1).sum().item<float>();
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_THAT(message, testing::HasSubstr(*order == '<' ? "a buffer of 4.0 TiB"
                                                          : "do not fit the host's memory"));
  }
}

// Two arrays of the same packed bytes, as many of which would be a bomb.
TEST(HostileSizes, FilesOfAnArchiveThatOverlap) {
  io::ZipWriter writer;
  writer.add("a.npy", as_vector(std::string(100'000, 'x')), false);
  writer.add("b.npy", as_vector("y"), false);
  const auto bytes = writer.finish();
  std::string archive(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t first = archive.find("PK\x01\x02"),
                    second = archive.find("PK\x01\x02", first + 4);
  archive.replace(second + 16, 30, archive.substr(first + 16, 30));  // checksum, sizes, offset
  EXPECT_THAT(size_refusal([&] { io::ZipReader(bytes_of(archive), "archive"); }),
              testing::HasSubstr("the file is damaged"));
}

// Unbounded nesting would exhaust the stack where trees are printed or copied.
TEST(HostileSizes, TextThatNestsWithoutEnd) {
  const std::string deep(5'000'000, '[');
  EXPECT_THAT(refusal_of_header(R"({"a": {"dtype": )" + deep), testing::HasSubstr("too deeply"));
  EXPECT_THAT(refusal_of_header(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": [)" +
                                std::string(2'000'000, '1') + "]}}"),
              testing::HasSubstr("JSON"));
  std::string ones = "1";
  for (int i = 0; i < 1'000'000; ++i) ones += ",1";
  test::take_largest_request();
  EXPECT_THAT(refusal_of_header(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": [)" +
                                ones + "]}}"),
              testing::HasSubstr("more than 64 numbers"));
  EXPECT_THAT(refusal_of_manifest(deep), testing::HasSubstr("larger than"));
  EXPECT_THAT(refusal_of_manifest(deep.substr(0, 1000)), testing::HasSubstr("levels deep"));
  EXPECT_THAT(size_refusal([&] { conformance::parse_manifest(R"({"renderer_options": )" + deep); }),
              testing::HasSubstr("too deeply"));
}

}  // namespace
}  // namespace plugrad
