/// Includes all headers of nn/: state of modules, layers and training.
#pragma once

#include "plugrad/data.h"
#include "plugrad/functional.h"
#include "plugrad/loss.h"
#include "plugrad/nn/attention.h"
#include "plugrad/nn/convolution.h"
#include "plugrad/nn/ema.h"
#include "plugrad/nn/layers.h"
#include "plugrad/nn/normalisation.h"
#include "plugrad/nn/pipeline.h"
#include "plugrad/nn/recurrent.h"
#include "plugrad/nn/sequential.h"
#include "plugrad/nn/sharding.h"
#include "plugrad/nn/state.h"
#include "plugrad/nn/training.h"
#include "plugrad/progress.h"
#include "plugrad/tensor.h"
