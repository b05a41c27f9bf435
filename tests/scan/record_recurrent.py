#!/usr/bin/env python3
"""Writes recurrent_vectors.h and recurrent.safetensors: results and gradients of PyTorch's LSTM and
GRU for weights and sequences given by a formula. Run once, with PyTorch 2.13 and safetensors on a
CPU."""
import math
import pathlib

import safetensors.torch
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

HERE = pathlib.Path(__file__).parent
TIME, BATCH, IN, HIDDEN = 5, 3, 4, 3
LENGTHS = [5, 2, 3]


def wave(shape, seed):
    k = torch.arange(math.prod(shape), dtype=torch.float64)
    return (torch.sin(0.7 * k + seed) / 2).reshape(shape)


def layer_of(kind, layers, bidirectional, bias, batch_first):
    layer = getattr(torch.nn, kind)(IN, HIDDEN, layers, bias, batch_first, 0.0, bidirectional).double()
    with torch.no_grad():
        for number, p in enumerate(layer.parameters()):
            p.copy_(wave(p.shape, number))
    return layer


def listed(tensor):
    return "{" + ", ".join(f"{v:.9g}" for v in tensor.detach().flatten().tolist()) + "}"


def case(name, kind, layers=1, bidirectional=False, bias=True, batch_first=False, packed=False, states=True):
    layer = layer_of(kind, layers, bidirectional, bias, batch_first)
    rows = layers * (2 if bidirectional else 1)
    x = wave((BATCH, TIME, IN) if batch_first else (TIME, BATCH, IN), 10).requires_grad_()
    h, c = wave((rows, BATCH, HIDDEN), 11).requires_grad_(), wave((rows, BATCH, HIDDEN), 12).requires_grad_()
    before = None if not states else (h, c) if kind == "LSTM" else h
    if packed:
        rows_of = pack_padded_sequence(x, LENGTHS, batch_first=batch_first, enforce_sorted=False)
        out, last = layer(rows_of, before)
        out = pad_packed_sequence(out, batch_first=batch_first, total_length=TIME)[0]
    else:
        out, last = layer(x, before)
    last = last if kind == "LSTM" else (last,)
    loss = (out * wave(out.shape, 20)).sum() + sum((s * wave(s.shape, 21 + i)).sum() for i, s in enumerate(last))
    loss.backward()
    gradients = [x.grad] + [s.grad for s in (h, c)[: len(last)] if states] + [p.grad for p in layer.parameters()]
    options = f"{layers}, {str(bidirectional).lower()}, {str(bias).lower()}, {str(batch_first).lower()}, 0.0"
    flags = f"{str(packed).lower()}, {str(states).lower()}"
    values = ",\n     ".join([listed(out), "{" + ", ".join(listed(s) for s in last) + "}",
                              "{" + ",\n      ".join(listed(g) for g in gradients) + "}"])
    return f'    {{"{name}", "{kind}", {{{options}}}, {flags},\n     {values}}},'


CASES = [
    case("lstm", "LSTM"), case("gru", "GRU"),
    case("lstm_plain", "LSTM", bias=False, states=False), case("gru_plain", "GRU", bias=False, states=False),
    case("lstm_deep", "LSTM", 2, True), case("gru_deep", "GRU", 2, True),
    case("lstm_packed", "LSTM", 2, True, packed=True), case("gru_packed", "GRU", 2, True, packed=True),
    case("lstm_batch_first", "LSTM", batch_first=True, packed=True), case("gru_batch_first", "GRU", batch_first=True),
]

HEAD = """// Written by record_recurrent.py: what PyTorch's recurrent layers give. Gradients of x, the first
// states and the parameters in their order.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "plugrad/nn.h"

namespace plugrad {

struct RecurrentCase {
  std::string name, kind;
  nn::RecurrentOptions options;
  bool has_lengths, has_states;
  std::vector<double> output;
  std::vector<std::vector<double>> states, gradients;
};

inline void PrintTo(const RecurrentCase& each, std::ostream* out) {
  *out << each.name;
}

// clang-format off
inline const std::vector<RecurrentCase> kRecurrentCases = {
"""

if __name__ == "__main__":
    (HERE / "recurrent_vectors.h").write_text(
        HEAD + "\n".join(CASES) + "\n};\n// clang-format on\n\n}  // namespace plugrad\n")
    state = layer_of("LSTM", 2, True, True, False).float().state_dict()
    safetensors.torch.save_file({k: v.contiguous() for k, v in state.items()}, HERE / "recurrent.safetensors")
