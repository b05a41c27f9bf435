// Tests the reports of a run: tamper-evident JSON, JUnit and HTML readable by other programs,
// waivers, advice.
#include "conformance/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "conformance/selection.h"
#include "markup/clean_text.h"

namespace plugrad::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<b>\"a\" & 'b'</b>\x01\xff ]]> \xef\xbf\xbe end";

TestResult result(const char* id, Level level, Status status) {
  TestResult test;
  test.id = id;
  test.level = level;
  test.status = status;
  test.milliseconds = 1.25;
  if (status != Status::Pass) test.message = std::string("reason of ") + id;
  if (is_failure(status)) test.replay = "token-1";
  return test;
}

// The ids below "x" are not in the suite, so that the report does not change as the suite grows.
Report example() {
  Report report;
  report.device = "ACME: model <7>";
  report.plugin_path = "/opt/acme/libplugrad_plugin_acme.so";
  report.plugin_version = "1.2";
  report.suite_version = suite_version();
  report.machine = "a machine";
  report.seed = UINT64_MAX;
  report.filter = "x.*";
  report.tests = {result("x.load.one", Level::L0, Status::Pass),
                  result("x.alu.exp2.f32", Level::L2, Status::Fail),
                  result("x.alu.add.f16", Level::L2, Status::Pass),
                  result("x.queue.order", Level::L3, Status::Unsupported),
                  result("x.crash", Level::L1, Status::Crash),
                  result("x.perf.copy", Level::Perf, Status::Pass)};
  TestResult& exp2 = report.tests[1];
  exp2.op = "EXP2";
  exp2.dtype = "f32";
  exp2.metric = "ulp";
  exp2.worst = INFINITY;
  exp2.worst_input = "0x1.8p-3";
  exp2.message = kHostile;
  exp2.ir = "%0 = PARAM f32\n%1 = EXP2 f32 %0";
  report.tests[2].op = "ADD";
  report.tests[2].dtype = "f16";
  report.tests[2].metric = "ulp";
  report.tests[2].worst = 0.5;
  report.tests[5].metric = "GB/s";
  report.tests[5].worst = 12.5;
  report.totals = count(report.tests);
  return report;
}

std::vector<ExtraTest> known_to(const Report& report) {
  std::vector<ExtraTest> extra;
  for (const TestResult& test : report.tests) {
    ExtraTest known;
    known.described.id = test.id;
    known.described.level = test.level;
    known.described.op = test.op;
    known.described.dtype = test.dtype;
    extra.push_back(known);
  }
  return extra;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return at == text.npos ? text : text.replace(at, what.size(), by);
}

// A modified report with a recomputed digest: only the other checks can detect it.
template <class Change>
std::string redigested(Change change) {
  Report report = example();
  change(report);
  return verify_report(write_json(report), known_to(example()));
}

std::string run_python(const std::string& program, const std::string& input) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("plugrad-report-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "input") << input;
  std::ofstream(folder / "program.py") << program;
  const std::string command = "python3 '" + (folder / "program.py").string() + "' '" +
                              (folder / "input").string() + "' 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  pclose(pipe);
  std::filesystem::remove_all(folder);
  return output;
}

TEST(Sha256, matches_the_examples_of_the_standard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Json, has_the_shape_that_others_parse) {
  const auto json = nlohmann::json::parse(write_json(example()));
  EXPECT_EQ(json["schema"], "plugrad-conformance-1");
  EXPECT_EQ(json["device"], "ACME: model <7>");
  EXPECT_EQ(json["seed"], UINT64_MAX);
  EXPECT_EQ(json["plugin"], "libplugrad_plugin_acme.so");
  EXPECT_EQ(json["totals"]["pass"], 3);
  EXPECT_EQ(json["totals"]["crash"], 1);
  const auto& exp2 = json["tests"][1];
  EXPECT_EQ(exp2["id"], "x.alu.exp2.f32");
  EXPECT_EQ(exp2["status"], "fail");
  EXPECT_EQ(exp2["metric"], "ulp");
  EXPECT_EQ(exp2["worst"], "inf");
  EXPECT_EQ(exp2["ms"], 1.25);
  EXPECT_EQ(exp2["replay"], "token-1");
  EXPECT_TRUE(json["tests"][0]["worst"].is_null());
}

TEST(Json, digest_is_the_hash_of_the_document_without_it) {
  const std::string program =
      "import hashlib, json, sys\n"
      "report = json.load(open(sys.argv[1]))\n"
      "digest = report.pop('digest')\n"
      "text = json.dumps(report, separators=(',', ':'), ensure_ascii=False)\n"
      "print('sha256:' + hashlib.sha256(text.encode()).hexdigest() == digest)\n";
  EXPECT_EQ(run_python(program, write_json(example())), "True\n");
}

TEST(Verify, takes_what_the_suite_wrote_in_any_layout) {
  EXPECT_EQ(verify_report(write_json(example()), known_to(example())), "");
  EXPECT_EQ(verify_report(write_json(example(), false), known_to(example())), "");
}

TEST(Verify, refuses_what_was_edited) {
  const std::string text = write_json(example(), false);
  const auto reason = [&](const char* what, const char* by) {
    return verify_report(replaced(text, what, by), known_to(example()));
  };
  EXPECT_THAT(reason("\"status\":\"fail\"", "\"status\":\"pass\""), HasSubstr("was changed after"));
  EXPECT_THAT(reason("\"worst\":0.5", "\"worst\":0.25"), HasSubstr("was changed after"));
  EXPECT_THAT(reason("ACME: model", "ACME: other"), HasSubstr("was changed after"));
  EXPECT_THAT(reason("\"fail\":1", "\"fail\":0,\"fail\":1"),
              HasSubstr("stands twice in one object"));
  EXPECT_THAT(reason("\"seed\":", "\"seed\":-"), HasSubstr("wrong type"));
  EXPECT_THAT(reason("plugrad-conformance-1", "plugrad-conformance-9"), HasSubstr("schema"));
  EXPECT_THAT(reason("\"crash\":1", "\"crash\":-1"), HasSubstr("\"crash\" of the totals"));
  EXPECT_THAT(reason("\"status\":\"fail\"", "\"status\":\"good\""), HasSubstr("is no status"));
  EXPECT_THAT(reason("\"digest\"", "\"note\""), HasSubstr("lacks \"digest\""));
  EXPECT_THAT(verify_report(text.substr(0, text.size() / 2)), HasSubstr("no JSON"));
  EXPECT_THAT(verify_report("[]"), HasSubstr("lacks \"schema\""));
  EXPECT_THAT(verify_report(""), HasSubstr("no JSON"));
}

TEST(Verify, refuses_what_cannot_be_true_under_a_right_digest) {
  EXPECT_EQ(redigested([](Report&) {}), "");
  EXPECT_THAT(redigested([](Report& r) { r.totals.pass = 9; }),
              HasSubstr("the totals say 9 pass, the tests are 3"));
  EXPECT_THAT(redigested([](Report& r) { r.tests[1].status = Status::Pass; }),
              HasSubstr("the totals say"));
  EXPECT_THAT(redigested([](Report& r) { r.suite_version = "0.1"; }),
              HasSubstr("by version 0.1 of the suite"));
  EXPECT_THAT(redigested([](Report& r) { r.tests[0].id = "x.load.two"; }),
              HasSubstr("x.load.two is no test of this version"));
  EXPECT_THAT(redigested([](Report& r) { r.tests[0].level = Level::L3; }),
              HasSubstr("belongs to L0 and not to L3"));
  EXPECT_THAT(redigested([](Report& r) {
                r.tests.erase(r.tests.begin() + 1);
                r.totals = count(r.tests);
              }),
              HasSubstr("x.alu.exp2.f32 was selected and is missing"));
  EXPECT_THAT(redigested([](Report& r) {
                r.tests.push_back(r.tests[0]);
                r.totals = count(r.tests);
              }),
              HasSubstr("stands twice"));
  EXPECT_THAT(redigested([](Report& r) { r.levels = {Level::L2}; }), HasSubstr("was not selected"));
  EXPECT_THAT(redigested([](Report& r) { r.tests[4].message.clear(); }),
              HasSubstr("without a message"));
  EXPECT_THAT(redigested([](Report& r) { r.tests[4].replay.clear(); }),
              HasSubstr("no replay token"));
  EXPECT_THAT(redigested([](Report& r) {
                r.tests[1].status = Status::Pass;
                r.totals = count(r.tests);
              }),
              HasSubstr("passed and carries the kernel"));
  EXPECT_THAT(redigested([](Report& r) {
                r.tests[4].status = Status::Waived;
                r.totals = count(r.tests);
              }),
              HasSubstr("without a waiver's reason"));
}

TEST(Verify, wants_every_test_of_the_suite_in_an_unfiltered_report) {
  if (list_tests(false).empty()) GTEST_SKIP() << "the suite holds no tests";
  EXPECT_THAT(redigested([](Report& r) { r.filter.clear(); }),
              HasSubstr("was selected and is missing"));
}

TEST(Junit, is_xml_with_a_suite_a_level_and_right_counts) {
  const std::string program =
      "import sys, xml.etree.ElementTree as tree\n"
      "root = tree.parse(sys.argv[1]).getroot()\n"
      "assert root.tag == 'testsuites' and root.get('tests') == '6', root.attrib\n"
      "for suite in root:\n"
      "  cases = suite.findall('testcase')\n"
      "  assert int(suite.get('tests')) == len(cases)\n"
      "  for name, tag in ('failures', 'failure'), ('errors', 'error'), ('skipped', 'skipped'):\n"
      "    assert int(suite.get(name)) == sum(c.find(tag) is not None for c in cases), name\n"
      "failure = root.find('.//failure')\n"
      "assert '<b>\"a\" & \\'b\\'</b>' in failure.get('message'), failure.get('message')\n"
      "assert 'EXP2 f32' in failure.text and '--replay token-1' in failure.text\n"
      "print([s.get('name') for s in root])\n";
  EXPECT_EQ(run_python(program, write_junit(example())), "['L0', 'L1', 'L2', 'L3', 'perf']\n");
}

TEST(Html, is_whole_and_needs_no_other_file) {
  const std::string page = write_html(example());
  EXPECT_FALSE(std::regex_search(
      page, std::regex("(src|href|srcset|action)\\s*=|url\\(|@import|https?:|//[a-z]+\\.",
                       std::regex::icase)));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;"));
  EXPECT_THAT(page, HasSubstr("%1 = EXP2 f32 %0"));
  EXPECT_THAT(page, HasSubstr("--replay token-1"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_LT(page.find("id=failures"), page.find("id=matrix"));
  const std::string program =
      "import sys\nfrom html.parser import HTMLParser\n"
      "class Check(HTMLParser):\n"
      "  open = []\n"
      "  def handle_starttag(self, tag, attrs):\n"
      "    if tag not in ('meta', 'input', 'br'): self.open.append(tag)\n"
      "  def handle_endtag(self, tag):\n"
      "    assert self.open and self.open.pop() == tag, (tag, self.getpos())\n"
      "check = Check()\ncheck.feed(open(sys.argv[1], encoding='utf-8').read())\n"
      "print(check.open)\n";
  EXPECT_EQ(run_python(program, page), "[]\n");
}

TEST(Html, text_of_plugins_and_files_never_becomes_markup) {
  Report report = example();
  report.device = report.driver = report.machine = report.plugin_path = kHostile;
  report.plugin_version = report.suite_version = report.filter = kHostile;
  report.notes = {kHostile};
  report.next = {{.text = kHostile}};
  for (TestResult& test : report.tests) {
    test.id += kHostile;
    for (auto field : {&TestResult::message, &TestResult::worst_input, &TestResult::ir,
                       &TestResult::stack, &TestResult::replay})
      test.*field = kHostile;
    for (auto field : {&TestResult::op, &TestResult::dtype, &TestResult::metric})
      test.*field = kHostile;
  }
  report.tests[2].status = Status::Waived;
  EXPECT_THAT(write_html(report), Not(HasSubstr("<b>\"a\"")));
  EXPECT_THAT(write_junit(report), Not(HasSubstr("<b>\"a\"")));
}

TEST(Html, matrix_shows_the_worst_value_and_its_input) {
  const std::string page = write_html(example());
  EXPECT_THAT(page, HasSubstr("class=fail title=\"EXP2 f32: fail\nworst inf ulp at 0x1.8p-3"));
  EXPECT_THAT(page, HasSubstr("class=pass title=\"ADD f16: pass\nworst 0.5 ulp"));
}

class WaiverFile : public testing::Test {
 protected:
  Waivers read(const std::string& text) {
    std::ofstream(path_) << text;
    return Waivers::read(path_, "2026-06-15");
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }
  ~WaiverFile() override { std::remove(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "waivers-" + std::to_string(getpid()) + ".json";
};

TEST_F(WaiverFile, waives_failures_until_its_last_day) {
  Waivers waivers = read(R"([
    {"test": "x.alu.*", "reason": "erratum 7", "expires": "2026-06-15"},
    {"test": "x.crash", "reason": "old", "expires": "2026-06-14"},
    {"test": "x.load", "reason": "not needed", "expires": "2027-01-01"},
    {"test": "y.*", "reason": "elsewhere", "expires": "2027-01-01"}])");
  Report report = example();
  for (TestResult& test : report.tests) waivers.apply(test);
  EXPECT_EQ(report.tests[0].status, Status::Pass);
  EXPECT_EQ(report.tests[1].status, Status::Waived);
  EXPECT_TRUE(
      report.tests[1].message.starts_with("waived until 2026-06-15: erratum 7. The fail: "));
  EXPECT_EQ(report.tests[4].status, Status::Crash);
  EXPECT_THAT(waivers.notes(),
              ElementsAre(HasSubstr("x.crash expired on 2026-06-14"),
                          HasSubstr("x.load is not needed"), HasSubstr("y.* names no test")));
}

TEST_F(WaiverFile, says_what_is_wrong_with_it) {
  EXPECT_THAT(refusal("nonsense"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("not a list"));
  EXPECT_THAT(refusal(std::string(5'000'000, '[')), HasSubstr("nests too deeply"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("entry 1 is no object"));
  EXPECT_THAT(refusal(R"([{"test": "x", "reason": "y"}])"), HasSubstr("entry 1 lacks \"expires\""));
  EXPECT_THAT(refusal(R"([{"test": "x", "reason": "", "expires": "2027-01-01"}])"),
              HasSubstr("\"reason\" of entry 1"));
  EXPECT_THAT(refusal(R"([{"test": "x", "reason": "y", "expires": "2027-02-30"}])"),
              HasSubstr("\"2027-02-30\", no date"));
  EXPECT_THAT(refusal(R"([{"test": "x", "reason": "y", "expires": "2027-02-03", "a": 1}])"),
              HasSubstr("unknown key \"a\""));
  EXPECT_THROW(Waivers::read("/nowhere/waivers.json"), std::runtime_error);
}

Test described(const char* id, Level level, const char* claim, const char* unlocked_by = "") {
  Test test;
  test.id = id;
  test.level = level;
  test.claim = claim;
  test.unlocked_by = unlocked_by;
  return test;
}

std::vector<std::string> advice(std::span<const TestResult> results, const Tests& tests) {
  std::vector<std::string> texts;
  for (const NextStep& step : next_steps(results, tests)) texts.push_back(step.text);
  return texts;
}

TEST(Advice, names_what_unlocks_most_first) {
  const Tests tests = {described("a", Level::L1, "", "pgr.allocator map"),
                       described("b", Level::L3, "pgr.queue"),
                       described("c", Level::L3, "pgr.queue")};
  std::vector<TestResult> results = {result("a", Level::L1, Status::Unsupported),
                                     result("b", Level::L3, Status::Unsupported),
                                     result("c", Level::L3, Status::Unsupported)};
  for (TestResult& each : results) each.message = "the plugin does not offer pgr.queue";
  results[0].message = "the plugin does not offer pgr.allocator map";
  EXPECT_THAT(advice(results, tests),
              ElementsAre("offer the interface pgr.queue to unlock 2 tests",
                          "implement map() of pgr.allocator to unlock 1 test"));
}

// A test of map that also needs host memory.
TEST(Advice, does_not_ask_for_what_is_there) {
  const Tests tests = {described("a", Level::L1, "", "pgr.allocator map"),
                       described("b", Level::L3, "pgr.profile")};
  std::vector<TestResult> results = {result("a", Level::L1, Status::Unsupported),
                                     result("b", Level::L3, Status::Unsupported)};
  results[0].message = "map is a copy (unified_memory is 0), addresses tell nothing";
  results[1].message = "counter answered UNSUPPORTED";
  EXPECT_THAT(advice(results, tests), ElementsAre());
}

TEST(Advice, names_the_op_where_the_dtype_computes_already) {
  const Tests tests = {described("a", Level::L2, ""), described("b", Level::L2, ""),
                       described("c", Level::L2, "")};
  std::vector<TestResult> results = {result("a", Level::L2, Status::Pass),
                                     result("b", Level::L2, Status::Unsupported),
                                     result("c", Level::L2, Status::Unsupported)};
  for (TestResult& each : results) each.dtype = "f32", each.op = "add";
  results[1].op = "sin";
  results[2].dtype = "f16";
  EXPECT_THAT(advice(results, tests), ElementsAre("claim arithmetic on f16 to unlock 1 test",
                                                  "claim sin on f32 to unlock 1 test"));
}

// The test casts from f32; the missing part is the target dtype.
TEST(Advice, names_the_dtypes_that_a_message_names) {
  const Tests tests = {described("l2.cast.f32.bf16", Level::L2, ""),
                       described("l2.cast.f32.f16", Level::L2, "")};
  std::vector<TestResult> results = {result("l2.cast.f32.bf16", Level::L2, Status::Unsupported),
                                     result("l2.cast.f32.f16", Level::L2, Status::Unsupported)};
  for (TestResult& each : results) each.op = "cast", each.dtype = "f32";
  results[0].message = "the device does not claim CAST on bf16";
  results[1].message = "the device does not claim CAST on f16";
  EXPECT_THAT(advice(results, tests), ElementsAre("claim cast on bf16, f16 to unlock 2 tests"));
}

TEST(Advice, puts_failures_of_the_lowest_level_first) {
  const std::vector<TestResult> results = {
      result("l1.x", Level::L1, Status::Fail), result("l0.y", Level::L0, Status::Timeout),
      result("l0.z", Level::L0, Status::Fail), result("l2.w", Level::L2, Status::Fail)};
  EXPECT_THAT(advice(results, {}),
              ElementsAre("mend l0.y first (timeout; 2 failures of L0 in all): reason of l0.y"));
  const auto of_l2 = next_steps(std::span(results).last(1), {});
  ASSERT_EQ(of_l2.size(), 1u);
  EXPECT_EQ(of_l2[0].level, Level::L2);
}

// A kernel that does nothing also fails tests of lower levels that use it.
TEST(Advice, puts_a_cause_before_its_consequences) {
  const std::vector<TestResult> results = {
      result("l0.process.exit_open", Level::L0, Status::Fail),
      result("l1.memory.leak", Level::L1, Status::Pass),
      result("l1.ops.add.f32", Level::L1, Status::Fail),
      result("l1.launch.groups.1x1x1", Level::L1, Status::Fail)};
  EXPECT_THAT(advice(results, {}),
              ElementsAre(testing::StartsWith("mend l1.launch.groups.1x1x1 first")));
}

TEST(Advice, names_the_test_that_hung) {
  std::vector<TestResult> results = {result("l1.device.info", Level::L1, Status::Fail),
                                     result("l1.memory.copy", Level::L1, Status::Fail),
                                     result("l1.ops.add.f32", Level::L1, Status::Timeout),
                                     result("l2.alu.add.f32", Level::L2, Status::Timeout)};
  results[0].message = "not run: 5 tests of L1 in a row timed out";
  EXPECT_THAT(advice(results, {}), ElementsAre(testing::StartsWith("mend l1.ops.add.f32 first")));
  // a hang in a higher level does not cause a failure in a lower one
  results[2].status = Status::Pass;
  EXPECT_THAT(advice(results, {}), ElementsAre(testing::StartsWith("mend l1.memory.copy first")));
}

TEST(Selection, globs_take_ids_and_groups) {
  EXPECT_TRUE(matches("l1.memory.*", "l1.memory.alignment"));
  EXPECT_TRUE(matches("l1.memory", "l1.memory.alignment"));
  EXPECT_FALSE(matches("l1.mem", "l1.memory.alignment"));
  EXPECT_TRUE(matches("*.exp2", "l2.alu.exp2.f32"));
  EXPECT_TRUE(matches("l0.*,*.f3?", "l2.alu.exp2.f32"));
  EXPECT_FALSE(matches("l0.*,*.f6?", "l2.alu.exp2.f32"));
  EXPECT_FALSE(matches("", "l0.a"));
  const Level levels[] = {Level::L0};
  EXPECT_TRUE(selects(levels, "", false, Level::L0, "l0.a"));
  EXPECT_FALSE(selects(levels, "", true, Level::L1, "l1.a"));
  EXPECT_FALSE(selects({}, "", false, Level::Perf, "perf.a"));
  EXPECT_TRUE(selects({}, "", true, Level::Perf, "perf.a"));
}

TEST(Text, is_well_formed_whatever_a_plugin_says) {
  EXPECT_EQ(markup::clean_text("a\x01\xffz\xc3\xa4\xc0\xaf\xed\xa0\x80"),
            "a\xef\xbf\xbd\xef\xbf\xbdz\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef"
            "\xbf\xbd");
  EXPECT_THAT(write_text(example()), HasSubstr("fail x.alu.exp2.f32"));
}

}  // namespace
}  // namespace plugrad::conformance
