// Writes down the notes of a WAV file of 22,050 Hz as a piano roll and as MIDI, with the network of
// the package basic-pitch:
//   plugrad-fetch-models FOLDER --only basic-pitch
//   notes FOLDER/basic-pitch-0.4.0/basic_pitch/saved_models/icassp_2022/nmp.onnx AUDIO.wav [FILE.mid]
#include <plugrad/onnx.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files.h"
using namespace plugrad;

constexpr int64_t kRate = 22050;
constexpr int64_t kHop = 256;                          // samples of a frame
constexpr int64_t kWindow = 2 * kRate - kHop;          // samples that the network hears at once
constexpr int64_t kEdge = 15;                          // frames dropped at both ends of a window
constexpr int64_t kKept = kWindow / kHop - 2 * kEdge;  // frames of a window that are kept
constexpr int64_t kKeys = 88, kLowest = 21;            // of a piano; MIDI number of the first
constexpr float kLikelyBegin = 0.5f, kLikely = 0.3f;
constexpr int64_t kShortest = 11, kGap = 11;  // frames of a note, and of silence that ends it
constexpr int64_t kTicks = 480;               // of MIDI, in a second
const std::string kNames[] = {"C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"};

struct Note {
  double begin, end;  // seconds
  int64_t key;        // MIDI number
  auto operator<=>(const Note&) const = default;
};

// That each key sounds, and begins to sound, in each frame: two tables of kKeys columns.
std::pair<std::vector<float>, std::vector<float>> probabilities(const onnx::Model& model,
                                                                const std::vector<float>& samples) {
  const auto frames = static_cast<int64_t>(samples.size()) / kHop;
  std::vector<float> padded(samples.size() + static_cast<size_t>(kEdge * kHop + kWindow));
  std::ranges::copy(samples, padded.begin() + kEdge * kHop);
  std::vector<float> sounds, begins;
  for (int64_t frame = 0; frame < frames; frame += kKept) {
    const auto begin = padded.begin() + frame * kHop;
    const std::vector<float> window(begin, begin + kWindow);
    const auto found = model({{model.inputs()[0].name, Tensor::from(window, {1, kWindow, 1})}});
    const Slice kept(kEdge, kEdge + std::min(kKept, frames - frame));
    const auto append = [&](std::vector<float>& table, const std::string& name) {
      const auto rows = found.at(name).slice(1, kept).to_vector<float>();
      table.insert(table.end(), rows.begin(), rows.end());
    };
    append(sounds, "StatefulPartitionedCall:1");
    append(begins, "StatefulPartitionedCall:2");
  }
  return {sounds, begins};
}

// A note begins at a peak of its onset, and ends where its key is silent for some frames or begins
// again.
std::vector<Note> notes_of(const std::vector<float>& sounds, const std::vector<float>& begins) {
  const auto frames = static_cast<int64_t>(sounds.size()) / kKeys;
  const auto at = [&](const std::vector<float>& table, int64_t frame, int64_t key) {
    return frame < 0 || frame >= frames ? 0 : table[static_cast<size_t>(frame * kKeys + key)];
  };
  const auto is_peak = [&](int64_t frame, int64_t key) {
    const float onset = at(begins, frame, key);
    return onset >= kLikelyBegin && onset > at(begins, frame - 1, key) &&
           onset >= at(begins, frame + 1, key);
  };
  std::vector<Note> notes;
  for (int64_t key = 0; key < kKeys; ++key)
    for (int64_t peak = 0; peak < frames; ++peak) {
      if (!is_peak(peak, key)) continue;
      int64_t last = peak;  // frame in which the key was heard
      for (int64_t frame = peak; frame < frames && frame - last <= kGap; ++frame) {
        if (frame > peak && is_peak(frame, key)) break;
        if (at(sounds, frame, key) >= kLikely) last = frame;
      }
      if (last + 1 - peak < kShortest) continue;
      const auto seconds = [](int64_t frame) { return static_cast<double>(frame * kHop) / kRate; };
      notes.push_back({seconds(peak), seconds(last + 1), kLowest + key});
    }
  std::ranges::sort(notes);
  return notes;
}

// Seven bits a byte, the highest first; all but the last have the eighth bit.
std::string variable_length(int64_t number) {
  std::string digits(1, static_cast<char>(number & 127));
  while (number >>= 7) digits.insert(digits.begin(), static_cast<char>((number & 127) | 128));
  return digits;
}

std::string big_endian(uint64_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
  return text;
}

// A MIDI file of one track at 60 beats a minute.
std::string midi_of(const std::vector<Note>& notes) {
  std::vector<std::pair<int64_t, std::string>> events;  // tick, message
  for (const Note& note : notes) {
    const char key = static_cast<char>(note.key);
    events.push_back({std::llrint(note.begin * kTicks), {'\x90', key, 90}});
    events.push_back({std::llrint(note.end * kTicks), {'\x80', key, 0}});
  }
  std::ranges::sort(events);
  std::string track = big_endian(0x00ff5103, 4) + big_endian(1'000'000, 3);
  int64_t now = 0;
  for (const auto& [tick, message] : events) {
    track += variable_length(tick - now) + message;
    now = tick;
  }
  track += big_endian(0x00ff2f00, 4);
  return "MThd" + big_endian(6, 4) + big_endian(0, 2) + big_endian(1, 2) + big_endian(kTicks, 2) +
         "MTrk" + big_endian(track.size(), 4) + track;
}

// A line for each key that sounds, the highest first; ten characters a second.
void print_piano_roll(const std::vector<Note>& notes, double seconds) {
  std::set<int64_t, std::greater<>> keys;
  for (const Note& note : notes) keys.insert(note.key);
  for (const int64_t key : keys) {
    std::vector<std::string> line(static_cast<size_t>(seconds * 10) + 1, " ");
    for (const Note& note : notes)
      if (note.key == key)
        for (auto i = static_cast<size_t>(note.begin * 10); i <= static_cast<size_t>(note.end * 10);
             ++i)
          line[i] = "━";
    const auto [octave, name] = std::div(key, int64_t{12});
    std::cout << std::left << std::setw(4) << kNames[name] + std::to_string(octave - 1);
    for (const std::string& each : line) std::cout << each;
    std::cout << "\n";
  }
}

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 4) {
    std::cout << "usage: notes MODEL.onnx AUDIO.wav [FILE.mid]\n";
    return 2;
  }
  const onnx::Model model = onnx::Model::load(argv[1]);
  const std::vector<float> samples = read_wave(argv[2], kRate);
  const auto [sounds, begins] = probabilities(model, samples);
  const std::vector<Note> notes = notes_of(sounds, begins);
  print_piano_roll(notes, static_cast<double>(samples.size()) / kRate);
  if (argc == 4) write_file(argv[3], midi_of(notes));
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
