// Files of machines: what they say, and what is refused.
#include "scale/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/error.h"
#include "steps.h"

namespace plugrad::tools::scale {
namespace {

using testing::HasSubstr;

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kRound;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_machine(text, "FILE");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::User);
    return error.what();
  }
  return "no error";
}

TEST(MachineFile, FiguresAreInUnitsOfSecondsAndBytes) {
  const Machine machine = parse_machine(kRound, "FILE");
  EXPECT_EQ(machine.name, "round");
  EXPECT_EQ(machine.devices(), 4u);
  EXPECT_EQ(machine.device.memory_bytes, 1e9);
  EXPECT_EQ(machine.device.memory_rate, 1e9);
  EXPECT_DOUBLE_EQ(machine.device.vector_rate, 1e9);
  EXPECT_DOUBLE_EQ(machine.device.launch_seconds, 1e-6);
  EXPECT_TRUE(machine.device.matrix_rate.empty());
  EXPECT_EQ(machine.device.efficiency.matrix, 1);
  EXPECT_EQ(machine.shared_compute, 1);
  EXPECT_EQ(machine.link.bytes_per_second, 1e9);
  EXPECT_DOUBLE_EQ(machine.link.latency_seconds, 1e-6);
  EXPECT_EQ(machine.link.algorithm, Algorithm::Direct);
}

TEST(MachineFile, AWrittenFileReadsBack) {
  Machine machine = parse_machine(kRound, "FILE");
  machine.device.is_gpu = false;
  machine.device.planning.lanes = 8;
  machine.device.planning.cache_bytes = 1 << 20;
  machine.device.matrix_rate[DType::F32] = 5e9;
  machine.shared_compute = 0.5;
  machine.device.planning.machine = cost::table_machine("x86_64-v3", pgr_device_caps{});
  machine.device.planning.machine.latency = 7;
  const Machine again = parse_machine(to_json(machine, "x86_64-v3"), "FILE");
  EXPECT_FALSE(again.device.is_gpu);
  EXPECT_EQ(again.device.planning.lanes, 8u);
  EXPECT_EQ(again.device.planning.cache_bytes, 1u << 20);
  EXPECT_EQ(again.device.planning.machine.latency, 7);
  EXPECT_DOUBLE_EQ(again.device.matrix_rate.at(DType::F32), 5e9);
  EXPECT_EQ(again.shared_compute, 0.5);
  EXPECT_EQ(again.link.algorithm, Algorithm::Direct);
}

TEST(MachineFile, WrongKeysAndFiguresAreNamed) {
  EXPECT_THAT(error_of("{"), HasSubstr("FILE is no JSON at line 1, column 1: syntax error"));
  EXPECT_THAT(error_of(""), HasSubstr("FILE is no JSON at line 1, column 1"));
  EXPECT_THAT(error_of("{\n  \"name\": \"A\",\n  \"nodes\" 1\n}"),
              HasSubstr("FILE is no JSON at line 3, column 11: syntax error"));
  EXPECT_THAT(error_of("[]"), HasSubstr("the file is no object"));
  EXPECT_THAT(error_of(replaced("\"launch_us\"", "\"lunch_us\"")),
              HasSubstr("device.launch_us is missing"));
  EXPECT_THAT(error_of(replaced("\"launch_us\": 1", "\"launch_us\": 1, \"memory_gb\": 2")),
              HasSubstr("device.memory_gb is unknown"));
  EXPECT_THAT(error_of(replaced("\"nodes\": 1", "\"nodes\": 1, \"netwrk\": 2")),
              HasSubstr("netwrk is unknown; did you mean network?"));
  EXPECT_THAT(error_of(replaced("\"vector_teraflops\": 0.001", "\"vector_teraflops\": -1")),
              HasSubstr("device.vector_teraflops must be a number above 0"));
  EXPECT_THAT(error_of(replaced("\"launch_us\": 1", "\"launch_us\": \"1\"")),
              HasSubstr("device.launch_us must be a number from 0 on"));
  EXPECT_THAT(error_of(replaced("\"devices_per_node\": 4", "\"devices_per_node\": 1.5")),
              HasSubstr("devices_per_node is no whole number"));
  EXPECT_THAT(error_of(replaced("\"direct\"", "\"star\"")),
              HasSubstr("link.algorithm is \"star\", not \"ring\" or \"direct\""));
  EXPECT_THAT(error_of(replaced("\"nodes\": 1", "\"nodes\": 2")), HasSubstr("network is missing"));
  EXPECT_THAT(error_of(replaced("\"nodes\": 1",
                                "\"nodes\": 1, \"all_at_work\": {\"compute\": 2, \"memory\": 1}")),
              HasSubstr("all_at_work.compute is more than 1"));
  EXPECT_THAT(
      error_of(replaced("\"nodes\": 1", "\"nodes\": 1, \"all_at_work\": {\"compute\": 0.2}")),
      HasSubstr("all_at_work.memory is missing"));
}

TEST(MachineFile, AnUnknownNameSuggestsTheFolder) {
  EXPECT_THROW(read_machine("no such machine"), Error);
  EXPECT_THROW(read_machine("/nowhere/machine.json"), Error);
}

}  // namespace
}  // namespace plugrad::tools::scale
