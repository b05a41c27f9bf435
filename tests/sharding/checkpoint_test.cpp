// Sharded checkpoints of one process: saved from one mesh and spec, loaded into another, and
// damaged ones.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/settings.h"
#include "io/checkpoint_index.h"
#include "io/safetensors.h"
#include "sharding/meshes.h"
#include "unit/nn/scratch_folder.h"

namespace plugrad {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

/// On one device if there is no mesh.
struct Place {
  std::optional<Mesh> mesh;
  ShardSpec spec = {};
};

std::vector<Place> places() {
  const ShardSpec both({"data", "model"}), joined({"data+model"}), columns({"", "data+model"});
  return {{},
          {two(), {}},
          {two(), {"data"}},
          {two(), {"", "data"}},
          {four(), {"data"}},
          {four(), {"", "data"}},
          {two_by_two(), {"model"}},
          {two_by_two(), both},
          {two_by_two(), {"model", "data"}},
          {two_by_two(), joined},
          {two_by_two(), columns}};
}

std::string place_name(const Place& place) {
  return place.mesh ? place.mesh->device() + " " + place.spec.to_string() : "one device";
}

Tensor put(const Tensor& x, const Place& place) {
  if (!place.mesh) return x;
  std::vector<std::string> dims = place.spec.dims();
  dims.resize(std::min(dims.size(), x.shape().size()));
  return x.shard(*place.mesh, ShardSpec(dims)).realize();
}

const std::vector<Shape> kShapes = {{8, 6}, {5, 3}, {1, 7}, {3, 2, 5}, {0, 3}, {9}, {}};

nn::StateDict state_at(const Place& place, double first) {
  nn::StateDict state;
  for (size_t i = 0; i < kShapes.size(); ++i)
    state.emplace_back("x" + std::to_string(i),
                       put(counting(kShapes[i], first + static_cast<double>(i)), place));
  return state;
}

TEST(Checkpoints, EveryPlaceLoadsWhatEveryOtherSaved) {
  const ScratchFolder folder;
  const nn::StateDict expected = state_at({}, 3.0);
  for (const Place& from : places()) {
    const std::string path = folder.path / "saved";
    nn::save_sharded(state_at(from, 3.0), path);
    for (const Place& to : places()) {
      const nn::StateDict target = state_at(to, -7.0);
      EXPECT_TRUE(nn::load_sharded(target, path).empty());
      for (size_t i = 0; i < target.size(); ++i) {
        const Tensor& loaded = target[i].second;
        const std::string what =
            place_name(from) + " to " + place_name(to) + ", " + target[i].first;
        EXPECT_EQ(loaded.to_vector<float>(), expected[i].second.to_vector<float>()) << what;
        EXPECT_EQ(loaded.device(), to.mesh ? to.mesh->device() : "CPU") << what;
        if (to.mesh) {
          EXPECT_EQ(loaded.shard_spec(), put(expected[i].second, to).shard_spec()) << what;
        }
      }
    }
  }
}

TEST(Checkpoints, HaveEveryDtype) {
  const ScratchFolder folder;
  const Mesh mesh({{"data", 2}}, {"REFERENCE", "REFERENCE"});  // which holds all of them
  nn::StateDict saved, target;
  for (int number = 1; number <= static_cast<int>(DType::F8E5M2); ++number) {
    const auto dtype = static_cast<DType>(number);
    std::vector<std::byte> bytes(7 * size_of(dtype));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(dtype == DType::Bool ? i % 2 : 3 * i + 1);
    const std::string name(plugrad::name_of(dtype));
    const std::vector<std::byte> zeros(bytes.size());
    const Tensor x = Tensor::from_bytes(bytes, {7}, dtype, "REFERENCE");
    saved.emplace_back(name, x.shard(mesh, {"data"}));
    target.emplace_back(name, Tensor::from_bytes(zeros, {7}, dtype, "REFERENCE"));
  }
  nn::save_sharded(saved, folder.path);
  nn::load_sharded(target, folder.path);
  ASSERT_EQ(saved.size(), 15u);
  for (size_t i = 0; i < saved.size(); ++i)
    EXPECT_EQ(target[i].second.to_bytes(), saved[i].second.to_bytes()) << saved[i].first;
}

TEST(Checkpoints, HaveTheSumOfTerms) {
  const ScratchFolder folder;
  const Tensor x = counting({4, 3});
  const auto terms = ShardSpec({"data"}).with_partial_sum("model");
  const nn::StateDict saved = {{"x", x.shard(two_by_two(), terms)}}, target = {{"x", x * 0.0}};
  nn::save_sharded(saved, folder.path);
  nn::load_sharded(target, folder.path);
  EXPECT_EQ(target[0].second.to_vector<float>(), x.to_vector<float>());
}

struct Net {
  nn::Linear hidden{5, 7}, out{7, 3};
  PLUGRAD_FIELDS(hidden, out)
};
/// All that is saved, by reference.
struct Training {
  Net& net;
  optim::Adam& opt;
  PLUGRAD_FIELDS(net, opt)
};

std::vector<float> losses(Net& net, optim::Adam& opt, const Mesh* mesh, int from, int to) {
  std::vector<float> found;
  for (int step = from; step < to; ++step) {
    Tensor x = counting({9, 5}, 0.1 * step, 0.02), y = counting({9, 3}, -1.0, 0.07);
    if (mesh != nullptr) {
      x = x.shard(*mesh, {"data"});
      y = y.shard(*mesh, {"data"});
    }
    opt.zero_grad();
    const Tensor loss = (net.out(net.hidden(x).tanh()) - y).square().mean();
    loss.backward();
    opt.step();
    found.push_back(loss.item<float>());
  }
  return found;
}

TEST(Checkpoints, ATrainingGoesOnElsewhere) {
  const ScratchFolder folder;
  const std::string path = folder.path / "saved";
  const auto begin = [] {
    Tensor::manual_seed(11);
    return Net();
  };
  Net alone = begin();
  optim::Adam opt(nn::parameters(alone), {.lr = 0.05});
  const std::vector<float> expected = losses(alone, opt, nullptr, 0, 6);
  {
    const Mesh mesh = two();
    Net net = begin();
    nn::data_parallel(net, mesh);
    optim::Adam adam(nn::parameters(net), {.lr = 0.05});
    adam.shard_state("data");
    losses(net, adam, &mesh, 0, 3);
    nn::save_sharded(Training{net, adam}, path);
  }
  const Mesh mesh = two_by_two();
  Net net;
  nn::shard(net, mesh, nn::tensor_parallel(net, "model"));
  optim::Adam adam(nn::parameters(net), {.lr = 0.05});
  losses(net, adam, &mesh, 0, 1);
  nn::load_sharded(Training{net, adam}, path);
  const std::vector<float> resumed = losses(net, adam, &mesh, 3, 6);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(resumed[i], expected[3 + i], 1e-5F) << i;
  EXPECT_EQ(net.hidden.weight.shard_spec().to_string(), "[model, -]");
}

TEST(Checkpoints, FloatsAreCastAndDifferencesAreListed) {
  const ScratchFolder folder;
  const auto like = [](const Shape& shape, DType dtype) { return counting(shape).cast(dtype); };
  nn::save_sharded({{"a", like({4, 2}, DType::F32)},
                    {"b", like({3}, DType::I32)},
                    {"c", like({3}, DType::F32)},
                    {"d", like({3}, DType::F32)}},
                   folder.path);
  const Tensor a = put(like({4, 2}, DType::F16) * 0, {two(), {"data"}});
  const nn::StateDict target = {
      {"a", a}, {"b", like({3}, DType::I64)}, {"c", like({2}, DType::F32)}, {"e", a}};
  const std::string message = error_of([&] { nn::load_sharded(target, folder.path); });
  for (const char* text : {"dtype", "shape", "missing", "unexpected", "nothing was loaded"})
    EXPECT_THAT(message, HasSubstr(text));
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(8, 0.0F));
  const auto found = nn::load_sharded(target, folder.path, nn::Loading::NotStrict);
  EXPECT_EQ(found.size(), 4u);
  EXPECT_EQ(a.dtype(), DType::F16);
  EXPECT_EQ(a.to_vector<float>(), counting({4, 2}).to_vector<float>());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(Checkpoints, AreSafetensorsFilesWithAnIndex) {
  const ScratchFolder folder;
  const Tensor x = counting({5, 3});
  nn::save_sharded({{"x", put(x, {two(), {"data"}})}, {"y", put(x, {two(), {}})}, {"z", x}},
                   folder.path);
  const auto names = names_in(folder.path);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0], "index.json");
  EXPECT_THAT(names[1], testing::MatchesRegex("part-00000-of-00001-[0-9a-f]+.safetensors"));
  const auto file = io::read_safetensors(folder.path / names[1]);
  std::vector<std::string> keys;
  for (const io::NamedArray& array : file.arrays) keys.push_back(array.name);
  EXPECT_EQ(keys, (std::vector<std::string>{"x[0:2, 0:3]", "x[2:5, 0:3]", "y", "z"}));
  EXPECT_EQ(file.arrays[1].shape, (std::vector<int64_t>{3, 3}));
  const auto index = io::read_checkpoint_index(folder.path);
  EXPECT_EQ(index.tensors[0].shape, (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(index.tensors[0].parts[1].box.offset, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(index.files[0].size_bytes, fs::file_size(folder.path / names[1]));
}

TEST(Checkpoints, ASaveRemovesWhatFormerOnesLeft) {
  const ScratchFolder folder;
  const nn::StateDict state = {{"x", counting({4})}};
  nn::save_sharded(state, folder.path);
  const auto first = names_in(folder.path);
  folder.write("part-00003-of-00004-0123456789abcdef.safetensors", "left");
  folder.write("part-00001-of-00002-0123456789abcdef.safetensors.999999-0.tmp", "left");
  folder.write("index.json.999999-0.tmp", "left");
  folder.write("model.safetensors", "of the user");
  folder.write("part-one.safetensors", "of the user");
  nn::save_sharded(state, folder.path);
  const auto second = names_in(folder.path);
  ASSERT_EQ(second.size(), 4u);
  EXPECT_EQ(second[0], "index.json");
  EXPECT_EQ(second[1], "model.safetensors");
  EXPECT_NE(second[2], first[1]);
  EXPECT_EQ(second[3], "part-one.safetensors");
}

TEST(Checkpoints, ASaveReplacesNoIndexOfSomethingElse) {
  const ScratchFolder folder;
  folder.write("index.json", "{\"pages\": 3}");
  const std::string message =
      error_of([&] { nn::save_sharded({{"x", counting({4})}}, folder.path); });
  EXPECT_THAT(message, HasSubstr("index.json is not the index of a checkpoint"));
  EXPECT_THAT(message, HasSubstr("save to another folder, or remove it"));
  EXPECT_EQ(names_in(folder.path), std::vector<std::string>{"index.json"});
  EXPECT_EQ(contents(folder.path / "index.json"), "{\"pages\": 3}");
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " is not in " << text;
  return text.replace(at, from.size(), to);
}

TEST(Checkpoints, DamagedOnesAreRefused) {
  const ScratchFolder folder;
  const fs::path index = folder.path / "index.json";
  const Tensor x = counting({4, 2}), other = x + 1;
  nn::save_sharded({{"x", put(x, {two(), {"data"}})}}, folder.path);
  const fs::path former = folder.path / names_in(folder.path)[1];
  const std::string former_part = contents(former);
  nn::save_sharded({{"x", put(other, {two(), {"data"}})}}, folder.path);
  const fs::path part = folder.path / names_in(folder.path)[1];
  const std::string good_index = contents(index), good_part = contents(part);
  struct Case {
    const char* error;
    std::function<void()> damage;
  };
  const auto change = [&](const std::string& from, const std::string& to) {
    return [&, from, to] { folder.write("index.json", with(good_index, from, to)); };
  };
  const auto write_part = [&](const std::string& bytes) {
    return [&, bytes] { folder.write(part.filename().string(), bytes); };
  };
  const Case cases[] = {
      {"no complete sharded checkpoint", [&] { fs::remove(index); }},
      {"not valid JSON", [&] { folder.write("index.json", good_index.substr(0, 100)); }},
      {"no index of a sharded checkpoint", [&] { folder.write("index.json", "[1]"); }},
      {"no index of a sharded checkpoint", change("plugrad-sharded", "another")},
      {"version 2, this plugrad reads version 1", change("\"version\":1", "\"version\":2")},
      {"occurs twice", change("\"format\"", "\"version\":1,\"format\"")},
      {"no part of the save", change(part.filename().string(), "../part")},
      {"\"save\" is missing", change("\"save\"", "\"safe\"")},
      {"dtype \"F33\", which is not known", change("F32", "F33")},
      {"another dtype or shape than the index says", change("F32", "F64")},
      {"\"x[0:2, 0:3]\" is missing", change("x[0:2, 0:2]", "x[0:2, 0:3]")},
      {"parts of tensor \"x\" overlap", change("[2,0]", "[1,0]")},
      {"impossible part", change("[2,0]", "[3,0]")},
      {"have 8 elements, its shape [5,2] has 10", change("[4,2]", "[5,2]")},
      {"cannot open", [&] { fs::remove(part); }},
      {"damaged or is no safetensors file", write_part(good_part.substr(0, good_part.size() - 4))},
      {"of save", write_part(former_part)},
  };
  Tensor target = put(x * 0.0, {two(), {}});
  for (const Case& damaged : cases) {
    folder.write("index.json", good_index);
    write_part(good_part)();
    nn::load_sharded({{"x", target}}, folder.path);
    target.assign(target * 0.0);
    damaged.damage();
    const std::string message = error_of([&] { nn::load_sharded({{"x", target}}, folder.path); });
    EXPECT_THAT(message, HasSubstr(damaged.error));
    EXPECT_THAT(message, HasSubstr(folder.path.string()));
    EXPECT_EQ(target.to_vector<float>(), std::vector<float>(8, 0.0F)) << damaged.error;
  }
}

TEST(Checkpoints, NameWhatIsWrong) {
  const ScratchFolder folder;
  const nn::StateDict state = {{"x", counting({4})}};
  EXPECT_THAT(user_error([&] { nn::save_sharded(state, folder.path / "no" / "folder"); }),
              HasSubstr("cannot create the folder"));
  const std::string file = folder.write("file", "text");
  EXPECT_THAT(user_error([&] { nn::save_sharded(state, file); }), HasSubstr("File exists"));
  EXPECT_THAT(user_error([&] {
                nn::save_sharded({{"x", state[0].second}, {"x", state[0].second}}, folder.path);
              }),
              HasSubstr("two tensors are named \"x\""));
  const int other = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_THAT(user_error([&] { nn::save_sharded(state, folder.path); }),
              HasSubstr("another save to the folder"));
  ::close(other);
  EXPECT_THAT(user_error([&] { nn::load_sharded(state, folder.path); }),
              HasSubstr("no complete sharded checkpoint"));
  EXPECT_THAT(user_error([&] { nn::read_state(folder.path); }), HasSubstr("nn::load_sharded"));
  const auto step = jit([&](const Tensor& x) {
    nn::save_sharded(state, folder.path);
    return x + 1;
  });
  EXPECT_THAT(user_error([&] { step(counting({2})); }), HasSubstr("inside a jitted function"));
  EXPECT_EQ(names_in(folder.path), std::vector<std::string>{"file"});
}

TEST(Checkpoints, OfDeterministicMeshesHaveOnePartADevice) {
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  const ScratchFolder folder;
  const Tensor x = counting({5, 3});
  nn::save_sharded({{"x", x.shard(two(), {"data"})}}, folder.path);
  const Tensor y = (x * 0.0).shard(four(), {"", "data"}).realize();
  nn::load_sharded({{"x", y}}, folder.path);
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
}

}  // namespace
}  // namespace plugrad
