/* SPDX-License-Identifier: MIT */
/* The engine, whole. The recogniser is sotto/speech.h. */
#ifndef SOTTO_H
#define SOTTO_H

#include "sotto/alloc.h"
#include "sotto/backend.h"
#include "sotto/cpu.h"
#include "sotto/file.h"
#include "sotto/gguf.h"
#include "sotto/graph.h"
#include "sotto/log.h"
#include "sotto/ops.h"
#include "sotto/plan.h"
#include "sotto/quant.h"
#include "sotto/status.h"
#include "sotto/tensor.h"
#include "sotto/types.h"

#endif
