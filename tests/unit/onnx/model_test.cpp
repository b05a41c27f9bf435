// Models from ONNX files: what they compute, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/session.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/base/temporary_directory.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class Onnx : public testing::Test {
 protected:
  std::string file(const std::string& bytes, const std::string& name = "m.onnx") {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string error_of(const std::string& bytes) {
    try {
      Model::load(file(bytes));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  TemporaryDirectory directory_;
};

// y = relu(x + b), where b is a constant.
Message shifted() {
  return Message()
      .message(1, node("Add", {"x", "b"}, {"sum"}))
      .message(1, node("Relu", {"sum"}, {"y"}))
      .text(2, "shifted")
      .message(5, constant("b", {2}, {1, -3}))
      .message(11, value("x", {-1, 2}))
      .message(12, value("y", {-1, 2}));
}

TEST_F(Onnx, a_model_computes_for_any_size_that_it_leaves_open) {
  const Model model = Model::load(file(model_of_bytes(shifted())));
  EXPECT_EQ(to_string(model.inputs().at(0)), "x: float (n, 2)");
  EXPECT_EQ(model.outputs().at(0).name, "y");
  EXPECT_THAT(model({Tensor::from({{1.0F, 2.0F}})})[0].to_vector<float>(), ElementsAre(2, 0));
  for (int i = 0; i < 3; ++i) {
    const auto named = model({{"x", Tensor::from({{1.0F, 4.0F}, {-5.0F, 5.0F}}) + i}});
    EXPECT_THAT(named.at("y").to_vector<float>(),
                ElementsAre(2 + i, 1 + i, std::max(0, i - 4), 2 + i));
  }
}

TEST_F(Onnx, a_loaded_model_stays_when_its_file_is_written_again) {
  const std::string path = file(model_of_bytes(shifted()));
  const Model model = Model::load(path);
  file(std::string(50, '\0'));
  EXPECT_THAT(model({Tensor::from({{1.0F, 4.0F}})})[0].to_vector<float>(), ElementsAre(2, 1));
}

// Plans that were looked up, and kernels that were made.
std::vector<uint64_t> work_of_recording() {
  const engine::Statistics seen = engine::Session::current().statistics();
  return {seen.plans_made + seen.plan_cache_hits, seen.kernels_compiled};
}

TEST_F(Onnx, the_second_call_replays_the_first) {
  const auto integers = [](int64_t element) {
    return Message().integer(1, 1).integer(2, 7).integer(7, element);  // of shape {1}
  };
  const Message zero = Message().text(1, "value").message(5, integers(0)).integer(20, 4);
  const Message graph =
      Message()
          .message(1, node("ConstantOfShape", {"four"}, {"pads"}).message(5, zero))
          .message(1, node("Pad", {"x", "pads"}, {"p"}))
          .message(1, node("MatMul", {"p", "w"}, {"y"}))
          .message(1, node("Relu", {"y"}, {"z"}))
          .text(2, "linear")
          .message(5, integers(4).text(8, "four"))
          .message(5, constant("w", {64, 48}, std::vector<float>(64 * 48, 0.5F)))
          .message(11, value("x", {-1, 64}))
          .message(12, value("z", {-1, 48}));
  const Model model = Model::load(file(model_of_bytes(graph)));
  const Tensor ones = Tensor::from(std::vector<float>(64, 1)).reshape({1, 64});
  const auto call = [&] { return model({ones})[0].to_vector<float>(); };
  EXPECT_THAT(call(), Each(32));
  const auto before = work_of_recording();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(call(), Each(32));
  EXPECT_EQ(work_of_recording(), before);
}

TEST_F(Onnx, a_model_is_read_from_bytes) {
  const std::string bytes = model_of_bytes(shifted());
  const Model model = Model::from_bytes(std::as_bytes(std::span(bytes)));
  EXPECT_THAT(model({Tensor::from({{1.0F, 4.0F}})})[0].to_vector<float>(), ElementsAre(2, 1));
}

TEST_F(Onnx, versions_that_are_not_known_are_named) {
  EXPECT_THAT(error_of(model_of_bytes(shifted(), 2)), HasSubstr("IR version 2"));
  EXPECT_THAT(error_of(model_of_bytes(shifted(), 15)), HasSubstr("IR version 15"));
  EXPECT_THAT(error_of(model_of_bytes(shifted(), 8, 99)), HasSubstr("operator set 99"));
  EXPECT_THAT(error_of(model_of_bytes(Message())), HasSubstr("no graph"));
}

TEST_F(Onnx, a_call_may_replace_a_constant_that_is_an_input) {
  const Model model = Model::load(file(model_of_bytes(shifted().message(11, value("b", {2})), 3)));
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.optional_inputs().at(0).name, "b");
  const Tensor x = Tensor::from({{1.0F, 4.0F}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(model({x})[0].to_vector<float>(), ElementsAre(2, 1));
    const Tensor b = Tensor::from({10.0F, 20.0F}) + i;
    EXPECT_THAT(model({x, b})[0].to_vector<float>(), ElementsAre(11 + i, 24 + i));
    EXPECT_THAT(model({{"x", x}, {"b", b}}).at("y").to_vector<float>(),
                ElementsAre(11 + i, 24 + i));
  }
  EXPECT_THAT(model({{"x", x}}).at("y").to_vector<float>(), ElementsAre(2, 1));
  try {
    model({{"x", x}, {"b", Tensor::zeros({3})}});
    FAIL() << "a wrong shape was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input \"b\" has the shape (3,)"));
    EXPECT_THAT(error.what(), HasSubstr("b: float (2,), optional"));
  }
}

TEST_F(Onnx, outputs_without_a_declared_type_may_be_sequences) {
  const Model model =
      Model::load(file(model_of_bytes(Message()
                                          .message(1, node("SequenceConstruct", {"x"}, {"s"}))
                                          .text(2, "wrapped")
                                          .message(11, value("x", {2}))
                                          .message(12, Message().text(1, "s")))));
  const std::vector<Data> results = model.run({Tensor::from({1.0F, 2.0F})});
  EXPECT_EQ(std::get<Sequence>(results.at(0).value).elements.size(), 1u);
}

TEST_F(Onnx, numbers_take_the_declared_dtype) {
  const auto doubled = [](const Message& type) {
    return model_of_bytes(Message()
                              .message(1, node("Add", {"x", "x"}, {"y"}))
                              .text(2, "doubled")
                              .message(11, value("x", type))
                              .message(12, value("y", type)));
  };
  const Model of_long = Model::load(file(doubled(tensor_type(7, {})), "long.onnx"));
  EXPECT_EQ(of_long({Tensor(int64_t{1} << 40)})[0].item<int64_t>(), int64_t{1} << 41);
  const Model of_float = Model::load(file(doubled(tensor_type(1, {})), "float.onnx"));
  EXPECT_EQ(of_float({Tensor(3)})[0].item<float>(), 6);
  EXPECT_EQ(of_float({Tensor(0.5)})[0].item<float>(), 1);
  const Model of_byte = Model::load(file(doubled(tensor_type(2, {})), "byte.onnx"));
  EXPECT_EQ(of_byte({Tensor(100)})[0].item<uint8_t>(), 200);
  EXPECT_THROW(of_byte({Tensor(300)}), Error);
  EXPECT_THROW(of_long({Tensor(0.5)}), Error);
}

// As the specification and the reference implementation have it; onnxruntime gives (1, N).
TEST_F(Onnx, a_scalar_has_no_indices_but_a_count) {
  const Model model =
      Model::load(file(model_of_bytes(Message()
                                          .message(1, node("NonZero", {"x"}, {"y"}))
                                          .text(2, "counted")
                                          .message(11, value("x", tensor_type(kFloat, {})))
                                          .message(12, Message().text(1, "y")))));
  EXPECT_EQ(model({Tensor(3.0F)})[0].shape(), (Shape{0, 1}));
  EXPECT_EQ(model({Tensor(0.0F)})[0].shape(), (Shape{0, 0}));
}

TEST_F(Onnx, the_exporters_notes_are_kept) {
  const auto note = [](std::string_view key, std::string_view text) {
    return Message().message(14, Message().text(1, key).text(2, text)).bytes();
  };
  const Model model = Model::load(file(model_of_bytes(shifted()) + note("classes", "cat\ndog") +
                                       note("epoch", "1") + note("epoch", "2")));
  EXPECT_THAT(model.metadata(),
              ElementsAre(std::pair("classes", "cat\ndog"), std::pair("epoch", "2")));
}

TEST_F(Onnx, wrong_inputs_are_answered_with_what_the_model_expects) {
  const Model model = Model::load(file(model_of_bytes(shifted())));
  const auto error_of_call = [&](const std::vector<Tensor>& inputs) -> std::string {
    try {
      model(inputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of_call({}), HasSubstr("0 inputs are given"));
  EXPECT_THAT(error_of_call({Tensor::zeros({1, 3})}),
              HasSubstr("(1, 3), the model expects:\n  x: float (n, 2)"));
  EXPECT_THAT(error_of_call({Tensor::zeros({1, 2}, DType::I32)}), HasSubstr("is i32"));
  EXPECT_THROW(model({{"z", Tensor::zeros({1, 2})}}), Error);
}

TEST_F(Onnx, a_file_that_is_no_model_is_refused_with_the_place) {
  EXPECT_THAT(error_of(Message().integer(1, 8).bytes()), HasSubstr("no ONNX model"));
  EXPECT_THAT(error_of("\x01\x02\x03"), HasSubstr("byte 0, in ModelProto"));
  EXPECT_THAT(error_of(model_of_bytes(shifted(), 99)), HasSubstr("IR version 99"));
  const std::string whole = model_of_bytes(shifted());
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_NE(error_of(whole.substr(0, size)), "no error") << size << " bytes";
}

TEST_F(Onnx, a_file_of_another_format_is_named_with_what_it_is) {
  const std::string path = directory_ / "m.onnx";
  const auto expect = [&](const std::string& bytes, const std::string& what) {
    EXPECT_THAT(error_of(bytes), HasSubstr("[onnx] " + path + ": the file is " + what)) << bytes;
  };
  expect("", "empty");
  expect("version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer");
  expect("\n<!DOCTYPE HTML>\n<title>404</title>", "an HTML or XML page");
  expect("hello, this is a text", "a text");
  expect("PK\x03\x04 archive", "a zip archive");
  const std::string whole = model_of_bytes(shifted());
  expect(whole.substr(0, 20),
         "truncated: " + std::to_string(2 + 1 + 1 + shifted().bytes().size() - 20) +
             " bytes are missing after byte 20");
}

TEST_F(Onnx, all_unknown_operators_are_named_before_anything_runs) {
  Message graph = shifted();
  graph.message(1, node("Frobnicate", {"y"}, {"z"})).message(1, node("Mangle", {"z"}, {"w"}));
  const std::string text = error_of(model_of_bytes(graph));
  EXPECT_THAT(text, HasSubstr("Frobnicate (\"the Frobnicate\")"));
  EXPECT_THAT(text, HasSubstr("Mangle (\"the Mangle\")"));
}

TEST_F(Onnx, shapes_and_counts_that_no_memory_holds_are_refused) {
  Message huge = shifted();
  huge.message(5, constant("b2", {int64_t{1} << 40, int64_t{1} << 20}, {1}));
  Message negative = shifted();
  negative.message(5, constant("b2", {-4}, {1}));
  Message few = shifted();
  few.message(5, constant("b2", {3}, {1}));
  for (const auto& [graph, what] : std::vector<std::pair<Message, const char*>>{
           {huge, "too large"}, {negative, "negative"}, {few, "12"}})
    EXPECT_THAT(error_of(model_of_bytes(graph)), HasSubstr(what));
}

TEST_F(Onnx, graphs_nested_without_end_are_refused) {
  Message graph;
  for (int i = 0; i < 200; ++i)
    graph = Message().message(
        1, node("If", {"c"}, {"y"}).message(5, Message().text(1, "then_branch").message(6, graph)));
  EXPECT_THAT(error_of(model_of_bytes(graph)), HasSubstr("nested too deep"));
}

TEST_F(Onnx, external_data_stays_in_the_folder_of_the_model) {
  const auto with_data_in = [](const std::string& location) {
    Message outside = Message().integer(1, 2).integer(2, 1).text(8, "b").integer(14, 1).message(
        13, Message().text(1, "location").text(2, location));
    return model_of_bytes(Message()
                              .message(1, node("Add", {"x", "b"}, {"y"}))
                              .message(5, outside)
                              .message(11, value("x", {2}))
                              .message(12, value("y", {2})));
  };
  const auto run = [&](const std::string& location) -> std::string {
    try {
      return std::to_string(
          Model::load(file(with_data_in(location)))({Tensor::ones({2})})[0].to_vector<float>()[1]);
    } catch (const Error& error) {
      return error.what();
    }
  };
  const float weights[] = {1, 2};
  file(std::string(reinterpret_cast<const char*>(weights), sizeof weights), "w.bin");
  EXPECT_EQ(run("w.bin"), std::to_string(3.0F));
  EXPECT_THAT(run("../w.bin"), HasSubstr("outside the model's folder"));
  EXPECT_THAT(run("/etc/hostname"), HasSubstr("outside the model's folder"));
  EXPECT_THAT(run("missing.bin"), HasSubstr("m.onnx: cannot open"));
  EXPECT_THAT(run("missing.bin"), HasSubstr("missing.bin"));
  std::filesystem::create_symlink("/etc/hostname", std::filesystem::path(directory_ / "link.bin"));
  EXPECT_THAT(run("link.bin"), HasSubstr("outside the model's folder"));

  namespace fs = std::filesystem;  // the layout of Hugging Face's cache
  const fs::path cache(directory_ / "models--a"), revision = cache / "snapshots/1";
  fs::create_directories(revision);
  fs::create_directories(cache / "blobs");
  fs::copy(directory_ / "w.bin", cache / "blobs/2");
  fs::create_symlink("../../blobs/2", revision / "w.bin");
  fs::create_symlink("/etc/hostname", revision / "host.bin");
  const auto run_there = [&](const std::string& location) -> std::string {
    file(with_data_in(location), "models--a/snapshots/1/m.onnx");
    try {
      const Model model = Model::load((revision / "m.onnx").string());
      return std::to_string(model({Tensor::ones({2})})[0].to_vector<float>()[1]);
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(run_there("w.bin"), std::to_string(3.0F));
  EXPECT_THAT(run_there("../../blobs/2"), HasSubstr("outside the model's folder"));
  EXPECT_THAT(run_there("host.bin"), HasSubstr("outside the model's folder"));
}

TEST_F(Onnx, a_function_that_calls_itself_is_refused) {
  const Message function = Message()
                               .text(1, "Again")
                               .text(4, "x")
                               .text(5, "y")
                               .text(10, "own")
                               .message(7, node("Again", {"x"}, {"y"}).text(7, "own"));
  const std::string bytes =
      model_of_bytes(Message()
                         .message(1, node("Again", {"x"}, {"y"}).text(7, "own"))
                         .message(11, value("x", {2}))
                         .message(12, value("y", {2}))) +
      Message().message(25, function).bytes();
  EXPECT_THAT(error_of(bytes), HasSubstr("function \"Again\" calls itself"));
}

}  // namespace
}  // namespace plugrad::onnx
