// Finds speech in a WAV file of 16 kHz, with the network of the package silero-vad:
//   plugrad-fetch-models FOLDER --only silero-vad
//   speech FOLDER/silero-vad-6.2.3/silero_vad/data/silero_vad.onnx AUDIO.wav
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "files.h"
using namespace plugrad;

constexpr int64_t kRate = 16000, kChunk = 512, kContext = 64;  // samples a second, judged, before
const std::string kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// That each chunk is speech; the state of the recurrent network goes from call to call.
std::vector<float> probabilities(const onnx::Model& model, std::vector<float> samples) {
  const auto count = (static_cast<int64_t>(samples.size()) + kChunk - 1) / kChunk;
  samples.insert(samples.begin(), kContext, 0);
  samples.resize(static_cast<size_t>(kContext + count * kChunk));
  Tensor state = Tensor::zeros({2, 1, 128});
  std::vector<float> found;
  for (int64_t i = 0; i < count; ++i) {
    const auto first = samples.begin() + i * kChunk;
    const std::vector<float> heard(first, first + kContext + kChunk);
    const auto result = model({{"input", Tensor::from(heard, {1, kContext + kChunk})},
                               {"state", state},
                               {"sr", Tensor(kRate)}});
    state = result.at("stateN");
    found.push_back(result.at("output").item<float>());
  }
  return found;
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cout << "usage: speech MODEL.onnx AUDIO.wav\n";
    return 2;
  }
  const onnx::Model model = onnx::Model::load(argv[1]);
  std::vector<float> found = probabilities(model, read_wave(argv[2], kRate));
  for (const float each : found) std::cout << kBars[std::lround(each * 8)];
  std::cout << "\n";
  found.push_back(0);
  double began = -1;
  for (size_t i = 0; i < found.size(); ++i) {
    const double now = static_cast<double>(i) * kChunk / kRate;
    const bool is_speech = found[i] > 0.5f;
    if (is_speech && began < 0) began = now;
    if (!is_speech && began >= 0) {
      std::cout << "speech from " << began << " to " << now << " s\n";
      began = -1;
    }
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
