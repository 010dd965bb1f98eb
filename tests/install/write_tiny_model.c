/* SPDX-License-Identifier: MIT */
/* write_tiny_model FILE: the generated model of the tests, for scripts. */
#include "tiny_model.h"

int main(int argc, char ** argv) { return argc == 2 && tiny_model_write(argv[1], SOTTO_TYPE_F32, 1) ? 0 : 1; }
